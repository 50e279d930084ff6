package brokertest

import (
	"time"

	"pgregory.net/rapid"

	"parley/broker"
)

// effects draws what a handler stages: at most one thing a conversation, and only what it could believe to be legal.
func (d *driver) effects(u *modelUnit) []broker.Effect {
	var all []broker.Effect
	q := u.reader.queue
	if d.chance("send on", 15) {
		all = append(all, broker.Effect{
			Kind: broker.EffectSendTo, Queue: rapid.SampledFrom([]string{sinkQueue, plainQueue, workQueue}).Draw(d.t, "to"),
			Message: broker.Outgoing{MessageID: d.name(), SessionID: rapid.SampledFrom([]string{"", "a"}).Draw(d.t, "session")},
		})
		m := &all[len(all)-1].Message
		m.Body = []byte(m.MessageID)
	}
	here := d.sides(func(s *modelSide) bool { return s.queue == q && !s.ended })
	used := map[*modelSide]bool{}
	for range 2 {
		if len(here) == 0 || !d.chance("conversation effect", 35) {
			break
		}
		s := here[rapid.IntRange(0, len(here)-1).Draw(d.t, "conversation")]
		if own := u.msgs[0].to; own != nil && d.chance("own conversation", 70) {
			s = own
		}
		if e, ok := d.effect(s, here); ok && !used[s] {
			all = append(all, e)
		}
		used[s] = true
	}
	return all
}

// effect draws what a handler does to s.
func (d *driver) effect(s *modelSide, here []*modelSide) (broker.Effect, bool) {
	e := broker.Effect{Conversation: s.handle}
	switch rapid.SampledFrom([]string{"say", "say", "end", "error", "arm", "arm", "cancel", "move"}).Draw(d.t, "effect") {
	case "say":
		e.Kind, e.Message = broker.EffectSend, message(d.name())
		return e, s.canSend()
	case "end":
		e.Kind = broker.EffectEnd
	case "error":
		e.Kind, e.Code, e.Text = broker.EffectEnd, 12, "no such thing"
	case "arm":
		e.Kind = broker.EffectTimer
		e.After = rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second}).Draw(d.t, "after")
	case "cancel":
		e.Kind = broker.EffectCancelTimer
	case "move":
		e.Kind = broker.EffectMove
		e.Group = here[rapid.IntRange(0, len(here)-1).Draw(d.t, "to group")].group[len("g:"):]
	}
	return e, true
}
