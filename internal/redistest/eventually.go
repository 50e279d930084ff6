package redistest

import (
	"testing"
	"time"
)

// EventuallyTimeout is how long [Eventually] waits.
const EventuallyTimeout = 20 * time.Second

// Eventually polls until holds returns true, and fails the test, naming what it
// waited for, when it does not within [EventuallyTimeout]. It is for states that
// give no signal; where there is one, wait for that.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(EventuallyTimeout)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", EventuallyTimeout, what)
		}
		<-tick.C
	}
}
