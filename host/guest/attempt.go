package guest

import (
	"time"

	"parley/broker"
	"parley/host"
)

// attempt is what one attempt has staged and said so far.
type attempt struct {
	inv         *host.Invocation // nil between attempts
	starting    bool             // the instance starts: there is no unit yet, although inv may be there for its clock
	hostCalls   int
	effects     []broker.Effect
	effectBytes int
	written     map[string]int // key of the state -> its last effect
	buried      map[uint32]int // message of the unit -> the effect that dead-letters it
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
	a.effects, a.effectBytes, a.written, a.buried = nil, 0, nil, nil
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

// handling reports whether the guest has a unit of work: outside of parley_handle, or the main function of a command, nothing that
// it asks for may become part of one.
func (a *attempt) handling() bool { return a.inv != nil && !a.starting }

// messages is empty while an instance starts.
func (a *attempt) messages() []broker.Message {
	if !a.handling() {
		return nil
	}
	return a.inv.Unit.Messages
}
