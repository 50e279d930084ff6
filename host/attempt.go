package host

import (
	"context"
	"time"

	"parley/broker"
)

// runs makes the attempts of one reader. An Invocation is kept for each slot, since a slot runs one unit at a time and a
// Runner keeps nothing of it.
type runs struct {
	m      *monitor
	reader string
	inv    []Invocation
}

func newRuns(m *monitor, reader string, slots int) *runs {
	rs := &runs{m: m, reader: reader, inv: make([]Invocation, slots)}
	for i := range rs.inv {
		rs.inv[i] = Invocation{Queue: m.queue, Now: time.Now, Effects: m.host.cfg.Readers}
	}
	return rs
}

// run makes one attempt at u in slot. ctx ends it: at the end of the drain, or when the reader loses its lease.
func (rs *runs) run(ctx context.Context, slot int, u *broker.Unit) finished {
	m := rs.m
	mark := m.recess.until.Load()
	if mark != 0 && m.recess.lasts() {
		return finished{settlement: broker.Settlement{Unit: u, Verdict: broker.VerdictRelease}}
	}
	p := m.runner.Load()
	inv := &rs.inv[slot]
	inv.Unit, inv.Attempt, inv.Traceparent = u, attemptNumber(u), ""
	span := rs.observe(p, inv)
	m.count.running.Add(1)
	res := p.runner.Run(ctx, inv)
	m.count.running.Add(-1)
	res.Settlement.Unit = u
	if res.Fault != nil || mark != 0 {
		m.ran(&res, mark)
	}
	broker.AutoEnd(&res.Settlement)
	if span != nil {
		res = ran(span, res)
	}
	return finished{settlement: res.Settlement, span: span}
}

// ran tells span how the handler ended. It is apart from run so that only observed attempts pay for the copy.
func ran(span AttemptSpan, res Result) Result {
	span.Ran(&res)
	return res
}

// observe tells the observer that the attempt of inv starts.
func (rs *runs) observe(p *plugin, inv *Invocation) AttemptSpan {
	o := rs.m.host.cfg.Observer
	if o == nil {
		return nil
	}
	span := o.Attempt(&Attempt{
		Queue: rs.m.queue, Plugin: rs.m.name, Digest: p.digest, Reader: rs.reader,
		Number: inv.Attempt, Unit: inv.Unit, Start: time.Now(),
	})
	if span != nil {
		inv.Traceparent = span.Traceparent()
	}
	return span
}

// attemptNumber counts attempts from 1: one more than the most often failed message of u has failed.
func attemptNumber(u *broker.Unit) int {
	n := 0
	for i := range u.Messages {
		n = max(n, u.Messages[i].DeliveryCount)
	}
	return n + 1
}
