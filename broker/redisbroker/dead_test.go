package redisbroker

import (
	"errors"
	"testing"

	"parley/broker"
)

// TestResubmitRefusesTransferDeadLetters: the numbers of the transfer dead-letter queue are its own, so the dead letter of the
// queue with the same number must stay where it is.
func TestResubmitRefusesTransferDeadLetters(t *testing.T) {
	onLabs(t, func(t *testing.T, l *lab) {
		l.send(t, 1, "")
		r := l.reader(t)
		_, units := l.turn(t, r, nil)
		_, err := r.Turn(t.Context(), broker.TurnRequest{Top: 1, Settle: []broker.Settlement{
			{Unit: units[0], Verdict: broker.VerdictDeadLetter, Reason: "Bad"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.b.Resubmit(t.Context(), "q/$Transfer/$DeadLetterQueue", 1); !errors.Is(err, broker.ErrInvalid) {
			t.Errorf("resubmit from the transfer dead-letter queue: %v", err)
		}
		dead, err := l.b.List(t.Context(), "q", 0, 10)
		if err != nil || len(dead) != 1 {
			t.Errorf("dead letters of q: %v, %v; want one, untouched", dead, err)
		}
	})
}
