package broker

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDefaultQueueDependsOnServing(t *testing.T) {
	plain, serving := DefaultQueue("q", false), DefaultQueue("q", true)
	if plain.Poison.On || !serving.Poison.On || serving.Poison.Rollbacks != 5 || plain.MaxDelivery != 10 || serving.MaxDelivery != 10 {
		t.Errorf("got plain %+v, serving %+v", plain, serving)
	}
	if plain.Retry.Initial != time.Second || plain.Retry.Max != time.Minute || serving.Retry.Initial != 0 || serving.Retry.Max != 0 {
		t.Errorf("got retry plain %+v, serving %+v", plain.Retry, serving.Retry)
	}
	is(t, "the defaults", CheckQueueSettings(&plain), nil)
	is(t, "the defaults of a serving queue", CheckQueueSettings(&serving), nil)
}

func TestCheckQueueSettings(t *testing.T) {
	for _, c := range []struct {
		part string // of the text that names what is wrong
		set  func(q *QueueSettings)
	}{
		{"max_delivery_count", func(q *QueueSettings) { q.MaxDelivery = 0 }},
		{"rollbacks", func(q *QueueSettings) { q.Poison = Poison{On: true, Scope: "message"} }},
		{"scope", func(q *QueueSettings) { q.Poison.Scope = "group" }},
		{"retry", func(q *QueueSettings) { q.Retry.Initial = -1 }},
		{"retry", func(q *QueueSettings) { q.Retry.Max = -1 }},
		{"retry", func(q *QueueSettings) { q.Retry.Multiplier = 0.5 }},
		{"retry", func(q *QueueSettings) { q.Retry.Jitter = 1.1 }},
		{"retry", func(q *QueueSettings) { q.Retry.Jitter = -0.1 }},
		{"lock_duration", func(q *QueueSettings) { q.LockDuration = time.Second - 1 }},
		{"lock_duration", func(q *QueueSettings) { q.LockDuration = 5*time.Minute + 1 }},
		{"max_message_size", func(q *QueueSettings) { q.MaxMessageSize = 0 }},
		{"max_message_size", func(q *QueueSettings) { q.MaxMessageSize = 512<<20 + 1 }},
		{"on_dead_letter", func(q *QueueSettings) { q.OnDeadLetter = "stop" }},
	} {
		q := DefaultQueue("orders", false)
		c.set(&q)
		err := CheckQueueSettings(&q)
		is(t, c.part, err, ErrInvalid)
		if err != nil && (!strings.Contains(err.Error(), c.part) || !strings.Contains(err.Error(), `"orders"`)) {
			t.Errorf("%q names neither %q nor the queue", err, c.part)
		}
	}
	q := DefaultQueue("orders", true)
	q.Poison = Poison{Scope: "queue"} // rollbacks count for nothing while it is off
	is(t, "poison handling off without a limit", CheckQueueSettings(&q), nil)
}

func TestCheckDefinitionsNamesAllThatIsWrong(t *testing.T) {
	bad := DefaultQueue("a/$Transfer", false)
	bad.MaxDelivery = 0
	err := CheckDefinitions(&Definitions{
		Queues:       []QueueSettings{bad, DefaultQueue("ok", false)},
		MessageTypes: []MessageType{{Name: ""}},
		Contracts:    []Contract{{Name: "one-sided", Messages: map[string]Direction{"t": ByTarget}}},
		Services:     []Service{{Name: "s\x00"}},
		Priorities:   []PriorityRule{{Name: "low", Level: 0}, {Name: "high", Level: 11}, {Name: "fine", Level: 10}},
		Schedules:    []Schedule{{Name: "nightly"}},
		Notify:       []EventNotification{{Event: "queue_full", Queue: "q", To: "s"}, {Event: EventQueueActivation, Queue: "ok", To: "s"}},
	})
	for _, want := range []*Error{ErrName, ErrInvalid, ErrContractEmpty} {
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v among them", err, want)
		}
	}
	for _, part := range []string{"$Transfer", "max_delivery_count", "one-sided", `"low"`, `"high"`, "nightly", "queue_full", "message type name is empty", "service name"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not named in: %v", part, err)
		}
	}
	if strings.Contains(err.Error(), `"fine"`) || strings.Contains(err.Error(), `"ok"`) {
		t.Errorf("what is right is named in: %v", err)
	}
	is(t, "nothing at all", CheckDefinitions(&Definitions{}), nil)
}
