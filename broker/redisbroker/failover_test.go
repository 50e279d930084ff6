package redisbroker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// failoversVariable asks for more failovers of each kind than a run of the suite makes (make failovers).
const failoversVariable = "PARLEY_FAILOVERS"

// failovers is how many of each kind a run makes, and the slowest handler in it.
func failovers(t *testing.T) (n int, slowest time.Duration) {
	t.Helper()
	v := os.Getenv(failoversVariable)
	if v == "" {
		return 1, 100 * time.Millisecond
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: give a number of failovers", failoversVariable, v)
	}
	return n, 700 * time.Millisecond
}

// traffic is load of numbered messages whose handlers write down, in their group's state, what they committed: what the state says in the
// end is the history that survived.
type traffic struct {
	t       *testing.T
	b       *Broker
	slowest time.Duration
	quiet   chan struct{} // closed when nothing more is sent
	stop    chan struct{} // closed when readers and housekeeping end
	senders sync.WaitGroup
	wg      sync.WaitGroup

	mu     sync.Mutex          // guards the fields below
	sent   map[string][]string // group → ids whose send was confirmed, in order
	others map[string]bool     // ids of which the sender does not know
	runs   int
}

// stream is one sender's messages: a session's, or a dialog's.
type stream struct {
	name   string
	handle string // of a dialog, at the sender
	n      int
}

