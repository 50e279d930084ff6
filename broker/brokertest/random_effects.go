package brokertest

import (
	"slices"
	"time"

	"parley/broker"
)

// effects draws what a handler stages: at most one thing a conversation, mostly what is legal.
func (d *driver) effects(u *modelUnit) []broker.Effect {
	var all []broker.Effect
	q := u.reader.queue
	if d.chance("send on", 25) {
		to := pick(d, "to", []string{sinkQueue, plainQueue, workQueue})
		all = append(all, broker.Effect{
			Kind: broker.EffectSendTo, Queue: to, Message: broker.Outgoing{MessageID: d.name(), SessionID: d.session(to, "a")},
		})
		m := &all[len(all)-1].Message
		m.Body = []byte(m.MessageID)
	}
	here := d.sides(func(s *modelSide) bool { return s.queue == q && !s.ended })
	used := map[*modelSide]bool{}
	for range 2 {
		if len(here) == 0 || !d.chance("conversation effect", 55) {
			break
		}
		s := here[d.number("conversation", len(here))]
		if own := u.msgs[0].to; own != nil && d.chance("own conversation", 70) {
			s = own
		}
		if e, ok := d.effect(s, here); ok && !used[s] {
			all = append(all, e)
		}
		used[s] = true
	}
	return d.singles(u, all)
}

// singles adds dead letters of single messages, before or behind what else is staged.
func (d *driver) singles(u *modelUnit, all []broker.Effect) []broker.Effect {
	for range 2 {
		if !d.chance("single dead letter", 12) {
			break
		}
		e := broker.Effect{Kind: broker.EffectDeadLetter, Index: d.number("message", len(u.msgs)), Reason: "Single"}
		all = slices.Insert(all, d.number("place", len(all)+1), e)
	}
	return all
}

// effect draws what a handler does to s.
func (d *driver) effect(s *modelSide, here []*modelSide) (broker.Effect, bool) {
	e := broker.Effect{Conversation: s.handle}
	switch pick(d, "effect", []string{"say", "say", "end", "error", "arm", "arm", "cancel", "move", "move"}) {
	case "say":
		e.Kind, e.Message = broker.EffectSend, message(d.name())
		return e, s.canSend() || d.chance("send where it cannot be", 30)
	case "end":
		e.Kind = broker.EffectEnd
	case "error":
		e.Kind, e.Code, e.Text = broker.EffectEnd, 12, "no such thing"
	case "arm":
		e.Kind = broker.EffectTimer
		e.After = pick(d, "after", []time.Duration{time.Second, 3 * time.Second})
	case "cancel":
		e.Kind = broker.EffectCancelTimer
	case "move":
		e.Kind = broker.EffectMove
		e.Group = here[d.number("to group", len(here))].group[len("g:"):]
	}
	return e, true
}
