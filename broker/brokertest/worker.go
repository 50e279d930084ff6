package brokertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/broker"
)

// worker is a reader that a test plays by hand. A worker that is no longer used is a host that was killed: nothing of it
// goes on by itself.
type worker struct {
	s     *stage
	r     broker.Reader
	top   int
	slots [][]*broker.Unit // what each slot holds, first the one that runs
}

// open opens a reader with that many slots, and TOP 1, on queue.
func (s *stage) open(queue string, slots int) *worker {
	s.t.Helper()
	return s.openAt(s.h.Broker, queue, slots)
}

// openAt is open for one of the two clients.
func (s *stage) openAt(b Broker, queue string, slots int) *worker {
	s.t.Helper()
	r, err := b.OpenReader(s.ctx, queue, broker.ReaderOptions{Slots: slots, Limit: 1000, HostName: "test"})
	if err != nil {
		s.t.Fatalf("open reader on %s: %v", queue, err)
	}
	if r == nil || r.Slots() != slots {
		s.t.Fatalf("open reader on %s: got %v, want %d slots", queue, r, slots)
	}
	return &worker{s: s, r: r, top: 1, slots: make([][]*broker.Unit, slots)}
}

// turn makes one turn and keeps the books of the slots.
func (w *worker) turn(req broker.TurnRequest) (broker.TurnReply, error) {
	w.s.t.Helper()
	if req.Top == 0 {
		req.Top = w.top
	}
	rep, err := w.r.Turn(w.s.ctx, req)
	if err != nil {
		return rep, err
	}
	if len(rep.Results) != len(req.Settle) {
		w.s.t.Fatalf("turn: %d results for %d settlements", len(rep.Results), len(req.Settle))
	}
	for _, st := range req.Settle {
		i := st.Unit.Slot
		w.slots[i] = slices.DeleteFunc(w.slots[i], func(u *broker.Unit) bool { return u == st.Unit })
	}
	for _, u := range rep.Units {
		if u.Slot < 0 || u.Slot >= len(w.slots) || len(u.Messages) == 0 {
			w.s.t.Fatalf("turn handed out a broken unit: %+v", u)
		}
		w.slots[u.Slot] = append(w.slots[u.Slot], u)
	}
	return rep, nil
}

// free is the slots that hold nothing, and how many they are.
func (w *worker) free() []int {
	var free []int
	for i, us := range w.slots {
		if len(us) == 0 {
			free = append(free, i)
		}
	}
	return free
}

// receive asks for units for all empty slots.
func (w *worker) receive() broker.TurnReply {
	w.s.t.Helper()
	rep := w.settleTake()
	if rep.Off {
		w.s.t.Fatalf("receive: the queue is off")
	}
	return rep
}

// settleTake settles and asks for units for all slots that are empty then. It goes on while the broker says again.
func (w *worker) settleTake(settle ...broker.Settlement) broker.TurnReply {
	w.s.t.Helper()
	var all broker.TurnReply
	for n := 0; ; n++ {
		free := w.free()
		for _, st := range settle {
			if len(w.slots[st.Unit.Slot]) == 1 {
				free = append(free, st.Unit.Slot)
			}
		}
		rep, err := w.turn(broker.TurnRequest{Settle: settle, Free: free, Empty: len(free)})
		if err != nil {
			w.s.t.Fatalf("turn: %v", err)
		}
		rep.Units, rep.Results = append(all.Units, rep.Units...), append(all.Results, rep.Results...)
		all, settle = rep, nil
		if !rep.Again || len(w.free()) == 0 {
			return all
		}
		if n == 1000 {
			w.s.t.Fatalf("receive says again for ever")
		}
	}
}

// window asks for n units for one slot, whatever it holds.
func (w *worker) window(slot, n int) []*broker.Unit {
	w.s.t.Helper()
	free, empty := slices.Repeat([]int{slot}, n), 0
	if len(w.slots[slot]) == 0 {
		empty = 1
	}
	rep, err := w.turn(broker.TurnRequest{Free: free, Empty: empty})
	if err != nil {
		w.s.t.Fatalf("turn: %v", err)
	}
	return rep.Units
}

