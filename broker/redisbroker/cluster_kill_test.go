package redisbroker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// asTransmitter makes the test binary a host that transmits what waits on home, and that stops in front of one of its calls. Its value
// is a transmitterJob.
const asTransmitter = "PARLEY_TEST_AS_TRANSMITTER"

// transmitterJob is what such a process is told.
type transmitterJob struct {
	URL, Namespace string
	Now            int64  // its clock stands still
	Before         string // the script in front of whose call it stops
}

// transmitterMain says "stopped" on standard output in front of that call, and then waits to be killed: no longer than its parent lives,
// which holds its standard input.
func transmitterMain() {
	var job transmitterJob
	err := json.Unmarshal([]byte(os.Getenv(asTransmitter)), &job)
	if err == nil {
		err = job.run(context.Background())
	}
	fmt.Fprintln(os.Stderr, "the transmitter was not stopped:", err)
	os.Exit(1)
}

func (j transmitterJob) run(ctx context.Context) error {
	b, err := Open(ctx, Options{URL: j.URL, Namespace: j.Namespace, Now: func() int64 { return j.Now }})
	if err != nil {
		return err
	}
	b.rdb.AddHook(&wire{scripts: b.scripts, choose: func(script string) Fault {
		if script == j.Before {
			fmt.Println("stopped")
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(1)
		}
		return NoFault
	}})
	_, err = b.transmitAll(ctx, b.prefix("home"), &broker.KeepReport{})
	return err
}

// killTransmitter runs a transmitter as a process of its own and kills it in front of the call of a script.
func (l *lab) killTransmitter(t *testing.T, before string) {
	t.Helper()
	job, err := json.Marshal(transmitterJob{URL: l.opt.URL, Namespace: l.opt.Namespace, Now: l.b.opt.Now(), Before: before})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asTransmitter+"="+string(job))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it says that it was killed
	if err != nil || said != "stopped\n" {
		t.Fatalf("the transmitter said %q, %v", said, err)
	}
	if s, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		t.Fatalf("the transmitter ended with %v, want by kill -9", cmd.ProcessState)
	}
}

// A transmitter is a process that kill -9 ends between its two writes, on two masters: at the target, and at the source. A dialog's
// message has a sequence number, by which a repeat would be known too; a plain one has not.
func TestClusterTransmitterIsKilled(t *testing.T) {
	c := redistest.StartCluster(t)
	for _, x := range []struct{ name, before, target, arrived string }{
		{"before its write at the target", "arrive", "//t/Work", "[]"},
		{"between its write and the acknowledgement", "txdone", "//t/Work", "[m0]"},
		{"before its write of a plain message", "arrive", "queue:work", "[]"},
		{"between its write of a plain message and the acknowledgement", "txdone", "queue:work", "[m0]"},
	} {
		t.Run(x.name, func(t *testing.T) {
			l := clusterLab(t, c)
			if x.target == "queue:work" {
				l.sendPlain(t, "m0", "m1")
			} else {
				l.say(t, l.begin(t), "m0", "m1")
			}
			l.killTransmitter(t, x.before)
			l.wantReady(t, "when it was killed", "work", x.arrived)
			l.wantTransmission(t, x.target, 2)

			other := &lab{b: l.open(t)}
			other.transmit(t)
			l.wantTransmission(t, x.target, 2) // the dead one's lease still runs
			l.advance(transmitLease)
			other.transmit(t)
			l.wantTransmission(t, x.target, 0)
			for range 2 { // nor does anything come later
				l.wantReady(t, "once and in order", "work", "[m0 m1]")
				l.advance(time.Minute)
				other.transmit(t)
				l.transmit(t)
			}
			for _, q := range []string{"home", "work"} {
				if d, err := l.b.Audit(t.Context(), q); err != nil || !d.Clean() {
					t.Errorf("audit of %s: %v, %v", q, d, err)
				}
			}
		})
	}
}

// sendPlain has a unit of home send plain messages to work.
func (l *lab) sendPlain(t *testing.T, ids ...string) {
	t.Helper()
	if _, err := l.b.Send(t.Context(), "home", broker.Outgoing{}); err != nil {
		t.Fatal(err)
	}
	got, err := l.b.Receive(t.Context(), "home", broker.ReceiveOptions{Max: 1, Top: 1})
	if err != nil || len(got) != 1 {
		t.Fatalf("received %v, %v", got, err)
	}
	st := broker.Settlement{Unit: got[0].Unit}
	for _, id := range ids {
		st.Effects = append(st.Effects, broker.Effect{Kind: broker.EffectSendTo, Queue: "work", Message: broker.Outgoing{MessageID: id, Body: []byte(id)}})
	}
	if r, err := l.b.Settle(t.Context(), "home", got[0].Token, st); err != nil || r.Consequence != broker.Committed {
		t.Fatalf("settled %+v, %v", r, err)
	}
}

// wantTransmission wants n messages in the transmission queue of home, by its counter and by the stream of the target.
func (l *lab) wantTransmission(t *testing.T, target string, n int64) {
	t.Helper()
	info, err := l.b.Queue(t.Context(), "home")
	if err != nil {
		t.Fatal(err)
	}
	if stored := l.b.rdb.XLen(t.Context(), l.b.prefix("home")+"tx:"+target).Val(); info.Counts.Transmission != n || stored != n {
		t.Fatalf("in transmission: %d by the counter, %d by the stream; want %d", info.Counts.Transmission, stored, n)
	}
}
