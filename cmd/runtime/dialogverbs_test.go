package main

import (
	"strings"
	"testing"
	"time"

	"parley/internal/redistest"
)

// TestTimerVerbs: arm, replace, repeat, cancel, each shown as it is.
func TestTimerVerbs(t *testing.T) {
	s := newShell(t)
	s.apply(expenses)
	near, far := s.submit("//expense/Scan", "x")
	due := func(got map[string]any) time.Duration {
		t.Helper()
		at, err := time.Parse(time.RFC3339, got["timer_due"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return time.Until(at)
	}
	if d := due(s.must("dialog", "timer", near, "--after", "1h").object(t)); d < 59*time.Minute || d > time.Hour {
		t.Errorf("it is due in %v", d)
	}
	if d := due(s.must("dialog", "timer", near, "--after", "2h").object(t)); d < 119*time.Minute {
		t.Errorf("after it was armed again it is due in %v", d)
	}
	got := s.must("dialog", "timer", near, "--cron", "30 2 * * *", "--time-zone", "Europe/Stockholm").object(t)
	if due(got) > 25*time.Hour || got["timer_cron"] != "30 2 * * *" {
		t.Errorf("a repeated timer is %v", got)
	}
	if got := s.must("dialog", "show", near).object(t); got["timer_due"] == nil || got["far_side"].(map[string]any)["timer_due"] != nil {
		t.Errorf("dialog show printed %v", got)
	}
	for range 2 { // it is no error when there is none
		if got := s.must("dialog", "timer", near, "--cancel").object(t); got["timer_due"] != nil || got["timer_cron"] != "" {
			t.Errorf("after --cancel: %v", got)
		}
	}
	s.must("dialog", "timer", far, "--after", "1h")
	if got := s.must("dialog", "timer", far, "--after", "0s").object(t); got["timer_due"] != nil {
		t.Errorf("after --after 0s: %v", got)
	}
	s.must("dialog", "timer", near, "--cron", "@every 1s")
	for range 2 {
		redistest.Eventually(t, "the timer to fire", func() bool { return len(s.must("peek", "web").lines(t)) == 1 })
		if got := s.receive(near); got["message_type"] != "http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer" || got["validation"] != "E" {
			t.Errorf("received %v", got)
		}
	}
	s.must("audit")
}

// TestMove: two conversations of one group are received together; in another group one is received without the other.
func TestMove(t *testing.T) {
	s := newShell(t)
	s.apply(expenses)
	_, one := s.submit("//expense/Scan", "one")
	_, two := s.submit("//expense/Scan", "two")
	group := s.must("dialog", "show", one).object(t)["conversation_group_id"].(string)
	if got := s.must("dialog", "move", two, "--to-group", group).object(t); got["conversation_group_id"] != group {
		t.Errorf("dialog move printed %v", got)
	}
	if got := s.must("dialog", "receive", "expenses", "--group", group, "--top", "5", "--rollback").lines(t); len(got) != 2 {
		t.Errorf("the group has %v", got)
	}
	const fresh = "00000000-0000-4000-8000-000000000001"
	s.must("dialog", "move", two, "--to-group", fresh)
	if got := s.must("dialog", "receive", "expenses", "--group", fresh, "--top", "5").lines(t); len(got) != 1 || got[0]["body"] != "two" {
		t.Errorf("the new group has %v", got)
	}
	s.must("audit")
}

// TestShowTellsWhatWaitsAndWhy: one screen has both sides, the transmission with its reason, and the trace of what waits.
func TestShowTellsWhatWaitsAndWhy(t *testing.T) {
	s := newShell(t)
	s.apply(expenses)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	h := s.must("dialog", "begin", "--from", "//expense/Web", "--to", "//expense/Office", "--contract", "//expense/Submit").object(t)["conversation_handle"].(string)
	if got := s.table("dialog", "show", h); !strings.Contains(got, "not begun there yet") || !strings.Contains(got, "STARTED_OUTBOUND") {
		t.Errorf("a fresh dialog is shown as\n%s", got)
	}
	s.must("dialog", "send", h, "--type", "//expense/Scan", "--body", "one", "--prop", "traceparent=00-"+trace+"-00f067aa0ba902b7-01")
	s.must("queue", "disable", "expenses")
	s.must("dialog", "send", h, "--type", "//expense/Scan", "--body", "two")
	s.must("dialog", "send", h, "--type", "//expense/Nudge")
	got := s.must("dialog", "show", h).object(t)
	sent := got["transmission"].(map[string]any)
	far := got["far_side"].(map[string]any)
	if sent["waiting"] != 2.0 || sent["status"] == "" || sent["next_try"] == nil || len(sent["messages"].([]any)) != 2 || got["trace_id"] != trace ||
		far["waiting"] != 1.0 || far["queue_status"] != "disabled" || far["state"] != "CO" {
		t.Errorf("dialog show printed %v", got)
	}
	waits := sent["messages"].([]any)[1].(map[string]any)
	if waits["message_sequence_number"] != 2.0 || waits["message_type"] != "//expense/Nudge" || waits["status"] != "in_transit" {
		t.Errorf("in transmission: %v", waits)
	}
	screen := s.table("dialog", "show", h)
	for _, want := range []string{
		"THIS SIDE", "//expense/Web, the initiator, on queue web (active)", "FAR SIDE", "//expense/Office, the target, on queue expenses (disabled)",
		"in transmission", "next try", "message 2", "in_transit", "trace " + trace, "CONVERSING",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not in\n%s", want, screen)
		}
	}
	if n := strings.Count(screen, "\n"); n > 40 {
		t.Errorf("one screen has %d lines", n)
	}
	for state, want := range map[string]int{"CO": 2, "ER": 0} {
		if got := s.must("dialog", "list", "--state", state).lines(t); len(got) != want {
			t.Errorf("dialog list --state %s shows %d conversations, want %d", state, len(got), want)
		}
	}
	s.must("queue", "enable", "expenses")
	s.must("audit")
}

// TestBadInputChangesNothing: each refusal has its number, and conversation, queues and events stay as they were.
func TestBadInputChangesNothing(t *testing.T) {
	s := newShell(t)
	s.apply(expenses)
	near, far := s.submit("//expense/Scan", "x")
	const unknown = "00000001-0000-4000-8000-00000000dead"
	picture := func() string {
		var all []string
		for _, line := range []string{"dialog list", "queue list", "events", "peek web", "peek expenses", "dialog show " + near, "dialog retained " + far} {
			all = append(all, s.must(strings.Fields(line)...).out)
		}
		return strings.Join(all, "")
	}
	before := picture()
	for _, tc := range []struct {
		name string
		code int
		args []string
		want string
	}{
		{"an unknown service", 4, []string{"dialog", "begin", "--from", "//none", "--to", "//expense/Office"}, "8423"},
		{"an unknown contract", 4, []string{"dialog", "begin", "--from", "//expense/Web", "--to", "//expense/Office", "--contract", "//none"}, "8425"},
		{"a group that is no UUID", 2, []string{"dialog", "begin", "--from", "//expense/Web", "--to", "//expense/Office", "--group", "a|b"}, "UUID"},
		{"a lifetime below 0", 2, []string{"dialog", "begin", "--from", "//expense/Web", "--to", "//expense/Office", "--lifetime", "-1s"}, "8411"},
		{"an unknown handle to send on", 4, []string{"dialog", "send", unknown}, "8426"},
		{"an unknown handle to end", 4, []string{"dialog", "end", unknown}, "8426"},
		{"an unknown handle to show", 4, []string{"dialog", "show", unknown}, "8426"},
		{"an unknown handle to move", 4, []string{"dialog", "move", unknown, "--to-group", unknown}, "8426"},
		{"an unknown handle for a timer", 4, []string{"dialog", "timer", unknown, "--after", "5s"}, "8426"},
		{"an unknown handle to look back", 4, []string{"dialog", "retained", unknown}, "8426"},
		{"an unknown handle to receive", 4, []string{"dialog", "receive", "expenses", "--handle", unknown}, "8426"},
		{"no handle at all", 4, []string{"dialog", "show", "nonsense"}, "8426"},
		{"a type outside of the contract", 2, []string{"dialog", "send", near, "--type", "//none"}, "8431"},
		{"error code 0", 2, []string{"dialog", "end", near, "--error", "0", "--description", "x"}, "8419"},
		{"error code -1", 2, []string{"dialog", "end", near, "--error", "-1", "--description", "x"}, "8419"},
		{"no text", 2, []string{"dialog", "end", near, "--error", "1"}, "8424"},
		{"a text of 3,001 characters", 2, []string{"dialog", "end", near, "--error", "1", "--description", strings.Repeat("é", 3001)}, "8422"},
		{"a timer that is not a number", 2, []string{"dialog", "timer", near, "--after", "NaN"}, "TimerOutOfRange"},
		{"a timer below 0", 2, []string{"dialog", "timer", near, "--after", "-5s"}, "TimerOutOfRange"},
		{"a timer without end", 2, []string{"dialog", "timer", near, "--after", "30000d"}, "TimerOutOfRange"},
		{"a timer beyond the lifetime", 3, []string{"dialog", "timer", near, "--after", "8d"}, "8410"},
		{"a cron spec that is none", 2, []string{"dialog", "timer", near, "--cron", "every day"}, "TimerOutOfRange"},
		{"a cron spec that never fires", 2, []string{"dialog", "timer", near, "--cron", "0 0 30 2 *"}, "TimerOutOfRange"},
		{"a time zone that is none", 2, []string{"dialog", "timer", near, "--cron", "@daily", "--time-zone", "Mars/Olympus"}, "TimerOutOfRange"},
		{"a group that is none", 2, []string{"dialog", "move", near, "--to-group", "group|1"}, "UUID"},
	} {
		r := s.run(tc.args...)
		checkRefusal(t, r, tc.code, []string{tc.name}, tc.want)
		if r.out != "" {
			t.Errorf("%s printed %q", tc.name, r.out)
		}
	}
	if after := picture(); after != before {
		t.Errorf("something changed:\n%s\nbefore:\n%s", after, before)
	}
	s.must("audit")
}

// TestXMLBombBounces: a body that would expand without end is refused like any XML that is not well formed, without being expanded;
// the sender gets Error -9615, the target sees nothing.
func TestXMLBombBounces(t *testing.T) {
	s := newShell(t)
	s.apply(expenses)
	const bomb = `<!DOCTYPE a [<!ENTITY b "boom"><!ENTITY c "&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;">]><a>&d;</a>`
	h := s.must("dialog", "begin", "--from", "//expense/Web", "--to", "//expense/Office", "--contract", "//expense/Submit").object(t)["conversation_handle"].(string)
	s.must("dialog", "send", h, "--type", "//expense/Report", "--body", bomb)
	got := s.receive(h)
	if !strings.HasSuffix(got["message_type"].(string), "/Error") || !strings.Contains(got["body"].(string), "<Code>-9615</Code>") {
		t.Errorf("the sender received %v", got)
	}
	s.wantCount("expenses", "total", 0)
	if got := s.must("dialog", "show", h).object(t); got["state"] != "ER" || got["far_side"] != nil {
		t.Errorf("the conversation is %v", got)
	}
	s.must("audit")
}
