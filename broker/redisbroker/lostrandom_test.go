package redisbroker

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// TestRandomLosses has readers, that fail, stall, lose replies and die, work off numbered messages of sessions, conversations and
// none, on a server that again and again loses its last writes. The queue did holds what was committed: the same history as the rest.
// PARLEY_LOSS_SEED plays one seed again, PARLEY_RANDOM_STEPS says how many steps a seed has.
func TestRandomLosses(t *testing.T) {
	steps := 250
	if v := os.Getenv("PARLEY_RANDOM_STEPS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		steps = n
	}
	seeds := []uint64{rand.Uint64N(1e6), rand.Uint64N(1e6)}
	if v := os.Getenv("PARLEY_LOSS_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds = []uint64{n}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			newLosses(t, seed).play(steps)
		})
	}
}

// losses is a run, with what its history must be.
type losses struct {
	*lost
	rnd     *rand.Rand
	now     history
	past    []history // at earlier instants, oldest first
	readers []*worker
	late    []func() bool // calls that are still under way
	sent    int           // bodies are unique
	trace   []string
}

// history is what the server has after some step, as far as this test has to know it.
type history struct {
	written int64
	chains  []chain
	counts  map[string]int // body → failures of handlers
}

// chain is a session, a conversation or, when both are empty, a message of its own: what was sent, in order.
type chain struct {
	session, handle string
	bodies          []string
}

// queue is where the messages of a session are sent, and those of none.
func (c *chain) queue() string {
	if c.session != "" {
		return "q"
	}
	return "p"
}

// worker is a reader with the units it runs.
type worker struct {
	queue string
	r     *reader
	units []*broker.Unit
}

// worked are the queues that readers are opened on: of sessions, of plain messages only, of conversations.
var worked = []string{"q", "p", "work"}

// pastKept is how many steps a loss can take back.
const pastKept = 8

func newLosses(t *testing.T, seed uint64) *losses {
	s := redistest.Start(t, redistest.Persistent())
	_, l := newHarness(t, s.URL(), nil)
	x := &losses{lost: &lost{lab: l, t: t, s: s}, rnd: rand.New(rand.NewPCG(seed, 1)), now: history{counts: map[string]int{}}}
	l.apply(t, broker.Definitions{
		Queues: []broker.QueueSettings{
			broker.DefaultQueue("q", false), broker.DefaultQueue("p", false), broker.DefaultQueue("did", false), broker.DefaultQueue("home", true), broker.DefaultQueue("work", true),
		},
		Services: []broker.Service{
			{Name: "//t/Home", Queue: "home", Contracts: []string{broker.ContractDefault}},
			{Name: "//t/Work", Queue: "work", Contracts: []string{broker.ContractDefault}},
		},
	})
	x.remember()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last steps:\n%s", strings.Join(x.trace[max(0, len(x.trace)-60):], "\n"))
		}
	})
	return x
}

func (x *losses) note(format string, args ...any) {
	x.trace = append(x.trace, fmt.Sprintf(format, args...))
}

func (h history) clone() history {
	h.chains, h.counts = slices.Clone(h.chains), maps.Clone(h.counts)
	for i := range h.chains {
		h.chains[i].bodies = slices.Clone(h.chains[i].bodies)
	}
	return h
}

// remember keeps what the history is now.
func (x *losses) remember() {
	x.now.written = x.s.Written(x.t)
	x.past = append(x.past, x.now.clone())
	x.past = x.past[max(0, len(x.past)-pastKept):]
}

// play makes the steps, and looks at what is left at the end.
func (x *losses) play(steps int) {
	for i := range steps {
		switch n := x.rnd.IntN(100); {
		case n < 30:
			x.sendOne()
		case n < 70:
			x.turnOne()
		case n < 76:
			x.renewOne()
		case n < 80:
			x.leave()
		case n < 90:
			x.pass(time.Duration(x.rnd.IntN(4000)) * time.Millisecond)
		case n < 93:
			x.arrive()
		case n < 96:
			x.disturb()
		default:
			x.loseSome()
		}
		x.remember()
		if i%25 == 24 {
			x.clean()
		}
		if x.t.Failed() {
			x.t.Fatalf("after step %d", i)
		}
	}
	x.finish()
}

// sendOne sends the next message of some chain.
func (x *losses) sendOne() {
	x.sent++
	i := x.rnd.IntN(len(x.now.chains) + 1)
	if i == len(x.now.chains) {
		c := chain{}
		switch x.rnd.IntN(3) {
		case 0:
			c.session = fmt.Sprint("s", x.sent)
		case 1:
			e, err := x.b.Begin(x.t.Context(), broker.Dialog{From: "//t/Home", To: "//t/Work"})
			if err != nil {
				x.t.Fatal(err)
			}
			c.handle = e.Handle
		}
		x.now.chains = append(x.now.chains, c)
	}
	c := &x.now.chains[i]
	if c.session == "" && c.handle == "" && len(c.bodies) > 0 {
		return // a plain message is alone
	}
	body := fmt.Sprint("m", x.sent)
	m := broker.Outgoing{SessionID: c.session, Body: []byte(body)}
	var err error
	if c.handle != "" {
		_, err = x.b.SendOn(x.t.Context(), c.handle, m)
	} else {
		_, err = x.b.Send(x.t.Context(), c.queue(), m)
	}
	if err != nil {
		x.t.Fatalf("send %s: %v", body, err)
	}
	x.note("send %s of %q %.8s", body, c.session, c.handle)
	c.bodies = append(c.bodies, body)
}