func startTraffic(t *testing.T, url string, slowest time.Duration) *traffic {
	t.Helper()
	b, err := Open(t.Context(), Options{URL: url, Namespace: redistest.Namespace(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	contracts := []string{broker.ContractDefault}
	_, err = b.Apply(t.Context(), broker.Definitions{
		Queues:   []broker.QueueSettings{broker.DefaultQueue("q", false), broker.DefaultQueue("work", true), broker.DefaultQueue("home", true)},
		Services: []broker.Service{{Name: "//t/Work", Queue: "work", Contracts: contracts}, {Name: "//t/Home", Queue: "home", Contracts: contracts}},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	return &traffic{t: t, b: b, slowest: slowest, quiet: make(chan struct{}), stop: make(chan struct{}), sent: map[string][]string{}, others: map[string]bool{}}
}

// run starts senders, readers and housekeeping.
func (x *traffic) run() {
	ctx := x.t.Context()
	for i := range 3 {
		x.senders.Go(func() { x.sendSession(ctx, &stream{name: fmt.Sprint("s", i)}) })
		x.senders.Go(func() { x.sendDialog(ctx, &stream{name: fmt.Sprint("d", i)}) })
		x.wg.Go(func() { x.serve(ctx, "q") })
		x.wg.Go(func() { x.serve(ctx, "work") })
	}
	x.wg.Go(func() {
		for !over(x.stop) {
			_, _ = x.b.Keep(ctx) // a node is away for a while
			pauseFor(ctx, 50*time.Millisecond)
		}
	})
}

// over says whether one of the two was closed.
func over(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (x *traffic) sendSession(ctx context.Context, s *stream) {
	for ; !over(x.quiet); s.n++ {
		id := fmt.Sprintf("%s-%d.", s.name, s.n)
		_, err := x.b.Send(ctx, "q", broker.Outgoing{MessageID: id, SessionID: s.name, Body: []byte(id)})
		x.note("q s:"+s.name, id, err)
		pauseFor(ctx, x.slowest) // half of what the readers can do
	}
}

// sendDialog sends on a dialog, and begins another when that is lost.
func (x *traffic) sendDialog(ctx context.Context, s *stream) {
	for gen := 0; !over(x.quiet); s.n++ {
		if s.handle == "" {
			e, err := x.b.Begin(ctx, broker.Dialog{From: "//t/Home", To: "//t/Work"})
			if err != nil {
				pauseFor(ctx, 20*time.Millisecond)
				continue
			}
			gen++
			s.handle = e.Handle
		}
		id := fmt.Sprintf("%s_%d-%d.", s.name, gen, s.n)
		_, err := x.b.SendOn(ctx, s.handle, broker.Outgoing{MessageID: id, Body: []byte(id)})
		x.note("work g:"+x.b.farHandle("//t/Work", s.handle), id, err)
		if errors.Is(err, broker.ErrUnknownConversation) || errors.Is(err, broker.ErrConversationEnded) {
			s.handle = ""
		}
		pauseFor(ctx, x.slowest)
	}
}

func (x *traffic) note(group, id string, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		x.others[id] = true
		return
	}
	x.sent[group] = append(x.sent[group], id)
}

// serve is one reader after the other; one that is refused or fails is closed, and another opened.
func (x *traffic) serve(ctx context.Context, queue string) {
	for !over(x.stop) {
		r, err := x.b.OpenReader(ctx, queue, broker.ReaderOptions{Slots: 1, Limit: 100, Lease: 2 * time.Second})
		if err != nil || r == nil {
			pauseFor(ctx, 20*time.Millisecond)
			continue
		}
		x.turns(ctx, r)
		cctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		_ = r.Close(cctx)
		cancel()
	}
}

func (x *traffic) turns(ctx context.Context, r broker.Reader) {
	req := oneSlot()
	for !over(x.stop) || len(req.Settle) > 0 {
		rep, err := r.Turn(ctx, req)
		if err != nil {
			return
		}
		req = oneSlot()
		if len(rep.Units) == 0 {
			pauseFor(ctx, 10*time.Millisecond)
			continue
		}
		u := rep.Units[0]
		m := &u.Messages[0]
		if m.Kind != broker.KindApp {
			req.Settle = []broker.Settlement{{Unit: u, Verdict: broker.VerdictCommit}}
			continue
		}
		x.mu.Lock()
		x.runs++
		x.mu.Unlock()
		pauseFor(ctx, rand.N(x.slowest))
		state := append(slices.Clone(u.State["did"]), m.Body...)
		req.Settle = []broker.Settlement{{Unit: u, Verdict: broker.VerdictCommit, Effects: []broker.Effect{{Kind: broker.EffectPutState, Key: "did", Value: state}}}}
	}
}

// ran waits until n handlers have run.
func (x *traffic) ran(n int) {
	x.t.Helper()
	x.mu.Lock()
	want := x.runs + n
	x.mu.Unlock()
	redistest.Eventually(x.t, "handlers run", func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.runs >= want
	})
}

// settle waits until nothing is left to do.
func (x *traffic) settle() {
	x.t.Helper()
	redistest.Eventually(x.t, "all that waits is handled", func() bool {
		for _, q := range []string{"q", "work", "home"} {
			info, err := x.b.Queue(x.t.Context(), q)
			if c := info.Counts; err != nil || c.Ready+c.Locked+c.Retrying+c.Transmission > 0 {
				return false
			}
		}
		return true
	})
}

// check compares what was committed with what was sent, less what the old master had and the server that has its queue now never got.
func (x *traffic) check(old redistest.History, has func(queue string) redistest.History) (lost int) {
	x.t.Helper()
	ctx, given := x.t.Context(), x.givenAgain()
	for group, ids := range x.sent {
		queue, g, _ := strings.Cut(group, " ")
		now := has(queue)
		did, err := x.b.rdb.HGet(ctx, x.b.prefix(queue)+"st:"+g, "did").Result()
		if err != nil && !isNil(err) {
			x.t.Fatal(err)
		}
		got, last := map[string]int{}, -1
		for id := range strings.SplitSeq(strings.TrimSuffix(did, "."), ".") {
			got[id+"."]++
			_, number, _ := strings.Cut(id, "-")
			n, _ := strconv.Atoi(number)
			if id != "" && n <= last {
				x.t.Errorf("%s: %s came after number %d: %s", group, id, last, did)
			}
			last = n
		}
		for _, id := range ids {
			stored := now.Has(id)
			switch {
			case !stored && !old.Has(id):
				x.t.Errorf("%s: %s was acknowledged, and neither server has ever had it", group, id)
			case !stored:
				lost++
			case got[id] == 0 && given[id]: // the source lost a message that had arrived, and gave this one its number: told, and documented
			case got[id] != 1:
				x.t.Errorf("%s: Redis has kept %s, and it was committed %d times", group, id, got[id])
			}
		}
	}
	for _, q := range []string{"q", "work", "home"} {
		if info, err := x.b.Queue(ctx, q); err != nil || info.Status != broker.QueueActive || info.Counts.DeadLetter > 0 {
			x.t.Errorf("queue %s is %s, %+v, %v", q, info.Status, info.Counts, err)
		}
	}
	rep, err := x.b.Audit(ctx)
	if err != nil || !rep.Clean() {
		x.t.Errorf("audit: %+v, %v", rep, err)
	}
	return lost
}

// givenAgain are the ids of messages that had the number of another one, as the events tell.
func (x *traffic) givenAgain() map[string]bool {
	x.t.Helper()
	events, err := x.b.rdb.XRange(x.t.Context(), x.b.prefix("work")+"events", "-", "+").Result()
	if err != nil {
		x.t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, e := range events {
		if e.Values["type"] == "sequence_repeated" {
			ids[fmt.Sprint(e.Values["message_id"])] = true
		}
	}
	return ids
}

// failLagging makes one failover under load: the replica takes over without what its master did last, and the master is gone before it could
// follow it. moved tells clients where the new one is.
func failLagging(t *testing.T, x *traffic, master, replica *redistest.Server, cluster []*redistest.Server, moved func()) {
	t.Helper()
	x.run()
	x.ran(20)
	replica.Succeed(t, 150*time.Millisecond+x.slowest/2, cluster != nil)
	master.Kill(t)
	moved()
	x.ran(20)
	x.finish()
	lost := x.check(master.History(t), func(queue string) redistest.History {
		for _, s := range cluster {
			if s != master && s.Addr() == (&lab{b: x.b}).master(t, queue) {
				return s.History(t)
			}
		}
		return replica.History(t)
	})
	t.Logf("%d handlers ran, %d acknowledged messages were lost by Redis", x.runs, lost)
}

// finish ends the senders, waits until the readers have handled what is left, and stops these.
func (x *traffic) finish() {
	x.t.Helper()
	close(x.quiet)
	x.senders.Wait()
	x.settle()
	close(x.stop)
	x.wg.Wait()
}

// TestAFailoverToALaggingReplicaLosesOnlyWhatRedisLost: one master behind an address that moves to its replica.
func TestAFailoverToALaggingReplicaLosesOnlyWhatRedisLost(t *testing.T) {
	n, slowest := failovers(t)
	for range n {
		master := redistest.Start(t, redistest.Persistent())
		replica := master.StartReplica(t, redistest.Persistent())
		front := redistest.NewFront(t, master.Addr())
		x := startTraffic(t, front.URL(), slowest)
		failLagging(t, x, master, replica, nil, func() { front.Switch(replica.Addr()) })
	}
}

// TestATakeoverOnAClusterLosesOnlyWhatRedisLost: the replica of one of three masters takes its slots without asking.
func TestATakeoverOnAClusterLosesOnlyWhatRedisLost(t *testing.T) {
	n, slowest := failovers(t)
	for range n {
		c := redistest.StartCluster(t, redistest.Persistent())
		x := startTraffic(t, clusterURL(c), slowest)
		at := slices.Index(c.Addrs(), (&lab{b: x.b}).master(t, "q"))
		replica := c.AddReplica(t, at, redistest.Persistent())
		failLagging(t, x, c.Nodes[at], replica, c.Nodes, func() {})
	}
}
