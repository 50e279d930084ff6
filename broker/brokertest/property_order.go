package brokertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/broker"
)

// orderCases is how many cases the two servers see together. The embedded one, whose Lua is slow, gets the smaller share.
const (
	orderCasesReal     = 4500
	orderCasesEmbedded = 500
	orderCasesAStage   = 250
)

// huntOrder plays cases random arrivals and hand-outs, and wants rule SM-5 to hold for every unit: of what waits of its
// conversation a timer comes first, then an Error, then the sequence.
func huntOrder(t *testing.T, open New, cases int) {
	hunting.Lock()
	defer hunting.Unlock()
	defer setFlag(t, "rapid.checks", fmt.Sprint(cases))()
	defer setFlag(t, "rapid.nofailfile", "true")()
	var p *orderPlay
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		if p == nil || p.broken || n%orderCasesAStage == 0 {
			p = newOrderPlay(t, open)
		}
		n++
		p.r, p.broken = r, true
		p.run()
		p.broken = false
	})
}

// talk is the target's side of one conversation, as it should be.
type talk struct {
	from, to string
	due      time.Duration // of its timer, from the start of the case; 0: it has fired
	timer    bool          // its DialogTimer waits
	err      bool          // its Error waits
	seq      []string      // what waits of the sequence
	ended    bool          // the far side ended
	held     *broker.Unit
}

// next is what waits, in receive order.
func (c *talk) next() []string {
	var all []string
	if c.timer {
		all = append(all, "Timer")
	}
	if c.err {
		all = append(all, "Error")
	}
	return append(all, c.seq...)
}

// take removes names from what waits.
func (c *talk) take(names []string) {
	for _, n := range names {
		switch n {
		case "Timer":
			c.timer = false
		case "Error":
			c.err = false
		default:
			c.seq = c.seq[1:]
		}
	}
}

// back undoes take.
func (c *talk) back(names []string) {
	var seq []string
	for _, n := range names {
		switch n {
		case "Timer":
			c.timer = true
		case "Error":
			c.err = true
		default:
			seq = append(seq, n)
		}
	}
	c.seq = append(seq, c.seq...)
}

// orderPlay plays cases on one broker.
type orderPlay struct {
	*stage
	r       *rapid.T
	broken  bool // a case did not come to its end
	readers []*worker
	talks   []*talk
	clock   time.Duration // since the case began
	named   int
	story   []string
}

func newOrderPlay(t testing.TB, open New) *orderPlay {
	p := &orderPlay{stage: newStage(t, open)}
	p.alter(workQueue, func(q *broker.QueueSettings) { q.Poison.On, q.MaxDelivery = false, 1_000_000 })
	p.readers = []*worker{p.open(workQueue, 2), p.open(workQueue, 1)}
	return p
}

func (p *orderPlay) run() {
	p.talks, p.clock, p.story = nil, 0, nil
	for i := range 2 {
		e, err := p.h.Broker.Begin(p.ctx, broker.Dialog{From: homeSvc, To: workSvc})
		if err != nil {
			p.t.Fatal(err)
		}
		c := &talk{from: e.Handle, to: e.FarHandle}
		p.talks = append(p.talks, c)
		p.sayNext(c)
		c.due = time.Duration(i+1) * time.Second
		p.timer(c.to, c.due)
	}
	steps := rapid.IntRange(2, 9).Draw(p.r, "steps")
	for range steps {
		p.step()
	}
	p.finish()
}

func (p *orderPlay) tell(format string, args ...any) {
	p.story = append(p.story, fmt.Sprintf(format, args...))
}

func (p *orderPlay) sayNext(c *talk) {
	p.named++
	id := fmt.Sprint("m", p.named)
	p.say(c.from, id)
	c.seq = append(c.seq, id)
	p.tell("%s arrives", id)
}

func (p *orderPlay) step() {
	c := rapid.SampledFrom(p.talks).Draw(p.r, "conversation")
	switch rapid.SampledFrom([]string{"say", "say", "end", "error", "tick", "take", "take", "settle", "settle"}).Draw(p.r, "step") {
	case "say":
		if !c.ended {
			p.sayNext(c)
		}
	case "end":
		if !c.ended {
			p.end(c.from, 0)
			c.ended, c.seq = true, append(c.seq, "EndDialog")
			p.tell("EndDialog arrives")
		}
	case "error":
		if !c.ended {
			p.end(c.from, 12)
			c.ended, c.err = true, true
			p.tell("Error arrives")
		}
	case "tick":
		p.tick()
	case "take":
		w := rapid.SampledFrom(p.readers).Draw(p.r, "reader")
		slot := rapid.IntRange(0, len(w.slots)-1).Draw(p.r, "slot")
		p.turn(w, nil, slices.Repeat([]int{slot}, rapid.IntRange(1, 2).Draw(p.r, "units")))
	case "settle":
		p.settleOne()
	}
}

