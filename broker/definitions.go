package broker

import (
	"errors"
	"time"
)

// CheckDefinitions checks what can be checked without a store and returns all that is wrong, joined; nil when nothing is.
func CheckDefinitions(d *Definitions) error {
	var errs []error
	for i := range d.Queues {
		errs = append(errs, CheckQueueSettings(&d.Queues[i]))
	}
	for _, t := range d.MessageTypes {
		errs = append(errs, CheckTypeName("message type", t.Name))
	}
	for _, c := range d.Contracts {
		errs = append(errs, CheckTypeName("contract", c.Name), CheckContract(c))
	}
	for _, s := range d.Services {
		errs = append(errs, CheckServiceName(s.Name))
	}
	for _, p := range d.Priorities {
		if p.Level < 1 || p.Level > 10 {
			errs = append(errs, ErrInvalid.With("priority %q: level %d; use 1 (low) to 10 (high)", p.Name, p.Level))
		}
	}
	for _, n := range d.Notify {
		if n.Event != EventQueueDisabled && n.Event != EventQueueActivation {
			errs = append(errs, ErrInvalid.With("event notification %q of queue %q; use %s or %s", n.Event, n.Queue, EventQueueDisabled, EventQueueActivation))
		}
	}
	for _, s := range d.Schedules {
		if s.Name == "" || s.To == "" {
			errs = append(errs, ErrInvalid.With("schedule %q: it needs a name and a service in to", s.Name))
		}
	}
	return errors.Join(errs...)
}

// CheckQueueSettings returns what is wrong with the settings of one queue.
func CheckQueueSettings(q *QueueSettings) error {
	bad := func(what string, v any) error { return ErrInvalid.With("queue %q: %s %v", q.Name, what, v) }
	errs := []error{CheckQueueName(q.Name)}
	if q.MaxDelivery < 1 {
		errs = append(errs, bad("max_delivery_count is at least 1, not", q.MaxDelivery))
	}
	if q.Poison.On && q.Poison.Rollbacks < 1 {
		errs = append(errs, bad("poison_message_handling.rollbacks is at least 1, not", q.Poison.Rollbacks))
	}
	if q.Poison.Scope != "message" && q.Poison.Scope != "queue" {
		errs = append(errs, bad("poison_message_handling.scope is message or queue, not", q.Poison.Scope))
	}
	if q.Retry.Initial < 0 || q.Retry.Max < 0 || q.Retry.Multiplier < 1 || q.Retry.Jitter < 0 || q.Retry.Jitter > 1 {
		errs = append(errs, bad("retry needs initial and max ≥ 0, multiplier ≥ 1, jitter 0…1, not", q.Retry))
	}
	if q.LockDuration < time.Second || q.LockDuration > 5*time.Minute {
		errs = append(errs, bad("lock_duration is 1s to 5m, not", q.LockDuration))
	}
	if q.MaxMessageSize < 1 || q.MaxMessageSize > 512<<20 {
		errs = append(errs, bad("max_message_size is 1 byte to 512 MiB, not", q.MaxMessageSize))
	}
	if q.Durable < 0 {
		errs = append(errs, bad("durable is the number of replicas that confirm, at least 0, not", q.Durable))
	}
	switch q.OnDeadLetter {
	case "continue", "park", "end":
	default:
		errs = append(errs, bad("on_dead_letter is continue, park or end, not", q.OnDeadLetter))
	}
	return errors.Join(errs...)
}
