package redisbroker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// lost is a namespace on a server of its own that can lose its last writes, with the queues q and did.
type lost struct {
	*lab
	t *testing.T
	s *redistest.Server
}

func newLost(t *testing.T) *lost {
	s := redistest.Start(t, redistest.Persistent())
	_, l := newHarness(t, s.URL(), nil)
	x := &lost{lab: l, t: t, s: s}
	l.apply(t, broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("q", false), broker.DefaultQueue("did", false)}})
	return x
}

// lose takes the server back to how it was when it had written as much, and waits until clients are served.
func (x *lost) lose(written int64) {
	x.t.Helper()
	x.s.Lose(x.t, written)
	redistest.Eventually(x.t, "the server is back", func() bool { return x.b.rdb.Ping(x.t.Context()).Err() == nil })
}

func (x *lost) send(session string, bodies ...string) {
	x.t.Helper()
	for _, b := range bodies {
		if _, err := x.b.Send(x.t.Context(), "q", broker.Outgoing{SessionID: session, Body: []byte(b)}); err != nil {
			x.t.Fatal(err)
		}
	}
}

func (x *lost) reader() *reader {
	x.t.Helper()
	r, err := x.b.OpenReader(x.t.Context(), "q", broker.ReaderOptions{Slots: 1, Limit: 100, Lease: 10 * time.Second})
	if err != nil {
		x.t.Fatal(err)
	}
	return r.(*reader)
}

// take is a turn that settles nothing and must hand out the message with that body.
func (x *lost) take(r *reader, body string) *broker.Unit {
	x.t.Helper()
	rep, err := r.Turn(x.t.Context(), oneSlot())
	if err != nil || len(rep.Units) != 1 || string(rep.Units[0].Messages[0].Body) != body {
		x.t.Fatalf("received %v, %v; want one unit of %s", rep.Units, err, body)
	}
	return rep.Units[0]
}

// commit settles a unit that says in the queue did what was done, and returns what the same turn hands out.
func (x *lost) commit(r *reader, u *broker.Unit, effect bool) ([]*broker.Unit, error) {
	req := oneSlot()
	s := broker.Settlement{Unit: u, Verdict: broker.VerdictCommit}
	if effect {
		s.Effects = []broker.Effect{{Kind: broker.EffectSendTo, Queue: "did", Message: broker.Outgoing{Body: u.Messages[0].Body}}}
	}
	req.Settle = []broker.Settlement{s}
	rep, err := r.Turn(x.t.Context(), req)
	if err == nil {
		err = rep.Results[0].Err
	}
	return rep.Units, err
}

// rest receives and commits what waits, with a reader of its own, in order.
func (x *lost) rest() []string {
	x.t.Helper()
	r := x.reader()
	var got []string
	for {
		rep, err := r.Turn(x.t.Context(), oneSlot())
		if err != nil {
			x.t.Fatal(err)
		}
		if len(rep.Units) == 0 && !rep.Again {
			break
		}
		got = append(got, x.drain(r, rep.Units)...)
	}
	if err := r.Close(x.t.Context()); err != nil {
		x.t.Fatal(err)
	}
	return got
}

// drain commits units and what their commits hand out, and fails when one was counted.
func (x *lost) drain(r *reader, units []*broker.Unit) (got []string) {
	x.t.Helper()
	for len(units) > 0 {
		m := &units[0].Messages[0]
		got = append(got, string(m.Body))
		if m.DeliveryCount != 0 || m.PoisonCount != 0 {
			x.t.Errorf("%s was counted %d, %d times; nothing failed", m.Body, m.DeliveryCount, m.PoisonCount)
		}
		more, err := x.commit(r, units[0], true)
		if err != nil {
			x.t.Fatal(err)
		}
		units = more
	}
	return got
}

// check wants the bodies in the queue did, in any order, and every counter and lock right.
func (x *lost) check(did ...string) {
	x.t.Helper()
	rows, err := x.b.Peek(x.t.Context(), "did", 0, 100)
	if err != nil {
		x.t.Fatal(err)
	}
	var got []string
	for i := range rows {
		got = append(got, string(rows[i].Body))
	}
	slices.Sort(got)
	if !slices.Equal(got, did) {
		x.t.Errorf("committed: %v; want %v, each once", got, did)
	}
	x.clean()
}