// one receives and wants exactly one unit, with the messages named ids.
func (w *worker) one(ids ...string) *broker.Unit {
	w.s.t.Helper()
	rep := w.receive()
	w.s.equal("received", names(rep.Units), "["+strings.Join(ids, "+")+"]")
	return rep.Units[0]
}

// none receives and wants nothing.
func (w *worker) none() {
	w.s.t.Helper()
	if rep := w.receive(); len(rep.Units) != 0 {
		w.s.t.Fatalf("received %v, want nothing", names(rep.Units))
	}
}

// settle settles one unit and takes nothing.
func (w *worker) settle(st broker.Settlement) broker.SettleResult {
	w.s.t.Helper()
	rep, err := w.turn(broker.TurnRequest{Settle: []broker.Settlement{st}})
	if err != nil {
		w.s.t.Fatalf("settle: %v", err)
	}
	return rep.Results[0]
}

// want settles one unit and fails the test unless that leads to c.
func (w *worker) want(c broker.Consequence, st broker.Settlement) {
	w.s.t.Helper()
	if r := w.settle(st); r.Consequence != c {
		w.s.t.Fatalf("settling %v led to %d (%v), want %d", names([]*broker.Unit{st.Unit}), r.Consequence, r.Err, c)
	}
}

// commit commits u with effects.
func (w *worker) commit(u *broker.Unit, effects ...broker.Effect) {
	w.s.t.Helper()
	w.want(broker.Committed, commit(u, effects...))
}

// fail rolls u back, and wants it back at once.
func (w *worker) fail(u *broker.Unit) {
	w.s.t.Helper()
	w.want(broker.RolledBack, failure(u))
}

// close closes the reader, which gives back what it holds.
func (w *worker) close() {
	w.s.t.Helper()
	if err := w.r.Close(w.s.ctx); err != nil {
		w.s.t.Fatalf("close: %v", err)
	}
}

// drain commits everything that is deliverable now and returns the names of the messages in the order of their commits.
func (w *worker) drain() []string {
	w.s.t.Helper()
	var order []string
	for range 10_000 {
		rep := w.receive()
		if len(rep.Units) == 0 {
			return order
		}
		for _, u := range rep.Units {
			w.commit(u)
			order = append(order, unitNames(u)...)
		}
	}
	w.s.t.Fatalf("the queue never gets empty")
	return nil
}

// commit is the settlement that commits u.
func commit(u *broker.Unit, effects ...broker.Effect) broker.Settlement {
	return broker.Settlement{Unit: u, Verdict: broker.VerdictCommit, Effects: effects}
}

// failure is the settlement of a handler that returned an error.
func failure(u *broker.Unit) broker.Settlement {
	return broker.Settlement{
		Unit: u, Verdict: broker.VerdictRollback, FailReason: broker.ReasonHandlerError, FailText: "it broke", Pause: -1,
	}
}

// pause is failure with a pause of d.
func pause(u *broker.Unit, d time.Duration) broker.Settlement {
	st := failure(u)
	st.Pause = d
	return st
}

// release is the settlement of a unit that never reached a handler.
func release(u *broker.Unit) broker.Settlement {
	return broker.Settlement{Unit: u, Verdict: broker.VerdictRelease}
}

// names is the names of the messages of units, those of one unit joined by "+".
func names(units []*broker.Unit) []string {
	all := make([]string, len(units))
	for i, u := range units {
		all[i] = strings.Join(unitNames(u), "+")
	}
	return all
}

// unitNames is the bodies of u's application messages and the kinds of its system messages.
func unitNames(u *broker.Unit) []string {
	ids := make([]string, len(u.Messages))
	for i, m := range u.Messages {
		ids[i] = name(m)
	}
	return ids
}

func name(m broker.Message) string {
	switch m.Kind {
	case broker.KindDialogTimer:
		return "Timer"
	case broker.KindError:
		return "Error"
	case broker.KindEndDialog:
		return "EndDialog"
	}
	return string(m.Body)
}

// numbered is prefix0 … prefix(n−1).
func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(prefix, i)
	}
	return ids
}