// tick lets a second pass, and with it timers fire.
func (p *orderPlay) tick() {
	if p.clock >= 3*time.Second {
		return
	}
	p.clock += time.Second
	p.h.Advance(time.Second)
	p.queue(workQueue) // a look promotes what is due
	for _, c := range p.talks {
		if c.due > 0 && c.due <= p.clock {
			c.due, c.timer = 0, true
			p.tell("Timer fires")
		}
	}
}

// settleOne settles the first unit of a slot, and may take what comes next in the same turn.
func (p *orderPlay) settleOne() {
	w := rapid.SampledFrom(p.readers).Draw(p.r, "reader")
	slot := rapid.IntRange(0, len(w.slots)-1).Draw(p.r, "slot")
	if len(w.slots[slot]) == 0 {
		return
	}
	u := w.slots[slot][0]
	st := rapid.SampledFrom([]func(*broker.Unit) broker.Settlement{
		func(u *broker.Unit) broker.Settlement { return commit(u) }, failure, release,
	}).Draw(p.r, "verdict")(u)
	var free []int
	if rapid.Bool().Draw(p.r, "hand over") {
		free = []int{slot}
	}
	p.turn(w, []broker.Settlement{st}, free)
}

// turn makes one turn and checks what it hands out.
func (p *orderPlay) turn(w *worker, settle []broker.Settlement, free []int) int {
	empty := 0
	for _, s := range slices.Compact(slices.Clone(free)) {
		left := len(w.slots[s])
		for _, st := range settle {
			if st.Unit.Slot == s {
				left--
			}
		}
		if left == 0 {
			empty++
		}
	}
	top := rapid.SampledFrom([]int{1, 1, 2, 10}).Draw(p.r, "top")
	rep, err := w.turn(broker.TurnRequest{Settle: settle, Free: free, Empty: empty, Top: top})
	if err != nil {
		p.t.Fatalf("turn: %v", err)
	}
	for _, st := range settle {
		p.settled(st)
	}
	for _, u := range rep.Units {
		p.got(u)
	}
	return len(rep.Units)
}

// settled takes over what a settlement led to.
func (p *orderPlay) settled(st broker.Settlement) {
	c := p.talkOf(st.Unit)
	c.held = nil
	if st.Verdict != broker.VerdictCommit {
		c.back(unitNames(st.Unit))
	}
	p.tell("%v is settled with verdict %d", unitNames(st.Unit), st.Verdict)
}

// got checks one unit.
func (p *orderPlay) got(u *broker.Unit) {
	c, ids := p.talkOf(u), unitNames(u)
	p.tell("%v is handed out", ids)
	want := c.next()
	if c.held != nil || len(ids) > len(want) || !slices.Equal(ids, want[:len(ids)]) {
		p.r.Fatalf("got %v, what waits is %v, held %v, after\n%s", ids, want, c.held != nil, strings.Join(p.story, "\n"))
	}
	c.take(ids)
	c.held = u
}

func (p *orderPlay) talkOf(u *broker.Unit) *talk {
	for _, c := range p.talks {
		if c.to == u.Messages[0].Conversation {
			return c
		}
	}
	p.t.Fatalf("%v belongs to no conversation of this case", unitNames(u))
	return nil
}

// finish commits everything, and wants everything to have come.
func (p *orderPlay) finish() {
	for quiet := 0; quiet < 2; {
		n := 0
		for _, w := range p.readers {
			for slot := range w.slots {
				var settle []broker.Settlement
				if len(w.slots[slot]) > 0 {
					settle = append(settle, commit(w.slots[slot][0]))
				}
				n += len(settle) + p.turn(w, settle, []int{slot})
			}
		}
		if n == 0 {
			quiet++
		} else {
			quiet = 0
		}
	}
	for _, c := range p.talks {
		if left := c.next(); len(left) > 0 {
			p.r.Fatalf("never handed out: %v, after\n%s", left, strings.Join(p.story, "\n"))
		}
		if c.due > 0 {
			p.timer(c.to, 0) // not to fire in a later case
		}
	}
}
