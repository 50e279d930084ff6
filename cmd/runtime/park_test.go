package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestParkedConversation follows an operator: a dialog and a session stand still behind their dead letters, every screen says so, one
// comes back in its place, the other is purged.
func TestParkedConversation(t *testing.T) {
	s := newShell(t)
	s.apply(`
queues:
  - {name: web}
  - {name: orders, on_dead_letter: park}
services:
  - {name: //shop/Web, queue: web}
  - {name: //shop/Orders, queue: orders, contracts: [DEFAULT]}
`)
	s.begin("//shop/Web", "//shop/Orders", "one", "two")
	s.must("send", "orders", "--session", "s", "--body", "first")
	s.must("send", "orders", "--session", "s", "--body", "second")
	var handle string
	for range 2 {
		got := s.must("receive", "orders", "--settle", "dead-letter").object(t)
		if h := got["conversation_handle"].(string); h != "" {
			handle = h
		}
	}
	if r := s.must("receive", "orders"); r.out != "" {
		t.Errorf("received behind a dead letter: %s", r.out)
	}
	shown := s.must("queue", "show", "orders").object(t)
	if parked := shown["parked"].([]any); shown["parked_groups"] != 2.0 || len(parked) != 2 || fmt.Sprint(parked[0].(map[string]any)["dead_letters"]) != "[1]" {
		t.Errorf("queue show printed %v", shown)
	}
	s.onScreen([]string{"queue", "show", "orders"}, "park", "2 groups, until", "session s", "1 dead letter 3, 1 message behind")
	s.onScreen([]string{"dialog", "show", handle}, "until 1 dead letter 1 of queue orders is dealt with")
	s.onScreen([]string{"deadletter", "show", "orders", "1"}, "parks", "until it is resubmitted or purged")
	if got := s.must("deadletter", "show", "orders", "1").object(t); got["parks"] != true {
		t.Errorf("deadletter show printed %v", got)
	}
	s.refused(3, []string{"dialog", "move", handle, "--to-group", "00000000-0000-4000-8000-000000000001"}, "ConversationParked")
	s.must("deadletter", "resubmit", "orders", "1")
	for _, want := range []string{"one", "two"} {
		if got := s.must("receive", "orders").object(t)["body"]; got != want {
			t.Errorf("received %v, want %s", got, want)
		}
	}
	s.must("deadletter", "purge", "orders", "--yes")
	if got := s.must("receive", "orders").object(t)["body"]; got != "second" {
		t.Errorf("received %v, want what waited behind the purged one", got)
	}
	s.must("audit")
}

// onScreen wants each of texts in what a command prints for people.
func (s shell) onScreen(args []string, texts ...string) {
	s.t.Helper()
	screen := s.table(args...)
	for _, want := range texts {
		if !strings.Contains(screen, want) {
			s.t.Errorf("%q is not in\n%s", want, screen)
		}
	}
}
