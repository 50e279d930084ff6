package main

import (
	"fmt"
	"strings"
	"testing"
)

const dialogEntities = `
queues: [{name: web}, {name: inventory}]
services:
  - {name: //shop/Web, queue: web}
  - {name: //shop/Inventory, queue: inventory, contracts: [DEFAULT]}
`

// TestDialog holds a conversation from both ends, on the command line alone.
func TestDialog(t *testing.T) {
	s := newShell(t)
	s.apply(dialogEntities)
	begun := s.must("dialog", "begin", "--from", "//shop/Web", "--to", "//shop/Inventory").object(t)
	h := begun["conversation_handle"].(string)
	if begun["conversation_id"] == "" || begun["conversation_group_id"] == "" || begun["state"] != "SO" {
		t.Errorf("begin printed %v", begun)
	}
	s.must("dialog", "send", h, "--body", "one").object(t)
	s.must("dialog", "send", h, "--body", "two").object(t)

	// A rollback gives the same again.
	if got := s.must("dialog", "receive", "inventory", "--wait", "2s", "--rollback").object(t); got["body"] != "one" {
		t.Fatalf("receive --rollback printed %v", got)
	}
	got := s.must("dialog", "receive", "inventory", "--top", "5", "--wait", "2s").lines(t)
	for len(got) < 2 { // how many of a group one receive takes at most is --top; how many at least is one
		more := s.must("dialog", "receive", "inventory", "--handle", got[0]["conversation_handle"].(string), "--top", "5").lines(t)
		if len(more) == 0 {
			t.Fatalf("received %v, want two messages", got)
		}
		got = append(got, more...)
	}
	if len(got) != 2 || got[0]["body"] != "one" || got[1]["body"] != "two" || got[1]["message_sequence_number"] != 1.0 {
		t.Fatalf("received %v", got)
	}
	if got[0]["service_name"] != "//shop/Inventory" || got[0]["validation"] != "N" || got[0]["contract"] != "DEFAULT" {
		t.Errorf("the message is %v", got[0])
	}
	h = got[0]["conversation_handle"].(string)
	s.must("dialog", "send", h, "--body", "reply")
	s.must("dialog", "end", h, "--error", "127", "--description", "Unable to process <message>.")
	shown := s.must("dialog", "show", begun["conversation_handle"].(string)).object(t)
	if shown["state"] != "ER" || shown["far_service_name"] != "//shop/Inventory" || shown["is_initiator"] != true {
		t.Errorf("dialog show printed %v", shown)
	}
	s.refused(3, []string{"dialog", "send", begun["conversation_handle"].(string)}, "8429")

	first := s.must("dialog", "receive", "web", "--handle", begun["conversation_handle"].(string), "--top", "1").object(t)
	if !strings.HasSuffix(fmt.Sprint(first["message_type"]), "/Error") || !strings.Contains(fmt.Sprint(first["body"]), "<Code>127</Code>") {
		t.Errorf("the error comes first; got %v", first)
	}
	if got := s.must("dialog", "receive", "web").object(t); got["body"] != "reply" {
		t.Errorf("what is left after the error: %v", got)
	}
	if got := s.must("dialog", "list", "--queue", "web", "--state", "ER").lines(t); len(got) != 1 {
		t.Errorf("dialog list --state ER shows %v", got)
	}
	s.must("dialog", "list", "--state", "ER", "--at-most", "1")
	if r := s.run("dialog", "list", "--state", "ER", "--at-most", "0"); r.code != 1 || !strings.Contains(r.err, "TooManyConversations") || len(r.lines(t)) != 1 {
		t.Errorf("an alert at 0 of 1: exit %d, %q, printed %q", r.code, r.err, r.out)
	}
	if got := s.must("queue", "show", "web").object(t)["open_conversations"]; got != 1.0 {
		t.Errorf("queue show counts %v open conversations, want 1", got)
	}
	s.must("dialog", "end", begun["conversation_handle"].(string))
	if r := s.must("dialog", "list", "--state", "CO"); r.out != "" {
		t.Errorf("conversations are left: %s", r.out)
	}
	s.must("audit")
}

// TestFifthRollbackTurnsTheQueueOff follows an operator: poison, the event, a look, the end of the conversation, ON again.
func TestFifthRollbackTurnsTheQueueOff(t *testing.T) {
	s := newShell(t)
	s.apply(dialogEntities)
	begun := s.must("dialog", "begin", "--from", "//shop/Web", "--to", "//shop/Inventory", "--lifetime", "forever").object(t)
	if begun["expires_at"] != nil {
		t.Errorf("a dialog for ever expires at %v", begun["expires_at"])
	}
	s.must("dialog", "send", begun["conversation_handle"].(string), "--body", "poison")
	var handle string
	for range 5 {
		handle = s.must("dialog", "receive", "inventory", "--wait", "2s", "--rollback").object(t)["conversation_handle"].(string)
	}
	s.refused(3, []string{"dialog", "receive", "inventory"}, "9617")
	shown := s.must("queue", "show", "inventory").object(t)
	if shown["status"] != "off" {
		t.Errorf("status is %v, want off", shown["status"])
	}
	events := s.must("events").lines(t)
	if len(events) != 1 || events[0]["type"] != "queue_disabled" || events[0]["queue"] != "inventory" || events[0]["time"] == nil {
		t.Errorf("events are %v, want one queue_disabled", events)
	}
	if got := s.must("peek", "inventory").object(t); got["body"] != "poison" || got["rollback_count"] != 5.0 {
		t.Errorf("peek while off shows %v", got)
	}
	s.must("dialog", "end", handle, "--error", "127", "--description", "Unable to process message.")
	s.must("queue", "enable", "inventory")
	s.wantCount("inventory", "total", 0)
	if got := s.must("dialog", "receive", "web", "--wait", "2s").object(t); !strings.Contains(fmt.Sprint(got["body"]), "127") {
		t.Errorf("the far side received %v", got)
	}
	s.must("audit")
}
