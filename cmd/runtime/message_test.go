package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

const plainQueues = "queues: [{name: hooks, retry: {initial: 0s, max: 0s}}, {name: other}]\n"

func TestSendPeekReceive(t *testing.T) {
	s := newShell(t)
	s.apply(plainQueues)
	first := s.must("send", "hooks", "--body", "<one>", "--type", "//t", "--id", "m1", "--prop", "event=push", "--prop", "x=a=b").object(t)
	if first["sequence_number"] != 1.0 || first["message_id"] != "m1" {
		t.Errorf("send printed %v", first)
	}
	if r := s.pipe("\xff\x00", "send", "hooks", "--body-file", "-"); r.code != 0 {
		t.Fatalf("send of standard input: %q", r.err)
	}
	if r := s.pipe("two", "send", "hooks", "-"); r.code != 0 {
		t.Fatalf("send -: %q", r.err)
	}
	s.must("send", "hooks", "--body-file", writeFile(t, "b", "from a file"))

	peeked := s.must("peek", "hooks").lines(t)
	if len(peeked) != 4 {
		t.Fatalf("peek shows %d messages, want 4", len(peeked))
	}
	m := peeked[0]
	props := fmt.Sprint(m["properties"])
	if m["body"] != "<one>" || m["message_type"] != "//t" || m["status"] != "ready" || m["delivery_count"] != 0.0 || !strings.Contains(props, "event:push") || !strings.Contains(props, "x:a=b") {
		t.Errorf("peek shows %v", m)
	}
	if _, has := peeked[1]["body"]; has || peeked[1]["body_base64"] != base64.StdEncoding.EncodeToString([]byte{0xff, 0}) {
		t.Errorf("a body that is no text: %v", peeked[1])
	}
	if got := s.must("peek", "hooks", "--from", "3", "--max", "1").object(t); got["sequence_number"] != 3.0 {
		t.Errorf("peek --from 3 --max 1 shows %v", got)
	}

	taken := s.must("receive", "hooks", "--max", "2").lines(t)
	if len(taken) != 2 || taken[0]["sequence_number"] != 1.0 || taken[1]["sequence_number"] != 2.0 {
		t.Errorf("receive took %v", taken)
	}
	taken = s.must("receive", "hooks", "--mode", "receive-and-delete", "--max", "9").lines(t)
	if len(taken) != 2 {
		t.Errorf("receive-and-delete took %d, want the 2 that were left", len(taken))
	}
	if r := s.must("receive", "hooks"); r.out != "" {
		t.Errorf("an empty queue printed %q", r.out)
	}
	s.wantCount("hooks", "total", 0)
}

func TestSendCount(t *testing.T) {
	s := newShell(t)
	s.apply(plainQueues)
	r := s.must("send", "hooks", "--count", "450", "--body", "x").object(t)
	if r["sequence_number"] != 1.0 || r["last_sequence_number"] != 450.0 || r["count"] != 450.0 {
		t.Errorf("send --count printed %v", r)
	}
	s.wantCount("hooks", "ready", 450)
	if got := len(s.must("peek", "hooks", "--max", "450").lines(t)); got != 450 {
		t.Errorf("peek --max 450 shows %d", got)
	}
}

// TestSessionIsReceivedWhole takes messages of one session in one command, although no two of them can be out at once.
func TestSessionIsReceivedWhole(t *testing.T) {
	s := newShell(t)
	s.apply(plainQueues)
	for i := range 5 {
		s.must("send", "hooks", "--session", "s1", "--body", fmt.Sprint(i))
	}
	taken := s.must("receive", "hooks", "--max", "10").lines(t)
	if len(taken) != 5 {
		t.Fatalf("took %d, want 5", len(taken))
	}
	for i, m := range taken {
		if m["body"] != fmt.Sprint(i) || m["session_id"] != "s1" {
			t.Errorf("message %d is %v", i, m)
		}
	}
}

