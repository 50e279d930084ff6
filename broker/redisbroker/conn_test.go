package redisbroker

import (
	"bufio"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// switchboard is an address behind which a connection leads, for as long as it lives, to the server that was the master when it was
// made. A demoted server answers every script with its refusal.
type switchboard struct {
	net.Listener
	demotions atomic.Int64
	refusals  atomic.Int64
	refusal   string
}

func newSwitchboard(t *testing.T, server, refusal string) *switchboard {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &switchboard{Listener: l, refusal: refusal}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			go s.requests(client, up, s.demotions.Load())
			go func() {
				_, _ = bufio.NewReader(up).WriteTo(client)
				_ = client.Close()
			}()
		}
	}()
	return s
}

// requests carries what a client writes, a write at a time, as the client makes one for each command.
func (s *switchboard) requests(client, up net.Conn, born int64) {
	defer up.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if s.demotions.Load() != born && strings.Contains(strings.ToLower(string(buf[:min(n, 40)])), "evalsha") {
			s.refusals.Add(1)
			_, _ = client.Write([]byte("-" + s.refusal + "\r\n"))
			continue
		}
		if _, err := up.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestAClientLeavesAServerThatIsAReplicaNow, in whichever spelling it is told: it connects again, and what is behind the address
// by then takes the call. The reader goes on under its name: nothing was done of what was refused.
func TestAClientLeavesAServerThatIsAReplicaNow(t *testing.T) {
	for _, refusal := range []string{
		"READONLY You can't write against a read only replica.",
		"ERR READONLY You can't write against a read only replica.",
		"ERR Error running script (call to f_1f): @user_script:12: -READONLY You can't write against a read only replica.",
	} {
		t.Run(refusal, func(t *testing.T) {
			s := redistest.Start(t)
			board := newSwitchboard(t, s.Addr(), refusal)
			b, err := Open(t.Context(), Options{URL: "redis://" + board.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close() })
			l := &lab{b: b}
			l.apply(t, broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("q", false)}})
			if _, err := b.Send(t.Context(), "q", broker.Outgoing{SessionID: "s", Body: []byte("x")}); err != nil {
				t.Fatal(err)
			}
			r, err := b.OpenReader(t.Context(), "q", broker.ReaderOptions{Slots: 1, Lease: 30 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			name := r.Name()
			board.demotions.Add(1)
			rep, err := r.Turn(t.Context(), broker.TurnRequest{Free: []int{0}, Empty: 1, Top: 1})
			if err != nil || len(rep.Units) != 1 || r.Name() != name {
				t.Fatalf("got %d units, %v, as %s; want one, as %s", len(rep.Units), err, r.Name(), name)
			}
			if n := board.refusals.Load(); n != 1 {
				t.Errorf("%d calls were refused; the second try was to reach the master", n)
			}
		})
	}
}