func (x *lost) clean() {
	x.t.Helper()
	d, err := x.b.Audit(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	for _, y := range d.Differences {
		x.t.Errorf("audit: %s: %s: want %s, got %s", y.Queue, y.Rule, y.Want, y.Got)
	}
}

// The ways in which a reader meets the server again that has lost what it knows.
var meetings = map[string]func(x *lost, r *reader, u *broker.Unit) error{
	"by a turn": func(x *lost, r *reader, u *broker.Unit) error {
		_, err := x.commit(r, u, false)
		return err
	},
	"by a turn with effects": func(x *lost, r *reader, u *broker.Unit) error {
		_, err := x.commit(r, u, true)
		return err
	},
	"by a call whose reply was lost": func(x *lost, r *reader, u *broker.Unit) error {
		x.wire.loseReply(0, 1)
		_, err := x.commit(r, u, true)
		return err
	},
	"by a call that was lost": func(x *lost, r *reader, u *broker.Unit) error {
		x.wire.loseCall(0, 1)
		_, err := x.commit(r, u, true)
		return err
	},
	"by renew": func(x *lost, r *reader, _ *broker.Unit) error { return r.Renew(x.t.Context()) },
}

// TestLostCommitOfSession loses a commit and the hand-over that went with it.
func TestLostCommitOfSession(t *testing.T) {
	for name, meet := range meetings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newLost(t)
			x.send("s", "m0", "m1", "m2", "m3")
			r := x.reader()
			u := x.take(r, "m0")
			written := x.s.Written(t)
			units, err := x.commit(r, u, true)
			if err != nil || len(units) != 1 {
				t.Fatalf("the commit of m0 handed over %v, %v; want m1", units, err)
			}
			x.lose(written)
			if err := meet(x, r, units[0]); !errors.Is(err, broker.ErrLockLost) {
				t.Fatalf("the reader goes on with m1: %v; want ErrLockLost", err)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := x.rest(); !slices.Equal(got, []string{"m0", "m1", "m2", "m3"}) {
				t.Errorf("received after it %v; want m0 to m3 in order", got)
			}
			x.check("m0", "m1", "m2", "m3")
		})
	}
}