func TestSettleByToken(t *testing.T) {
	s := newShell(t)
	s.apply(plainQueues)
	s.must("send", "hooks", "--body", "x", "--count", "3")
	taken := s.must("receive", "hooks", "--max", "3", "--settle", "none").lines(t)
	if len(taken) != 3 {
		t.Fatalf("took %d, want 3", len(taken))
	}
	token := func(i int) string { return taken[i]["lock_token"].(string) }
	until, err := time.Parse(time.RFC3339, taken[0]["locked_until"].(string))
	if err != nil || time.Until(until) > 61*time.Second || time.Until(until) < 30*time.Second {
		t.Errorf("locked_until is %v (%v), want about a minute from now", until, err)
	}
	s.wantCount("hooks", "locked", 3)
	if got := s.must("settle", "hooks", token(0), "renew").object(t); got["outcome"] != "renewed" || got["locked_until"] == nil {
		t.Errorf("renew printed %v", got)
	}
	for i, tc := range []struct{ verb, outcome string }{{"complete", "completed"}, {"abandon", "abandoned"}, {"dead-letter", "dead_lettered"}} {
		args := []string{"settle", "hooks", token(i), tc.verb}
		if tc.verb == "dead-letter" {
			args = append(args, "--reason", "Bad", "--description", "very bad")
		}
		if got := s.must(args...).object(t); got["outcome"] != tc.outcome {
			t.Errorf("%s printed %v, want outcome %s", tc.verb, got, tc.outcome)
		}
		s.refused(3, args, "MessageLockLost")
	}
	s.wantCount("hooks", "ready", 1)
	s.wantCount("hooks", "dead_letter", 1)
	dead := s.must("deadletter", "list", "hooks").object(t)
	if dead["reason"] != "Bad" || dead["description"] != "very bad" || dead["source"] != "hooks" || dead["sequence_number"] != 3.0 {
		t.Errorf("the dead letter is %v", dead)
	}
	s.must("audit")
}

func TestAbandonLeadsToTheDeadLetterQueue(t *testing.T) {
	s := newShell(t)
	s.apply("queues: [{name: q, max_delivery_count: 3, retry: {initial: 0s, max: 0s}}]\n")
	s.must("send", "q", "--body", "poison", "--prop", "k=v", "--id", "the-id")
	for range 3 {
		if got := len(s.must("receive", "q", "--settle", "abandon", "--description", "no good").lines(t)); got != 1 {
			t.Fatalf("received %d, want 1", got)
		}
	}
	s.wantCount("q", "dead_letter", 1)
	dead := s.must("deadletter", "show", "q", "1").object(t)
	if dead["reason"] != "MaxDeliveryCountExceeded" || dead["delivery_count"] != 3.0 || dead["last_error"] != "HandlerError: no good" {
		t.Errorf("the dead letter is %v", dead)
	}
	again := s.must("deadletter", "resubmit", "q/$deadletterqueue", "1").object(t)
	if again["dead_letter_sequence_number"] != 1.0 || again["message_id"] != "the-id" {
		t.Errorf("resubmit printed %v", again)
	}
	s.refused(4, []string{"deadletter", "resubmit", "q", "1"}, "MessageNotFound")
	m := s.must("receive", "q").object(t)
	if m["message_id"] != "the-id" || m["delivery_count"] != 0.0 || m["body"] != "poison" {
		t.Errorf("the resubmitted message is %v", m)
	}
	if r := s.must("deadletter", "list", "q"); r.out != "" {
		t.Errorf("an empty dead-letter queue printed %q", r.out)
	}
}

func TestDeadLetterQueueIsAQueue(t *testing.T) {
	s := newShell(t)
	s.apply(plainQueues)
	s.must("send", "hooks", "--count", "120", "--body", "x")
	s.must("receive", "hooks", "--max", "120", "--settle", "dead-letter", "--reason", "R")
	if got := len(s.must("deadletter", "list", "hooks").lines(t)); got != 100 {
		t.Errorf("list shows %d, want 100 by default", got)
	}
	if got := len(s.must("deadletter", "list", "hooks", "--max", "500", "--from", "11").lines(t)); got != 110 {
		t.Errorf("list --from 11 --max 500 shows %d, want 110", got)
	}
	if got := s.must("receive", "hooks/$DEADLETTERQUEUE").object(t); got["reason"] != "R" {
		t.Errorf("receive of a dead letter printed %v", got)
	}
	s.refused(2, []string{"deadletter", "purge", "hooks"}, "--yes")
	if got := s.must("deadletter", "purge", "hooks", "--yes").object(t); got["purged"] != 119.0 {
		t.Errorf("purge printed %v", got)
	}
	s.wantCount("hooks", "dead_letter", 0)
	s.must("audit")
}

func TestDelayedMessage(t *testing.T) {
	s := newShell(t)
	s.apply(plainQueues)
	s.must("send", "hooks", "--delay", "1h", "--body", "later")
	s.must("send", "hooks", "--at", time.Now().Add(time.Hour).Format(time.RFC3339), "--body", "later")
	s.wantCount("hooks", "scheduled", 2)
	if r := s.must("receive", "hooks"); r.out != "" {
		t.Errorf("received before its time: %s", r.out)
	}
}
