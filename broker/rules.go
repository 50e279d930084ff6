package broker

import (
	"math"
	"time"
)

// AfterFailure is what a failed delivery attempt leads to for one message.
type AfterFailure string

// The ways on after a failed attempt, in the order they are tried.
const (
	FailureExpires AfterFailure = "expire" // its time to live is over: dead-lettered or dropped, as the queue says (TL-5)
	FailureBuries  AfterFailure = "bury"   // the delivery limit is reached: MaxDeliveryCountExceeded (DC-4)
	FailureTrips   AfterFailure = "trip"   // the rollback limit is reached: the queue turns OFF (PM-2)
	FailureRetries AfterFailure = "again"  // it waits for its next attempt
)

// DecideFailure is the rule of one message after a failed attempt. deliveries and rollbacks include this failure. maxDelivery 0
// and rollbackLimit 0 mean no limit. Expiry comes first; on a tie the dead letter wins, since it frees the queue (decisions,
// One queue, two rule sets). A unit of several messages carries none of them to a limit: nobody knows which of them failed.
// Each is handed out alone next time, and then it shows. The script library states the same rule; a test compares the two.
func DecideFailure(deliveries, rollbacks int, expired, several bool, maxDelivery, rollbackLimit int) AfterFailure {
	switch {
	case expired:
		return FailureExpires
	case several:
		return FailureRetries
	case maxDelivery > 0 && deliveries >= maxDelivery:
		return FailureBuries
	case rollbackLimit > 0 && rollbacks >= rollbackLimit:
		return FailureTrips
	}
	return FailureRetries
}

// RetryPause is the pause after the deliveries-th failure: Initial × Multiplier^(deliveries−1), at most Max or, when Max is 0,
// MaxLifetime, less a share of Jitter chosen by random (0…1). Whole milliseconds, rounded down. No Initial, no pause.
func RetryPause(deliveries int, r Retry, random float64) time.Duration {
	if r.Initial <= 0 {
		return 0
	}
	ms := float64(r.Initial.Milliseconds())
	limit := float64(r.Max.Milliseconds())
	if r.Max <= 0 {
		limit = float64(MaxLifetime.Milliseconds())
	}
	for range deliveries - 1 {
		ms *= r.Multiplier
		if ms >= limit {
			break
		}
	}
	ms = min(ms, limit)
	return time.Duration(math.Floor(ms*(1-r.Jitter*random))) * time.Millisecond
}

// AutoEnd adds to a commit the END of each conversation whose EndDialog or Error is in the unit and which the handler did not end
// itself, when the queue asks for it (decisions, Dialogs). A message that it dead-letters was not handled, so it ends nothing. Other
// verdicts stay as they are.
func AutoEnd(s *Settlement) {
	if s.Verdict != VerdictCommit || !s.Unit.AutoEnd {
		return
	}
	for i := range s.Unit.Messages {
		m := &s.Unit.Messages[i]
		if (m.Kind == KindEndDialog || m.Kind == KindError) && !buries(s.Effects, i) && !ends(s.Effects, m.Conversation) {
			s.Effects = append(s.Effects, Effect{Kind: EffectEnd, Conversation: m.Conversation})
		}
	}
}

// Buries reports whether s makes dead letters: of the whole unit, or of single messages of it.
func Buries(s *Settlement) bool {
	if s.Verdict != VerdictCommit {
		return s.Verdict == VerdictDeadLetter
	}
	for i := range s.Effects {
		if s.Effects[i].Kind == EffectDeadLetter {
			return true
		}
	}
	return false
}

// buries reports whether effects make a dead letter of message i of the unit.
func buries(effects []Effect, i int) bool {
	for k := range effects {
		if effects[k].Kind == EffectDeadLetter && effects[k].Index == i {
			return true
		}
	}
	return false
}

func ends(effects []Effect, conversation string) bool {
	for i := range effects {
		if effects[i].Kind == EffectEnd && effects[i].Conversation == conversation {
			return true
		}
	}
	return false
}

// TransmitBackoff is the pause before the next try after n refusals in a row: 4, 8, 16, 32, then 64 s (TX-2).
func TransmitBackoff(refusals int) time.Duration {
	if refusals > 4 {
		return 64 * time.Second
	}
	return 4 * time.Second << max(0, refusals-1)
}
