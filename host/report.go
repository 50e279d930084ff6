package host

import (
	"fmt"
	"log/slog"
	"time"

	"parley/broker"
)

// linesPerSecond limits what is logged about the messages of one queue.
const linesPerSecond = 100

// report tells what the turn between start and end led to.
func (d *delivery) report(results []broker.SettleResult, start, end time.Time) {
	m, lost := d.r.m, 0
	for i := range results {
		res := &results[i]
		if i >= len(d.sent) {
			break
		}
		m.count.settled[res.Consequence].Add(1)
		if span := d.sent[i].span; span != nil {
			span.Settled(Settled{Consequence: res.Consequence, Err: res.Err, Start: start, End: end})
		}
		if res.Consequence == broker.Lost {
			lost++
		}
		if res.Consequence != broker.Committed && res.Consequence != broker.Released {
			m.logFailure(&d.sent[i].settlement, res)
		}
		if res.Consequence == broker.Committed {
			m.logSingles(&d.sent[i].settlement)
		}
	}
	d.leaseLost(lost)
	clear(d.sent)
	d.sent = d.sent[:0]
}

// reportLost tells that attempts ended whose settlement did not come through. What was never started is no attempt.
func (d *delivery) reportLost(left []finished) {
	lost := 0
	for i := range left {
		if left[i].settlement.Verdict == broker.VerdictRelease {
			if left[i].span != nil {
				left[i].span.Settled(Settled{Consequence: broker.Released})
			}
			continue
		}
		lost++
		d.r.m.count.settled[broker.Lost].Add(1)
		if left[i].span != nil {
			left[i].span.Settled(Settled{Consequence: broker.Lost, Err: broker.ErrLockLost})
		}
	}
	d.leaseLost(lost)
}

func (d *delivery) leaseLost(units int) {
	if units == 0 {
		return
	}
	m := d.r.m
	m.count.leaseLosses.Add(1)
	m.host.quiet.say(slog.LevelWarn, "lost "+m.queue, 1, "attempts lost their lock; what they did is not kept",
		slog.String("queue", m.queue), slog.String("plugin", m.name), slog.String("reader", d.rd.Name()), slog.Int("units", units))
	if o := m.host.cfg.Observer; o != nil {
		o.LeaseLost(m.queue, d.rd.Name(), units)
	}
}

// logFailure says why an attempt did not commit.
func (m *monitor) logFailure(s *broker.Settlement, res *broker.SettleResult) {
	first := &s.Unit.Messages[0]
	attrs := []slog.Attr{
		slog.String("queue", m.queue), slog.String("plugin", m.name), slog.String("message_id", first.MessageID),
		slog.Int64("sequence_number", first.SequenceNumber), slog.Int("attempt", attemptNumber(s.Unit)),
	}
	switch {
	case res.Err != nil:
		attrs = append(attrs, slog.Any("error", res.Err))
	case s.Verdict == broker.VerdictDeadLetter:
		attrs = append(attrs, slog.String("reason", s.Reason), slog.String("description", s.Description))
	default:
		attrs = append(attrs, slog.String("error", s.FailReason+": "+s.FailText))
	}
	m.host.quiet.say(slog.LevelWarn, "failure "+m.queue, linesPerSecond, failureText[res.Consequence], attrs...)
}

// logSingles says which messages a unit that committed made dead letters, and why.
func (m *monitor) logSingles(s *broker.Settlement) {
	for i := range s.Effects {
		e := &s.Effects[i]
		if e.Kind != broker.EffectDeadLetter {
			continue
		}
		msg := &s.Unit.Messages[e.Index]
		m.host.quiet.say(slog.LevelWarn, "failure "+m.queue, linesPerSecond, "a message of a unit that committed was dead-lettered",
			slog.String("queue", m.queue), slog.String("plugin", m.name), slog.String("message_id", msg.MessageID),
			slog.Int64("sequence_number", msg.SequenceNumber), slog.String("reason", e.Reason), slog.String("description", e.Text))
	}
}

var failureText = [...]string{
	broker.Committed:    "attempt committed",
	broker.RolledBack:   "attempt failed; its messages wait for the next",
	broker.DeadLettered: "messages were dead-lettered",
	broker.QueueTurned:  "attempt failed and turned the queue off",
	broker.Released:     "attempt was given back",
	broker.Refused:      "effects of an attempt were refused; its messages wait for the next",
	broker.Lost:         "attempt lost its lock; what it did is not kept",
}

// String returns the documented word for an ending, for logs.
func (e ending) String() string {
	switch e {
	case endIdle:
		return "idle"
	case endOff:
		return "off"
	case endLimited:
		return "limited"
	case endLost:
		return "lost"
	case endFailed:
		return "failed"
	}
	return fmt.Sprintf("ending(%d)", uint8(e))
}
