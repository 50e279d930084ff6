package measure

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCountWaitReturnsWhenAllWentThrough(t *testing.T) {
	count := NewCount(100)
	var group sync.WaitGroup
	for range 25 {
		group.Go(func() { count.Add(3); count.Add(1) })
	}
	group.Wait()
	if err := count.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if err := count.Check(); err != nil {
		t.Error(err)
	}
}

func TestCountNamesWhatIsMissing(t *testing.T) {
	count := NewCount(100)
	count.Add(99)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	err := count.Wait(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "99 of 100") {
		t.Errorf("Wait = %v, want the deadline and 99 of 100", err)
	}
	if count.Check() == nil {
		t.Error("Check accepted a lost message")
	}
}

func TestCountRefusesDoubles(t *testing.T) {
	count := NewCount(2)
	count.Add(3)
	if err := count.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if count.Check() == nil {
		t.Error("Check accepted a doubled message")
	}
}
