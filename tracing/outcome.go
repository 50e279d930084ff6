package tracing

import "parley/broker"

// outcomes are the values of parley.outcome.
var outcomes = [...]string{
	broker.Committed:    "committed",
	broker.RolledBack:   "rolled_back",
	broker.DeadLettered: "dead_lettered",
	broker.QueueTurned:  "queue_turned_off",
	broker.Released:     "released",
	broker.Refused:      "refused",
	broker.Lost:         "lost",
}

// outcome returns the value of parley.outcome.
func (at *attempt) outcome() string { return outcomes[at.settled.Consequence] }

// reason says why the attempt did not commit: an outcome reason, the dead-letter reason, or "".
func (at *attempt) reason() string {
	s := &at.result.Settlement
	switch at.settled.Consequence {
	case broker.Committed, broker.Released:
		return ""
	case broker.Lost:
		return broker.ReasonLeaseLost
	case broker.Refused:
		return "EffectsRefused"
	}
	if s.Verdict == broker.VerdictDeadLetter {
		return s.Reason
	}
	return s.FailReason
}

// description is the text beside reason.
func (at *attempt) description() string {
	s := &at.result.Settlement
	switch {
	case at.settled.Err != nil:
		return at.settled.Err.Error()
	case s.Verdict == broker.VerdictDeadLetter:
		return s.Description
	}
	return s.FailText
}

// final reports whether nothing follows by itself: only such an outcome is an error of the span, so that an attempt that
// the next one cured does not make the trace an error.
func (at *attempt) final() bool {
	return at.settled.Consequence == broker.DeadLettered || at.settled.Consequence == broker.QueueTurned
}
