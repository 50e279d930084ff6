//go:build !wasip1

package sdk

import (
	"slices"
	"time"

	"parley/sdk/abi"
)

func (f *Fake) dialogMove(conversation, group string) int32 {
	return f.stage(Effect{Kind: EffectMove, Conversation: conversation, Group: group})
}

func (f *Fake) timerAfter(conversation string, ms int64) int32 {
	if ms < 0 {
		return int32(abi.ErrInvalid)
	}
	return f.stage(Effect{Kind: EffectTimer, Conversation: conversation, After: time.Duration(ms) * time.Millisecond})
}

func (f *Fake) timerCron(conversation, spec, zone string) int32 {
	if spec == "" {
		return int32(abi.ErrInvalid)
	}
	return f.stage(Effect{Kind: EffectTimer, Conversation: conversation, Cron: spec, Zone: zone})
}

func (f *Fake) timerCancel(conversation string) int32 {
	return f.stage(Effect{Kind: EffectTimer, Conversation: conversation})
}

// status is where message i is: those of the unit are locked.
func status(i uint32, m *FakeMessage) string {
	switch {
	case i < abi.FirstSeen:
		return "locked"
	case m.Status == "":
		return "ready"
	}
	return m.Status
}

func (f *Fake) lacks(capability string) bool { return slices.Contains(f.Lacks, capability) }

func (f *Fake) queuePeek(queue string, from int64, most uint32) int32 {
	messages, known := f.Queues[queue]
	switch {
	case queue == "" || from < 0 || most == 0 || most > 100:
		return int32(abi.ErrInvalid)
	case f.lacks("queue_peek"):
		return int32(abi.ErrDenied)
	case !known:
		return int32(abi.ErrUnknownQueue)
	}
	f.seen = nil
	for _, m := range messages {
		if m.Sequence >= from && len(f.seen) < int(most) {
			f.seen = append(f.seen, m)
		}
	}
	return int32(len(f.seen))
}

func (f *Fake) dialogRetained(conversation string) int32 {
	own := func(m FakeMessage) bool { return m.Conversation == conversation }
	if !slices.ContainsFunc(f.Messages, own) {
		return int32(abi.ErrUnknownConversation)
	}
	f.seen = slices.Clone(f.Kept[conversation])
	for _, m := range f.Messages {
		if own(m) {
			m.Retained, m.Status = 1, "locked"
			f.seen = append(f.seen, m)
		}
	}
	return int32(len(f.seen))
}

func (f *Fake) conversationEnd(queue, conversation string, code int32, text string) int32 {
	switch {
	case queue == "" || conversation == "" || code <= 0 || text == "":
		return int32(abi.ErrInvalid)
	case f.lacks("conversation_end"):
		return int32(abi.ErrDenied)
	}
	return f.stage(Effect{Kind: EffectEndOther, Queue: queue, Conversation: conversation, Code: int(code), Text: text})
}

// messageDeadLetter keeps the last call for a message, as the real host does.
func (f *Fake) messageDeadLetter(i uint32, reason, description string) int32 {
	if uint64(i) >= uint64(len(f.Messages)) {
		return int32(abi.ErrIndex)
	}
	before := len(f.staged.Effects)
	n := f.stage(Effect{Kind: EffectDeadLetter, Index: int(i), Reason: reason, Text: description})
	if n == 0 {
		same := func(e Effect) bool { return e.Kind == EffectDeadLetter && e.Index == int(i) }
		earlier := slices.DeleteFunc(slices.Clone(f.staged.Effects[:before]), same)
		f.staged.Effects = append(earlier, f.staged.Effects[before:]...)
	}
	return n
}

func (f *Fake) queueEnable(queue string, epoch int64) int32 {
	switch {
	case queue == "" || epoch < 0:
		return int32(abi.ErrInvalid)
	case f.lacks("queue_enable"):
		return int32(abi.ErrDenied)
	}
	return f.stage(Effect{Kind: EffectEnable, Queue: queue, Epoch: epoch})
}