// TestLostHandOutOfPlain loses a hand-out: another reader gets the message, and only one of them can commit it.
func TestLostHandOutOfPlain(t *testing.T) {
	for _, effect := range []bool{true, false} {
		t.Run(fmt.Sprintf("effects %v", effect), func(t *testing.T) {
			t.Parallel()
			x := newLost(t)
			r1, r2 := x.reader(), x.reader()
			x.send("", "m0")
			written := x.s.Written(t)
			u1 := x.take(r1, "m0")
			x.lose(written)
			u2 := x.take(r2, "m0")
			if _, err := x.commit(r1, u1, effect); !errors.Is(err, broker.ErrLockLost) {
				t.Errorf("the reader whose hand-out was lost commits: %v; want ErrLockLost", err)
			}
			if _, err := x.commit(r2, u2, true); err != nil {
				t.Errorf("the other reader cannot commit: %v", err)
			}
			for _, r := range []*reader{r1, r2} {
				if err := r.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := x.rest(); got != nil {
				t.Errorf("received after it %v; want nothing", got)
			}
			x.check("m0")
		})
	}
}

// TestLostCommitOfIdleReader loses the last commit of a reader that holds nothing any more: what it holds on the server must not be
// stranded.
func TestLostCommitOfIdleReader(t *testing.T) {
	for name, after := range map[string]func(x *lost, r *reader) error{
		"it turns": func(x *lost, r *reader) error {
			_, err := r.Turn(x.t.Context(), oneSlot())
			return err
		},
		"it renews":         func(x *lost, r *reader) error { return r.Renew(x.t.Context()) },
		"it closes at once": func(*lost, *reader) error { return broker.ErrLockLost },
	} {
		for _, session := range []string{"s", ""} {
			t.Run(name+", session "+session, func(t *testing.T) {
				t.Parallel()
				x := newLost(t)
				x.send(session, "m0")
				r := x.reader()
				u := x.take(r, "m0")
				written := x.s.Written(t)
				if _, err := x.commit(r, u, true); err != nil {
					t.Fatal(err)
				}
				x.lose(written)
				if err := after(x, r); !errors.Is(err, broker.ErrLockLost) {
					t.Errorf("the reader whose last commit was lost: %v; want ErrLockLost", err)
				}
				if err := r.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				x.send(session, "m1")
				if got := x.rest(); !slices.Equal(got, []string{"m0", "m1"}) {
					t.Errorf("received after it %v; want m0, m1", got)
				}
				x.check("m0", "m1")
			})
		}
	}
}

// TestDeathsAroundALoss: what dies with a lease that an earlier server granted is not counted, what dies later is.
func TestDeathsAroundALoss(t *testing.T) {
	x := newLost(t)
	x.send("s", "m0")
	keep := func() {
		t.Helper()
		x.clock.Add(10_001)
		if _, err := x.b.Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int{0, 1, 2} {
		x.take(x.reader(), "m0") // and dies
		if i == 0 {
			x.lose(x.s.Written(t))
		}
		keep()
		rows, err := x.b.Peek(t.Context(), "q", 0, 1)
		if err != nil || len(rows) != 1 || rows[0].DeliveryCount != want || rows[0].PoisonCount != want {
			t.Fatalf("death %d: %+v, %v; want it counted %d times", i+1, rows, err, want)
		}
	}
	x.clean()
}

// TestLostRelease: a reader that closed, and whose release was lost, is reaped without a count.
func TestLostRelease(t *testing.T) {
	x := newLost(t)
	x.send("s", "m0")
	r := x.reader()
	x.take(r, "m0")
	written := x.s.Written(t)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.lose(written)
	x.clock.Add(10_001)
	if _, err := x.b.Keep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := x.rest(); !slices.Equal(got, []string{"m0"}) {
		t.Errorf("received after it %v; want m0", got)
	}
	x.check("m0")
}

// TestRenewWhileAResumeHasNoAnswer: the resume was done, so the old name is gone, and that says nothing; a reader that then gives up
// gives back what the new name holds.
func TestRenewWhileAResumeHasNoAnswer(t *testing.T) {
	for _, answered := range []bool{true, false} {
		for server, url := range map[string]func() (string, string){
			"real":     func() (string, string) { s := redistest.Shared(t); return s.URL(), s.Addr() },
			"embedded": func() (string, string) { s := redistest.StartEmbedded(t); return s.URL(), s.Addr() },
		} {
			t.Run(fmt.Sprintf("%s, answered %v", server, answered), func(t *testing.T) {
				direct, addr := url()
				_, l := newHarness(t, direct, nil)
				l.apply(t, broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("q", false)}})
				x := &lost{lab: l, t: t}
				x.send("s", "m0")
				p := redistest.NewProxy(t, addr)
				l.opt.URL = p.URL()
				b := l.open(t)
				o, err := b.OpenReader(t.Context(), "q", broker.ReaderOptions{Slots: 1, Limit: 100, Lease: 600 * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				p.CutReply(redistest.Command("EVALSHA", b.scripts["turn"].sha))
				held := p.HoldReply(redistest.Command("EVALSHA", b.scripts["resume"].sha))
				type answer struct {
					rep broker.TurnReply
					err error
				}
				done := make(chan answer, 1)
				go func() {
					rep, err := o.Turn(t.Context(), oneSlot())
					done <- answer{rep, err}
				}()
				held.Await(t)
				if err := o.Renew(t.Context()); err != nil {
					t.Errorf("renew while the resume has no answer: %v", err)
				}
				if answered {
					held.Release()
				}
				a := <-done
				// Without an answer the call is made again within the lease, or the turn fails; either way nothing is counted.
				if answered && (a.err != nil || len(a.rep.Units) != 1) || a.err == nil && len(a.rep.Units) != 1 {
					t.Errorf("the turn: %d units, %v", len(a.rep.Units), a.err)
				}
				if err := o.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				s, err := l.b.Snapshot(t.Context(), "q")
				if err != nil || len(s.Readers)+s.Attempts != 0 {
					t.Errorf("left after it closed: readers %v, %d counts, %v", s.Readers, s.Attempts, err)
				}
				d, err := l.b.Receive(t.Context(), "q", broker.ReceiveOptions{Max: 1})
				if err != nil || len(d) != 1 {
					t.Errorf("received at once after it: %+v, %v; want m0", d, err)
				}
			})
		}
	}
}

// TestNamesSurviveARollback: a client that connects after the namespace's numbers were lost is not taken for an earlier one, whose
// settlements are still remembered.
func TestNamesSurviveARollback(t *testing.T) {
	for server, url := range map[string]string{"real": redistest.Shared(t).URL(), "embedded": redistest.StartEmbedded(t).URL()} {
		t.Run(server, func(t *testing.T) {
			_, l := newHarness(t, url, nil)
			l.apply(t, broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("q", false)}})
			x := &lost{lab: l, t: t}
			x.send("", "m0", "m1")
			for i, s := range []broker.Settlement{
				{Verdict: broker.VerdictCommit}, {Verdict: broker.VerdictDeadLetter, Reason: "r"},
			} {
				l.do(t, "DEL", l.b.nsKey("boot"))
				b := l.open(t)
				d, err := b.Receive(t.Context(), "q", broker.ReceiveOptions{Max: 1})
				if err != nil || len(d) != 1 {
					t.Fatal(d, err)
				}
				s.Unit = d[0].Unit
				res, err := b.Settle(t.Context(), "q", d[0].Token, s)
				if want := []broker.Consequence{broker.Committed, broker.DeadLettered}[i]; err != nil || res.Consequence != want {
					t.Errorf("settlement %d: consequence %d, %v; want %d", i, res.Consequence, err, want)
				}
			}
			q, err := l.b.Queue(t.Context(), "q")
			if err != nil || q.Counts.Locked != 0 || q.Counts.DeadLetter != 1 {
				t.Errorf("left: %+v, %v; want one dead letter", q.Counts, err)
			}
		})
	}
}
