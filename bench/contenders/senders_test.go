package contenders

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

func TestFromManySendsExactlyN(t *testing.T) {
	for _, n := range []int{0, 1, 31, 1000} {
		var sent atomic.Int64
		err := fromMany(t.Context(), 32, n, func(context.Context) error {
			sent.Add(1)
			return nil
		})
		if err != nil || sent.Load() != int64(n) {
			t.Errorf("sent %d, %v; want %d", sent.Load(), err, n)
		}
	}
}

func TestFromManyReportsTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	err := fromMany(t.Context(), 4, 100, func(context.Context) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("fromMany = %v, want %v", err, broken)
	}
}
