package guest

import (
	"time"

	"parley/broker"
	"parley/host"
)

// attempt is what one attempt has staged and said so far.
type attempt struct {
	inv         *host.Invocation // nil while an instance starts
	hostCalls   int
	effects     []broker.Effect
	effectBytes int
	written     map[string]int // key of the state -> its last effect
	reason      string         // of dead_letter
	description string
	pause       time.Duration // of retry_after; <0: not asked for
	failText    string        // of fail
	refusal     string        // the last error code a function gave, in words
	silence     string        // why the broker did not answer
	denied      Capability    // the last capability that was missing; "": none was
	seen        []seen        // messages of the last queue_peek or dialog_retained
	logs        lines
	spans       []host.GuestSpan
}

// reset forgets the attempt before. Field by field: assigning the whole struct costs more than a short guest call.
func (a *attempt) reset(inv *host.Invocation) {
	a.inv, a.hostCalls = inv, 0
	a.effects, a.effectBytes, a.written = nil, 0, nil
	a.reason, a.description, a.failText, a.refusal, a.silence = "", "", "", "", ""
	a.pause, a.spans, a.denied, a.seen = -1, nil, "", nil
	if !a.logs.empty() {
		a.logs.reset()
	}
}

func (a *attempt) now() time.Time {
	if a.inv != nil && a.inv.Now != nil {
		return a.inv.Now()
	}
	return time.Now()
}

// messages is empty while an instance starts.
func (a *attempt) messages() []broker.Message {
	if a.inv == nil {
		return nil
	}
	return a.inv.Unit.Messages
}
