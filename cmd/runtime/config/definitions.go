package config

import (
	"os"
	"time"

	"parley/broker"
)

// Definitions is what the broker's Apply takes. A queue's defaults depend on whether it serves a service; serves tells
// what the broker knows of services that this file does not state, and may be nil.
func (f *File) Definitions(serves func(queue string) bool) (broker.Definitions, error) {
	var d broker.Definitions
	types, err := f.messageTypes()
	if err != nil {
		return d, err
	}
	d.MessageTypes = types
	for _, k := range f.Contracts {
		m := make(map[string]broker.Direction, len(k.Messages))
		for t, dir := range k.Messages {
			m[t] = broker.Direction(dir)
		}
		d.Contracts = append(d.Contracts, broker.Contract{Name: k.Name, Messages: m})
	}
	here := map[string]bool{}
	for _, s := range f.Services {
		here[s.Queue] = true
		d.Services = append(d.Services, broker.Service{Name: s.Name, Queue: s.Queue, Contracts: s.Contracts})
	}
	for _, q := range f.Queues {
		d.Queues = append(d.Queues, q.settings(here[q.Name] || serves != nil && serves(q.Name)))
	}
	for _, p := range f.Priorities {
		d.Priorities = append(d.Priorities, broker.PriorityRule{Name: p.Name, Contract: p.Contract, Local: p.Local, Remote: p.Remote, Level: p.Level})
	}
	for _, n := range f.Notify {
		d.Notify = append(d.Notify, broker.EventNotification{Event: n.Event, Queue: n.Queue, To: n.To})
	}
	for _, s := range f.Schedules {
		d.Schedules = append(d.Schedules, broker.Schedule{Name: s.Name, Cron: s.Cron, Zone: s.Zone, To: s.To, Type: s.Type})
	}
	return d, nil
}

func (f *File) messageTypes() ([]broker.MessageType, error) {
	var types []broker.MessageType
	for i, m := range f.MessageTypes {
		t := broker.MessageType{Name: m.Name, Validation: m.Validation}
		if t.Validation == "" {
			t.Validation = "none"
		}
		for j, s := range m.Schemas {
			data, err := os.ReadFile(f.Path(s))
			if err != nil {
				return nil, refuse(f.name, f.line("message_types", i, "schemas", j), "the schema cannot be read: %v", err)
			}
			t.Schemas = append(t.Schemas, data)
		}
		types = append(types, t)
	}
	return types, nil
}

// settings fills every default in.
func (q *Queue) settings(serves bool) broker.QueueSettings {
	s := broker.DefaultQueue(q.Name, serves)
	setSwitch(&s.Retention, q.Retention)
	setSwitch(&s.Archive, q.Archive)
	setSwitch(&s.Poison.On, q.Poison.Status)
	set(&s.Poison.Rollbacks, q.Poison.Rollbacks)
	setText(&s.Poison.Scope, q.Poison.Scope)
	set(&s.MaxDelivery, q.MaxDelivery)
	setDuration(&s.Retry.Initial, q.Retry.Initial)
	setDuration(&s.Retry.Max, q.Retry.Max)
	if q.Retry.Max == nil && s.Retry.Max < s.Retry.Initial {
		s.Retry.Max = s.Retry.Initial // a stated first pause alone means that pause, not one cut to a default of 0
	}
	if q.Retry.Initial == nil && s.Retry.Initial > s.Retry.Max {
		s.Retry.Initial = s.Retry.Max
	}
	set(&s.Retry.Multiplier, q.Retry.Multiplier)
	set(&s.Retry.Jitter, q.Retry.Jitter)
	setDuration(&s.LockDuration, q.LockDuration)
	if q.MaxMessageSize != nil {
		s.MaxMessageSize = int(*q.MaxMessageSize)
	}
	setDuration(&s.DefaultTTL, q.DefaultTTL)
	setSwitch(&s.DeadLetterTTL, q.DeadLetterTTL)
	setText(&s.OnDeadLetter, q.OnDeadLetter)
	setSwitch(&s.AutoEnd, q.AutoEnd)
	set(&s.Durable, q.Durable)
	setDuration(&s.PriorityAging, q.PriorityAging)
	return s
}

func set[T any](to *T, stated *T) {
	if stated != nil {
		*to = *stated
	}
}

func setText(to *string, stated string) {
	if stated != "" {
		*to = stated
	}
}

func setSwitch(to *bool, stated *Switch) {
	if stated != nil {
		*to = bool(*stated)
	}
}

func setDuration(to *time.Duration, stated *Duration) {
	if stated != nil {
		*to = time.Duration(*stated)
	}
}
