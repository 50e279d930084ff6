package brokertest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/broker"
)

// lossy breaks the line for the next calls and returns how many.
func (d *driver) lossy() int {
	n := 1 + d.number("lost", 3)
	what := pick(d, "what is lost", []string{"reply", "call", "late"})
	d.note("lose %d: %s", n, what)
	switch what {
	case "reply":
		d.h.LoseReply(0, n)
	case "call":
		d.h.LoseCall(0, n)
	case "late":
		d.late = append(d.late, d.h.HoldCall(0))
	}
	return n
}

// turn makes a turn of some reader: some of what runs ends, some slots ask for more.
func (d *driver) turn(lost int) {
	awake := d.awake()
	r := pick(d, "reader", awake)
	req := broker.TurnRequest{Top: pick(d, "top", []int{1, 2, 8})}
	left := make([]int, len(r.slots))
	for i, slot := range r.slots {
		n := d.number("ended", len(slot)+1)
		left[i] = len(slot) - n
		for _, u := range slot[:n] {
			req.Settle = append(req.Settle, d.settlement(u))
		}
	}
	for i, n := range left {
		if n == 0 && d.chance("ask", 80) {
			req.Free = append(req.Free, i)
			req.Empty++
		}
	}
	for i := range left {
		if d.chance("ask for more", 25) {
			req.Free = append(req.Free, i)
		}
	}
	d.played(r, req, lost)
}

// played makes the turn and plays it in the model.
func (d *driver) played(r *modelReader, req broker.TurnRequest, lost int) {
	gone := d.expired(r)
	rep, err := r.r.Turn(d.ctx, req)
	d.h.Calm()
	d.tell(r, req, rep, err)
	if gone {
		d.lost(r, err)
		return
	}
	if lost > 0 && len(req.Settle) > 0 {
		d.m.seen["settlement over a broken line"]++
	}
	if err != nil {
		d.fail("turn of %s: %v", r.r.Name(), err)
	}
	if len(rep.Results) != len(req.Settle) {
		d.fail("%d results of %d settlements", len(rep.Results), len(req.Settle))
	}
	for _, st := range req.Settle {
		if len(st.Effects) > 0 {
			d.touch(allQueues...)
		}
	}
	d.touch(r.queue.Name)
	d.settled(r, req.Settle, rep.Results, lost)
	if err := d.m.handOut(r, req, rep.Units); err != nil {
		d.fail("turn of %s: %v", r.r.Name(), err)
	}
	off := !r.queue.status.CanReceive()
	if rep.Off != off && lost == 0 {
		d.fail("turn of %s says off: %v, want %v", r.r.Name(), rep.Off, off)
	}
	if off || rep.Again || rep.Alone || len(rep.Units) >= usable(r, req.Free, rep.Units) {
		return
	}
	if msg := d.m.starving(r.queue); msg != nil {
		d.fail("turn of %s gave %v for %d free slots, but %v could be delivered; stored: %s", r.r.Name(), names(rep.Units), len(req.Free),
			msg, d.stored(r.queue.Name))
	}
}

// settled plays the settlements in the model and compares what they led to. Over a broken line the reader may have to guess
// which kind of failure it was, never whether it was one.
func (d *driver) settled(r *modelReader, settle []broker.Settlement, results []broker.SettleResult, lost int) {
	d.m.hold(r.queue)
	for _, i := range settleOrder(settle) {
		st, got := settle[i], results[i]
		want := d.m.settle(d.unit(r, st.Unit), st)
		vague := lost > 0 && want != broker.Committed && want != broker.Refused
		if got.Consequence != want && !vague || (got.Err != nil) != (want == broker.Refused) && !vague {
			d.fail("settling %v led to %d (%v), want %d", unitNames(st.Unit), got.Consequence, got.Err, want)
		}
	}
}

// usable counts the offers in free that could be used: an uncertain unit has its slot for itself.
func usable(r *modelReader, free []int, units []*broker.Unit) int {
	n := 0
	for i, s := range free {
		alone := len(r.slots[s]) > 0 && r.slots[s][0].uncertain()
		if !alone || slices.Index(free, s) == i && slices.ContainsFunc(units, func(u *broker.Unit) bool { return u.Slot == s }) {
			n++
		}
	}
	return n
}

// stored tells where the messages of a queue are, for a failure message.
func (d *driver) stored(queue string) string {
	snap, err := d.h.Broker.Snapshot(d.ctx, queue)
	if err != nil {
		return err.Error()
	}
	var rows []string
	for _, m := range snap.Messages {
		rows = append(rows, rowName(m)+" "+m.LockName)
	}
	return fmt.Sprintf("%s; locks %v; ready %v; retry %v", strings.Join(rows, ", "), snap.Locks, snap.Ready, snap.Retry)
}

// settleOrder is the order in which a turn settles, which is the broker's own affair: plain units that commit, groups that
// commit, everything else.
func settleOrder(all []broker.Settlement) []int {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	rank := func(st broker.Settlement) int {
		switch {
		case st.Verdict != broker.VerdictCommit:
			return 2
		case st.Unit.Group != "":
			return 1
		}
		return 0
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(all[a]) - rank(all[b]) })
	return order
}

// tell notes a turn.
func (d *driver) tell(r *modelReader, req broker.TurnRequest, rep broker.TurnReply, err error) {
	d.note("turn of %s, free %v, top %d: %v", r.r.Name(), req.Free, req.Top, err)
	for i, st := range req.Settle {
		got := "?"
		if i < len(rep.Results) {
			got = fmt.Sprint(rep.Results[i].Consequence, " ", rep.Results[i].Err)
		}
		d.note("  settle %v in %d: verdict %d, pause %v: consequence %s", unitNames(st.Unit), st.Unit.Slot, st.Verdict, st.Pause, got)
		for _, e := range st.Effects {
			d.note("    effect %d on %s%s %s, message %d, group %s, code %d, after %v", e.Kind, e.Conversation, e.Queue, e.Message.MessageID, e.Index, e.Group, e.Code, e.After)
		}
	}
	for _, u := range rep.Units {
		d.note("  got %v of %q in %d", unitNames(u), u.Group, u.Slot)
	}
	if rep.Again || rep.Alone || rep.Off {
		d.note("  again %v, alone %v, off %v", rep.Again, rep.Alone, rep.Off)
	}
}

// unit finds the model's unit.
func (d *driver) unit(r *modelReader, u *broker.Unit) *modelUnit {
	i := slices.IndexFunc(r.slots[u.Slot], func(m *modelUnit) bool { return m.unit == u })
	if i < 0 {
		panic(fmt.Sprintf("unit %v is not in its slot", unitNames(u)))
	}
	return r.slots[u.Slot][i]
}

// settlement draws how a unit ends.
func (d *driver) settlement(u *modelUnit) broker.Settlement {
	switch pick(d, "verdict", []string{"commit", "commit", "commit", "fail", "fail", "pause", "dead", "release"}) {
	case "fail":
		return failure(u.unit)
	case "pause":
		return pause(u.unit, pick(d, "pause", []time.Duration{0, time.Second, 3 * time.Second}))
	case "dead":
		return broker.Settlement{Unit: u.unit, Verdict: broker.VerdictDeadLetter, Reason: "Unwanted"}
	case "release":
		return release(u.unit)
	}
	return commit(u.unit, d.effects(u)...)
}
