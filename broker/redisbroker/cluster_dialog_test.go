package redisbroker

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
	"parley/internal/redistest"
)

// clusterLab opens a client of a new namespace on a Cluster, with queues work and home, which lie on different masters, and their
// services.
func clusterLab(t *testing.T, c *redistest.Cluster) *lab {
	t.Helper()
	for n := range 100 {
		h, l := newHarness(t, clusterURL(c), nil)
		l.advance = h.Advance
		if l.master(t, "work") == l.master(t, "home") && n < 99 {
			continue // another namespace has other slots
		}
		contracts := []string{broker.ContractDefault}
		l.apply(t, broker.Definitions{
			Queues:   []broker.QueueSettings{broker.DefaultQueue("work", true), broker.DefaultQueue("home", true)},
			Services: []broker.Service{{Name: "//t/Work", Queue: "work", Contracts: contracts}, {Name: "//t/Home", Queue: "home", Contracts: contracts}},
		})
		return l
	}
	return nil
}

// master is the address of the node that holds a queue.
func (l *lab) master(t *testing.T, queue string) string {
	t.Helper()
	c, err := l.b.rdb.(*redis.ClusterClient).MasterForKey(t.Context(), l.b.prefix(queue)+"meta")
	if err != nil {
		t.Fatal(err)
	}
	return c.Options().Addr
}

func TestClusterTransmitterDiesBeforeOrAfterItsWrite(t *testing.T) {
	l := clusterLab(t, redistest.StartCluster(t))
	other := &lab{b: l.open(t)}
	c := l.begin(t)
	want := []string{}
	for i := range 6 {
		id := fmt.Sprint("m", i)
		l.say(t, c, id)
		want = append(want, id)
		l.wantReady(t, "nothing is written straight into another slot", "work", fmt.Sprint(want[:i]))
		head := l.head(t)
		if i%2 == 0 { // it writes, and dies before it can say so
			a, err := l.b.arrive(t.Context(), l.b.prefix("home"), "//t/Work", "work", head, "")
			if err != nil || a[0] != "stored" {
				t.Fatalf("arrive: %v, %v", a, err)
			}
		}
		other.transmit(t) // the dead one's lease still runs
		l.advance(5 * time.Second)
		other.transmit(t)
		other.transmit(t)
		l.wantReady(t, "once and in order", "work", fmt.Sprint(want))
	}
	for _, q := range []string{"home", "work"} {
		if d, err := l.b.Audit(t.Context(), q); err != nil || !d.Clean() {
			t.Errorf("audit of %s: %v, %v", q, d, err)
		}
	}
}

// cutter makes connections that lose one reply when told to.
type cutter struct {
	mu   sync.Mutex // guards armed and cut
	word string     // the request whose reply is lost
	cut  int        // how many replies were lost
}

type cutConn struct {
	net.Conn
	c    *cutter
	lose bool
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, c: c}, nil
}

func (c *cutConn) Write(p []byte) (int, error) {
	c.c.mu.Lock()
	if c.c.word != "" && strings.Contains(string(p), c.c.word) {
		c.c.word, c.lose = "", true
		c.c.cut++
	}
	c.c.mu.Unlock()
	return c.Conn.Write(p)
}

// Read loses what it reads, so that the request has happened by then.
func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.lose && n > 0 {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// A Cluster's client repeats what a broken connection leaves unknown, whatever its options say. A turn that is repeated would settle
// twice.
func TestClusterRepeatsNoCallByItself(t *testing.T) {
	c := redistest.StartCluster(t)
	l := clusterLab(t, c)
	cut := &cutter{}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Dialer: cut.dial, MaxRetries: -1, ContextTimeoutEnabled: true})
	b, err := start(t.Context(), l.opt, rdb, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	for i := range 3 {
		if _, err := b.Send(t.Context(), "work", broker.Outgoing{Body: []byte(fmt.Sprint("m", i))}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := b.OpenReader(t.Context(), "work", broker.ReaderOptions{Slots: 1, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := r.Turn(t.Context(), broker.TurnRequest{Free: []int{0}, Empty: 1, Top: 1})
	if err != nil || len(rep.Units) != 1 {
		t.Fatalf("turn: %+v, %v", rep, err)
	}
	cut.mu.Lock()
	cut.word = b.scripts["turn"].sha
	cut.mu.Unlock()
	rep, err = r.Turn(t.Context(), broker.TurnRequest{Settle: []broker.Settlement{{Unit: rep.Units[0], Verdict: broker.VerdictCommit}}, Top: 1})
	if err != nil || len(rep.Results) != 1 || rep.Results[0].Consequence != broker.Committed {
		t.Fatalf("turn over a broken connection: %+v, %v", rep, err)
	}
	if cut.cut != 1 {
		t.Fatalf("%d replies were lost, want 1", cut.cut)
	}
	l.wantReady(t, "the rest", "work", "[m1 m2]")
	info, err := b.Queue(t.Context(), "work")
	if err != nil || info.Counts.Ready != 2 || info.Counts.Locked != 0 {
		t.Fatalf("counts %+v, %v", info.Counts, err)
	}
}

func TestClusterAdministration(t *testing.T) {
	c := redistest.StartCluster(t)
	l := clusterLab(t, c)
	ctx := t.Context()
	var queues []string
	d := broker.Definitions{}
	for i := range 12 {
		queues = append(queues, fmt.Sprint("q", i))
		d.Queues = append(d.Queues, broker.DefaultQueue(queues[i], false))
	}
	l.apply(t, d)
	for _, q := range queues[:6] {
		if _, err := l.b.Send(ctx, q, broker.Outgoing{Body: []byte("m")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Nodes[1].Client(t).ScriptFlush(ctx).Err(); err != nil { // one node has lost its scripts
		t.Fatal(err)
	}
	work, err := l.b.Sweep(ctx, queues)
	slices.Sort(work)
	if err != nil || !slices.Equal(work, queues[:6]) {
		t.Fatalf("sweep: %v, %v", work, err)
	}
	for _, q := range queues[:3] {
		if n, err := l.b.Purge(ctx, q); err != nil || n != 1 {
			t.Fatalf("purge %s: %d, %v", q, n, err)
		}
	}
	for _, q := range queues {
		if err := l.b.DeleteQueue(ctx, q); err != nil {
			t.Fatalf("delete %s: %v", q, err)
		}
		n := 0
		if err := l.b.eachKey(ctx, l.b.prefix(q), func(keys []string) error { n += len(keys); return nil }); err != nil || n > 0 {
			t.Fatalf("%d keys of %s are left, %v", n, q, err)
		}
	}
	l.do(t, "DEL", l.b.prefix("work")+"meta", l.b.prefix("work")+"s:5") // a master came back empty
	for range 2 {
		if _, err := l.b.Keep(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.b.Send(ctx, "work", broker.Outgoing{Body: []byte("again")}); err != nil {
		t.Fatalf("send to a queue that a master lost: %v", err)
	}
	l.wantReady(t, "made anew", "work", "[again]")
}
