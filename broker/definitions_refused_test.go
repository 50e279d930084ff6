package broker_test

import (
	"errors"
	"testing"

	"parley/broker"
)

func TestWhatIsNotThereYetIsRefusedAndNotIgnored(t *testing.T) {
	for name, d := range map[string]broker.Definitions{
		"external activation": {Notify: []broker.EventNotification{{Event: "queue_activation", Queue: "q", To: "//s"}}},
	} {
		if err := broker.CheckDefinitions(&d); !errors.Is(err, broker.ErrNotAvailable) {
			t.Errorf("%s: got %v, want %v", name, err, broker.ErrNotAvailable)
		}
	}
}
