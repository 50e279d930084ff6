package main

import (
	"encoding/json"
	"testing"
)

// TestExternalActivation: no host runs; a send to a queue without a plugin tells the watching service that a reader is needed, once.
func TestExternalActivation(t *testing.T) {
	s := newShell(t)
	s.apply(`
queues: [{name: reports}, {name: watch}]
services: [{name: //shop/Watch, queue: watch}]
event_notifications:
  - {event: queue_activation, queue: reports, to: //shop/Watch}
`)
	s.must("send", "reports", "--body", "one")
	s.must("send", "reports", "--body", "two")
	if events := s.must("events").lines(t); len(events) != 1 || events[0]["type"] != "queue_activation" || events[0]["queue"] != "reports" {
		t.Errorf("events are %v, want one queue_activation", events)
	}
	told := s.must("receive", "watch").object(t)
	var body map[string]any
	if err := json.Unmarshal([]byte(told["body"].(string)), &body); err != nil {
		t.Fatal(err)
	}
	if told["message_type"] != "parley/EventNotification" || body["queue"] != "reports" || body["namespace"] != s.ns || body["ready"] != 1.0 {
		t.Errorf("told %v", told)
	}
	for range 2 {
		s.must("receive", "reports").object(t)
	}
	if r := s.must("receive", "watch"); r.out != "" {
		t.Errorf("told again: %s", r.out)
	}
	s.must("audit")
}
