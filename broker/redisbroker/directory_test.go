package redisbroker

import (
	"errors"
	"testing"

	"parley/broker"
)

// TestADirectoryThatCannotBeReadIsReadAgain: what was understood of it so far is not taken for all of it.
func TestADirectoryThatCannotBeReadIsReadAgain(t *testing.T) {
	d := &directory{}
	refused(t, d, broker.ErrCorrupt, map[string]string{"m///t/a": "{"})
}

// refused has a directory read records that it cannot.
func refused(t *testing.T, d *directory, want error, all map[string]string) {
	t.Helper()
	if err := d.fill("7", all); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
	if d.version != "" || d.queues != nil {
		t.Errorf("version %q with %d queues is kept", d.version, len(d.queues))
	}
}