// arrive opens a reader.
func (x *losses) arrive() *worker {
	if len(x.readers) >= 4 {
		return x.readers[x.rnd.IntN(len(x.readers))]
	}
	w := &worker{queue: worked[x.rnd.IntN(len(worked))]}
	r, err := x.b.OpenReader(x.t.Context(), w.queue, broker.ReaderOptions{Slots: 3, Limit: 100, Lease: 10 * time.Second})
	if err != nil {
		x.t.Fatal(err)
	}
	w.r = r.(*reader)
	x.note("%s opens on %s", w.r.Name(), w.queue)
	x.readers = append(x.readers, w)
	return w
}

func (x *losses) some() *worker {
	if len(x.readers) == 0 {
		return x.arrive()
	}
	return x.readers[x.rnd.IntN(len(x.readers))]
}

// turnOne settles some of what a reader runs, and receives.
func (x *losses) turnOne() {
	w := x.some()
	req := broker.TurnRequest{Top: 1}
	busy := map[int]bool{}
	var open []*broker.Unit
	for _, u := range w.units {
		switch n := x.rnd.IntN(10); {
		case n < 6:
			req.Settle = append(req.Settle, commitNoted(u))
		case n == 6 && x.now.counts[bodyOf(u)] < 2:
			req.Settle = append(req.Settle, broker.Settlement{Unit: u, Verdict: broker.VerdictRollback, FailReason: "HandlerError"})
		case n == 7:
			req.Settle = append(req.Settle, broker.Settlement{Unit: u, Verdict: broker.VerdictRelease})
		default:
			open = append(open, u)
			busy[u.Slot] = true
		}
	}
	for s := range 3 {
		if !busy[s] {
			req.Free = append(req.Free, s)
		}
	}
	req.Empty = len(req.Free)
	rep, err := w.r.Turn(x.t.Context(), req)
	x.note("%s turns: settles %d, gets %d, %v", w.r.Name(), len(req.Settle), len(rep.Units), err)
	if err != nil {
		x.lostOne(w, err)
		return
	}
	for _, res := range rep.Results {
		x.note("  %s: %d %v", bodyOf(res.Unit), res.Consequence, res.Err)
		if res.Err != nil {
			x.t.Errorf("the reader's turn was done, and one of its units not: %s: %v", bodyOf(res.Unit), res.Err)
		}
		if res.Consequence == broker.RolledBack {
			x.now.counts[bodyOf(res.Unit)]++
		}
	}
	for _, u := range rep.Units {
		x.note("  got %s", bodyOf(u))
		x.checkCount(u)
	}
	w.units = append(open, rep.Units...)
}

// commitNoted settles a unit, and notes it in the queue did with the commit.
func commitNoted(u *broker.Unit) broker.Settlement {
	return broker.Settlement{Unit: u, Verdict: broker.VerdictCommit, Effects: []broker.Effect{
		{Kind: broker.EffectSendTo, Queue: "did", Message: broker.Outgoing{Body: u.Messages[0].Body}},
	}}
}

func bodyOf(u *broker.Unit) string { return string(u.Messages[0].Body) }

// checkCount wants what failed to be counted, and nothing else. Readers that die here hold nothing (leave), so no death is counted.
func (x *losses) checkCount(u *broker.Unit) {
	x.t.Helper()
	if got, want := u.Messages[0].DeliveryCount, x.now.counts[bodyOf(u)]; got != want {
		x.t.Errorf("%s counts %d failures; it had %d", bodyOf(u), got, want)
	}
}

// lostOne gives a reader up after a failed call.
func (x *losses) lostOne(w *worker, err error) {
	x.t.Helper()
	if !errors.Is(err, broker.ErrLockLost) && !errors.Is(err, broker.ErrUnreachable) {
		x.t.Errorf("reader %s: %v", w.r.Name(), err)
	}
	x.close(w)
}

func (x *losses) close(w *worker) {
	x.t.Helper()
	x.wire.calm()
	if err := w.r.Close(x.t.Context()); err != nil {
		x.t.Errorf("close: %v", err)
	}
	x.note("%s closes", w.r.Name())
	x.readers = slices.DeleteFunc(x.readers, func(o *worker) bool { return o == w })
}

func (x *losses) renewOne() {
	w := x.some()
	err := w.r.Renew(x.t.Context())
	x.note("%s renews: %v", w.r.Name(), err)
	if err != nil {
		x.lostOne(w, err)
	}
}

// leave closes a reader with what it runs, or drops one that runs nothing.
func (x *losses) leave() {
	w := x.some()
	if len(w.units) > 0 || x.rnd.IntN(2) == 0 {
		x.close(w)
		return
	}
	x.note("%s dies", w.r.Name())
	x.readers = slices.DeleteFunc(x.readers, func(o *worker) bool { return o == w })
}

