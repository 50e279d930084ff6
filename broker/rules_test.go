package broker

import (
	"testing"
	"time"
)

func TestDecideFailure(t *testing.T) {
	for _, c := range []struct {
		what                  string
		deliveries, rollbacks int
		expired               bool
		maxDelivery, limit    int
		want                  AfterFailure
	}{
		{"the fourth rollback of five", 4, 4, false, 10, 5, FailureRetries},
		{"the fifth rollback turns the queue off", 5, 5, false, 10, 5, FailureTrips},
		{"the ninth delivery of ten, poison handling off", 9, 9, false, 10, 0, FailureRetries},
		{"the tenth delivery dead-letters", 10, 10, false, 10, 0, FailureBuries},
		{"on a tie the dead letter wins", 5, 5, false, 5, 5, FailureBuries},
		{"an expired message goes first", 5, 5, true, 5, 5, FailureExpires},
		{"a limit of one acts at once", 1, 1, false, 1, 0, FailureBuries},
		{"no limits, no end", 1000, 1000, false, 0, 0, FailureRetries},
		{"counts above the limit act as well", 12, 12, false, 10, 0, FailureBuries},
		{"the two counts are apart: only deliveries reach theirs", 10, 1, false, 10, 5, FailureBuries},
		{"the two counts are apart: only rollbacks reach theirs", 1, 5, false, 10, 5, FailureTrips},
	} {
		got := DecideFailure(c.deliveries, c.rollbacks, c.expired, false, c.maxDelivery, c.limit)
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, got, c.want)
		}
		want := FailureRetries // one of several is carried to no limit; what has expired has expired
		if c.expired {
			want = FailureExpires
		}
		if got := DecideFailure(c.deliveries, c.rollbacks, c.expired, true, c.maxDelivery, c.limit); got != want {
			t.Errorf("%s, in a unit of several: got %q, want %q", c.what, got, want)
		}
	}
}

func TestRetryPause(t *testing.T) {
	doubling := Retry{Initial: time.Second, Max: time.Minute, Multiplier: 2}
	for _, c := range []struct {
		what       string
		deliveries int
		r          Retry
		random     float64
		want       time.Duration
	}{
		{"the first", 1, doubling, 0, time.Second},
		{"the third", 3, doubling, 0, 4 * time.Second},
		{"the seventh would be 64 s", 7, doubling, 0, time.Minute},
		{"the millionth is as long", 1_000_000, doubling, 0, time.Minute},
		{"no initial, no pause", 3, Retry{Max: time.Minute, Multiplier: 2}, 0, 0},
		{"the greatest pause below the first", 1, Retry{Initial: time.Second, Max: 500 * time.Millisecond, Multiplier: 2}, 0, 500 * time.Millisecond},
		{"no greatest pause", 11, Retry{Initial: time.Second, Multiplier: 2}, 0, 1024 * time.Second},
		{"no greatest pause, and a thousand failures", 1000, Retry{Initial: time.Second, Multiplier: 2}, 0, MaxLifetime},
		{"always the same", 9, Retry{Initial: 3 * time.Second, Max: time.Minute, Multiplier: 1}, 0, 3 * time.Second},
		{"half of the jitter", 1, Retry{Initial: time.Second, Max: time.Minute, Multiplier: 2, Jitter: 0.5}, 0.5, 750 * time.Millisecond},
		{"all of the jitter", 1, Retry{Initial: time.Second, Max: time.Minute, Multiplier: 2, Jitter: 1}, 1, 0},
		{"whole milliseconds, rounded down", 2, Retry{Initial: 5 * time.Millisecond, Max: time.Minute, Multiplier: 1.5}, 0, 7 * time.Millisecond},
	} {
		if got := RetryPause(c.deliveries, c.r, c.random); got != c.want {
			t.Errorf("%s: got %v, want %v", c.what, got, c.want)
		}
	}
}

func TestTransmitBackoff(t *testing.T) {
	want := []time.Duration{4, 4, 8, 16, 32, 64, 64, 64}
	for n, w := range want {
		if got := TransmitBackoff(n); got != w*time.Second {
			t.Errorf("after %d refusals: got %v, want %v", n, got, w*time.Second)
		}
	}
}

func TestTheErrorTextOfEndHasItsLimits(t *testing.T) {
	for _, c := range []struct {
		what string
		e    Ending
		want *Error
	}{
		{"plain", Ending{}, nil},
		{"with error", Ending{Code: 1, Text: "no"}, nil},
		{"without a code", Ending{Text: "no"}, ErrErrorCode},
		{"with a code of the broker", Ending{Code: -8, Text: "no"}, ErrErrorCode},
		{"with a code above 32 bits", Ending{Code: 1 << 31, Text: "no"}, ErrErrorCode},
		{"without a text", Ending{Code: 127}, ErrErrorText},
	} {
		is(t, c.what, CheckEnding(c.e), c.want)
	}
}

// TestAutoEndOfSingleDeadLetters: what a handler dead-letters it has not handled, so it ends no conversation.
func TestAutoEndOfSingleDeadLetters(t *testing.T) {
	unit := &Unit{AutoEnd: true, Messages: []Message{
		{Kind: KindApp, Conversation: "a"},
		{Kind: KindEndDialog, Conversation: "a"},
		{Kind: KindError, Conversation: "b"},
	}}
	s := Settlement{Unit: unit, Effects: []Effect{{Kind: EffectDeadLetter, Index: 1}, {Kind: EffectDeadLetter, Index: 0}}}
	AutoEnd(&s)
	if n := len(s.Effects); n != 3 || s.Effects[2].Kind != EffectEnd || s.Effects[2].Conversation != "b" {
		t.Errorf("got %+v", s.Effects)
	}
	for _, c := range []struct {
		s    Settlement
		want bool
	}{
		{s, true},
		{Settlement{Verdict: VerdictDeadLetter}, true},
		{Settlement{Verdict: VerdictRollback, Effects: s.Effects}, false},
		{Settlement{Effects: []Effect{{Kind: EffectSend}}}, false},
	} {
		if got := Buries(&c.s); got != c.want {
			t.Errorf("%+v buries: %v, want %v", c.s, got, c.want)
		}
	}
}
