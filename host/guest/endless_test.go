package guest

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"parley/broker"
)

// TestEndlessGuestsAreStopped: whatever a guest does for ever, its limit ends it, other instances work on, and the fuel of
// the attempt is known. How promptly is measured by BenchmarkStops.
func TestEndlessGuestsAreStopped(t *testing.T) {
	plugins, roomy := make(map[string]*Plugin), make(map[string]*Plugin)
	for _, language := range []string{"c", "go"} {
		plugins[language] = load(t, benchGuest(t, language), Options{Limits: endlessLimits(100 * time.Millisecond)})
		roomy[language] = load(t, benchGuest(t, language), Options{})
	}
	for _, e := range endless {
		t.Run(e.name, func(t *testing.T) {
			r := attemptOf(t, plugins[e.language], e.body)
			reason := r.Settlement.FailReason
			if e.body == "r" || e.body == "p" { // whichever end comes first; a C guest runs off its shadow stack
				switch reason {
				case broker.ReasonStackOverflow, broker.ReasonMemoryLimit, broker.ReasonTrap:
					reason = broker.ReasonDeadlineExceeded
				}
			}
			if r.Settlement.Verdict != broker.VerdictRollback || reason != broker.ReasonDeadlineExceeded || r.Fuel == 0 {
				t.Errorf("got %+v with %d units of fuel", r.Settlement, r.Fuel)
			}
			wantCommit(t, attemptOf(t, roomy[e.language], "{}"))
		})
	}
}

// TestManySpinningGuests: guests that spin, many more than there are processors, are all stopped by their limit.
func TestManySpinningGuests(t *testing.T) {
	p := load(t, benchGuest(t, "c"), Options{Limits: endlessLimits(200 * time.Millisecond)})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			r := p.Run(context.Background(), invocation(plain("l")))
			if s := r.Settlement; s.FailReason != broker.ReasonDeadlineExceeded {
				t.Errorf("got %+v", s)
			}
		})
	}
	wg.Wait()
}

// TestGarbageCollectionBesideSpinningGuests: the host collects garbage although every processor has a guest that spins.
// With guests that give no turn this would not return.
func TestGarbageCollectionBesideSpinningGuests(t *testing.T) {
	p := load(t, benchGuest(t, "c"), Options{Limits: Limits{Time: time.Hour}})
	ctx, cancel := context.WithCancel(t.Context())
	end := spinning(t, ctx, p, max(2, runtime.GOMAXPROCS(0)))
	for range 3 {
		runtime.GC()
	}
	cancel()
	end()
}