// pass lets time pass, less than a lease, with every reader renewed after it and housekeeping done.
func (x *losses) pass(d time.Duration) {
	x.wire.calm()
	x.clock.Add(d.Milliseconds())
	for _, w := range slices.Clone(x.readers) {
		if err := w.r.Renew(x.t.Context()); err != nil {
			x.lostOne(w, err)
		}
	}
	x.note("%v pass", d)
	x.keep()
}

func (x *losses) keep() {
	x.t.Helper()
	if _, err := x.b.Keep(x.t.Context()); err != nil {
		x.t.Fatalf("housekeeping: %v", err)
	}
}

// disturb has something happen to the next calls, or lets those happen that were held up.
func (x *losses) disturb() {
	if x.rnd.IntN(2) == 0 {
		for _, deliver := range x.late {
			x.note("a late call happens: %v", deliver())
		}
		x.late = nil
	}
	w := x.some()
	skip, n := x.rnd.IntN(2), 1+x.rnd.IntN(2)
	switch x.rnd.IntN(3) {
	case 0:
		x.note("replies will be lost")
		x.wire.loseReply(skip, n)
	case 1:
		x.note("calls will be lost")
		x.wire.loseCall(skip, n)
	case 2:
		x.note("a call will be late")
		x.late = append(x.late, x.wire.hold(skip))
	}
	x.readers = slices.DeleteFunc(x.readers, func(o *worker) bool { return o == w })
	x.readers = append(x.readers, w)
	x.turnOf(w)
	x.wire.calm()
}

// turnOf has w turn.
func (x *losses) turnOf(w *worker) {
	others := x.readers
	x.readers = []*worker{w}
	x.turnOne()
	left := x.readers
	x.readers = slices.DeleteFunc(others, func(o *worker) bool { return o == w && len(left) == 0 })
}

// loseSome takes the server some steps back.
func (x *losses) loseSome() {
	h := x.past[x.rnd.IntN(len(x.past))]
	x.note("the server loses its last writes: %d of %d bytes", x.s.Written(x.t)-h.written, h.written)
	x.wire.calm()
	x.lose(h.written)
	x.now, x.past = h.clone(), nil
	x.clean()
}

// finish has everything worked off, and compares.
func (x *losses) finish() {
	x.wire.calm()
	for _, w := range slices.Clone(x.readers) {
		x.close(w)
	}
	for range 4 {
		x.clock.Add(70_000)
		x.keep()
	}
	for _, queue := range worked {
		x.workOff(queue)
	}
	x.clean()
	for _, queue := range worked {
		s, err := x.b.Snapshot(x.t.Context(), queue)
		if err != nil {
			x.t.Fatal(err)
		}
		if len(s.Locks)+len(s.Readers)+len(s.Ready)+s.Attempts != 0 || s.Counts.Ready+s.Counts.Locked != 0 {
			x.t.Errorf("left in %s: locks %v, readers %v, ready %v, %d attempts, counts %+v", queue, s.Locks, s.Readers, s.Ready, s.Attempts, s.Counts)
		}
	}
	x.compare()
}

func (x *losses) workOff(queue string) {
	x.t.Helper()
	o, err := x.b.OpenReader(x.t.Context(), queue, broker.ReaderOptions{Slots: 3, Limit: 100, Lease: 10 * time.Second})
	if err != nil {
		x.t.Fatal(err)
	}
	w := &worker{queue: queue, r: o.(*reader)}
	for {
		req := broker.TurnRequest{Top: 1, Free: []int{0, 1, 2}, Empty: 3}
		for _, u := range w.units {
			req.Settle = append(req.Settle, commitNoted(u))
		}
		rep, err := w.r.Turn(x.t.Context(), req)
		if err != nil {
			x.t.Fatal(err)
		}
		for _, u := range rep.Units {
			x.checkCount(u)
		}
		w.units = rep.Units
		if len(w.units) == 0 && !rep.Again {
			break
		}
	}
	if err := w.r.Close(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
}

// compare wants everything that was sent, and is not among what the server lost, to be committed once, each chain in its order.
func (x *losses) compare() {
	rows, err := x.b.Peek(x.t.Context(), "did", 0, 100_000)
	if err != nil {
		x.t.Fatal(err)
	}
	at, n := map[string]int{}, map[string]int{}
	for i := range rows {
		at[string(rows[i].Body)] = i
		n[string(rows[i].Body)]++
	}
	want := 0
	for _, c := range x.now.chains {
		for i, b := range c.bodies {
			want++
			if n[b] != 1 {
				x.t.Errorf("%s was committed %d times; want once", b, n[b])
			}
			if i > 0 && at[b] < at[c.bodies[i-1]] {
				x.t.Errorf("%s was committed before %s, which was sent before it", b, c.bodies[i-1])
			}
		}
	}
	if len(rows) != want {
		x.t.Errorf("%d commits; want %d", len(rows), want)
	}
	x.note("%d messages", want)
}
