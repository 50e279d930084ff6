package guest

import (
	"context"
	"testing"
)

// TestABusyGuestIsCountedWhileItRuns: a guest counts while it runs, and no longer, however its attempt ends. One that counted for ever
// would make all others give up their processor at each checkpoint.
func TestABusyGuestIsCountedWhileItRuns(t *testing.T) {
	before := busy.Load()
	c := &clock{plugin: &Plugin{}}
	for range 2 { // an instance starts, and then runs
		c.begin(context.Background(), 0, 0)
	}
	if n := busy.Load() - before; n != 1 {
		t.Errorf("%d are counted while one runs", n)
	}
	c.rests()
	c.rests()
	if n := busy.Load() - before; n != 0 {
		t.Errorf("%d are counted while none runs", n)
	}
}
