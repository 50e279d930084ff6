package main

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"

	"parley/internal/redistest"
)

// The four stories that the documents of Service Broker tell, on the command line.

const expenses = `
queues: [{name: web}, {name: expenses}]
message_types:
  - {name: //expense/Report, validation: well_formed_xml}
  - {name: //expense/Nudge, validation: empty}
  - {name: //expense/Scan}
contracts:
  - {name: //expense/Submit, messages: {//expense/Report: any, //expense/Nudge: any, //expense/Scan: any}}
services:
  - {name: //expense/Web, queue: web}
  - {name: //expense/Office, queue: expenses, contracts: [//expense/Submit]}
`

// table runs a command as a person sees it.
func (s shell) table(args ...string) string {
	s.t.Helper()
	var out, errs bytes.Buffer
	if code := run(s.t.Context(), append(args, "--redis", s.redis, "--namespace", s.ns), &out, &errs, strings.NewReader("")); code != 0 {
		s.t.Fatalf("runtime %s: exit %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// submit begins a dialog with the office and returns the handles of both sides after the first message was sent.
func (s shell) submit(typ, body string) (near, far string) {
	s.t.Helper()
	near = s.must("dialog", "begin", "--from", "//expense/Web", "--to", "//expense/Office", "--contract", "//expense/Submit").object(s.t)["conversation_handle"].(string)
	s.must("dialog", "send", near, "--type", typ, "--body", body)
	side := s.must("dialog", "show", near).object(s.t)["far_side"].(map[string]any)
	return near, side["conversation_handle"].(string)
}

// receive takes the next message of a conversation.
func (s shell) receive(handle string, more ...string) map[string]any {
	s.t.Helper()
	got := s.must(append([]string{"dialog", "receive", "--handle", handle, "--wait", "2s"}, more...)...).lines(s.t)
	if len(got) != 1 {
		s.t.Fatalf("received %v from %s, want one message", got, handle)
	}
	return got[0]
}

// TestSeedRemovingAPoisonMessage: a person inspects the poison message while the queue is on (each look is a rollback) and while it
// is off (it is not), ends its conversation with error 127, and turns the queue on.
func TestSeedRemovingAPoisonMessage(t *testing.T) {
	s := newShell(t)
	s.apply(expenses)
	const report = `<report><part>shaft-2</part></report>`
	near, far := s.submit("//expense/Report", report)
	_, innocent := s.submit("//expense/Scan", "innocent")

	// The inspection: receive, show by validation, roll back.
	inspect := []string{"dialog", "receive", "--handle", far, "--wait", "2s", "--rollback"}
	if got := s.table(inspect...); !strings.Contains(got, report) {
		t.Errorf("the inspection printed\n%s", got)
	}
	if got := s.must("peek", "expenses", "--handle", far).object(t); got["rollback_count"] != 1.0 || got["validation"] != "X" {
		t.Errorf("after one look: %v", got)
	}
	for range 3 { // the application fails on it
		s.receive(far, "--rollback")
	}
	if got := s.must("queue", "show", "expenses").object(t)["status"]; got != "active" {
		t.Errorf("after four rollbacks the queue is %v", got)
	}
	s.receive(far, "--rollback")

	// The fifth turned the queue off. Nothing is lost, and looking is still possible.
	s.refused(3, inspect, "9617")
	for range 6 {
		if got := s.table("peek", "expenses", "--handle", far); !strings.Contains(got, report) || strings.Contains(got, "innocent") {
			t.Errorf("peek printed\n%s", got)
		}
	}
	if got := s.must("peek", "expenses", "--handle", far).object(t); got["rollback_count"] != 5.0 || !strings.HasPrefix(got["last_error"].(string), "HandlerError: ") {
		t.Errorf("after six peeks: %v", got)
	}
	shown := s.must("dialog", "show", far).object(t)
	if shown["attempts"] != 5.0 || !strings.HasPrefix(shown["last_error"].(string), "HandlerError: ") || shown["queue_status"] != "off" {
		t.Errorf("dialog show printed %v", shown)
	}
	if events := s.must("events").lines(t); len(events) != 1 || events[0]["type"] != "queue_disabled" || events[0]["conversation_handle"] != far {
		t.Errorf("events are %v", events)
	}

	s.must("dialog", "end", far, "--error", "127", "--description", "Unable to process message.")
	s.must("queue", "enable", "expenses")
	if got := s.receive(near); !strings.Contains(got["body"].(string), "<Code>127</Code><Description>Unable to process message.</Description>") {
		t.Errorf("the other participant received %v", got)
	}
	// The service itself hears nothing of the end, and goes on with the rest.
	if got := s.must("dialog", "receive", "expenses", "--top", "10").lines(t); len(got) != 1 || got[0]["conversation_handle"] != innocent {
		t.Errorf("the service received %v", got)
	}
	s.must("audit")
}

// TestSeedInspectionPrintsByValidation: empty, well-formed XML, and anything.
func TestSeedInspectionPrintsByValidation(t *testing.T) {
	s := newShell(t)
	s.apply(expenses)
	for _, tc := range []struct{ typ, body, validation, want string }{
		{"//expense/Nudge", "", "E", "Empty message."},
		{"//expense/Report", "<report>" + strings.Repeat("long ", 30) + "</report>", "X", strings.Repeat("long ", 30) + "</report>"},
		{"//expense/Scan", "\xff\x00", "N", "No validation -- binary message: (2 bytes, not text)"},
		{"//expense/Scan", "a text", "N", "No validation -- binary message: a text"},
	} {
		_, far := s.submit(tc.typ, tc.body)
		if got := s.table("peek", "expenses", "--handle", far); !strings.Contains(got, tc.want) {
			t.Errorf("peek of %q printed\n%s", tc.body, got)
		}
		if got := s.table("dialog", "receive", "--handle", far, "--wait", "2s", "--rollback"); !strings.Contains(got, tc.want) {
			t.Errorf("the inspection of %q printed\n%s", tc.body, got)
		}
		if got := s.receive(far); got["validation"] != tc.validation {
			t.Errorf("%s has the validation %v, want %s", tc.typ, got["validation"], tc.validation)
		}
		if got := s.table("dialog", "receive", "--handle", far); got != "no messages on expenses\n" {
			t.Errorf("without a message it printed %q", got)
		}
	}
}

// TestSeedUnknownCostCentre: the office ends with error 12; the other side reads code and text from the XML it receives.
func TestSeedUnknownCostCentre(t *testing.T) {
	s := newShell(t)
	s.apply(expenses)
	near, far := s.submit("//expense/Report", `<report centre="127-1000"/>`)
	s.receive(far)
	s.must("dialog", "send", far, "--type", "//expense/Scan", "--body", "seen")
	const text = "Unknown cost centre \"127-1000\" <&>.\nPlease check the list and send the report again."
	s.must("dialog", "end", far, "--error", "12", "--description", text)

	got := s.receive(near)
	if got["message_type"] != "http://schemas.microsoft.com/SQL/ServiceBroker/Error" || got["validation"] != "X" {
		t.Errorf("the first message is %v", got)
	}
	var doc struct {
		XMLName     xml.Name
		Code        int
		Description string
	}
	body := got["body"].(string)
	if err := xml.Unmarshal([]byte(body), &doc); err != nil || !strings.HasPrefix(body, `<?xml version="1.0"?>`) {
		t.Fatalf("the body %q: %v", body, err)
	}
	if doc.Code != 12 || doc.Description != text || doc.XMLName.Local != "Error" || doc.XMLName.Space != "http://schemas.microsoft.com/SQL/ServiceBroker" {
		t.Errorf("the document says %+v", doc)
	}
	// Nothing can be sent any more, what is left can be received.
	s.refused(3, []string{"dialog", "send", near, "--type", "//expense/Scan"}, "8429")
	if got := s.receive(near); got["body"] != "seen" {
		t.Errorf("what is left: %v", got)
	}
	s.must("dialog", "end", near)
	s.must("audit")
}

// TestSeedOrderOfSystemMessages: DialogTimer, then Error, then the rest, whatever came first; EndDialog keeps its place; a timer is
// one side's own.
func TestSeedOrderOfSystemMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		end  []string
		want []string
	}{
		"error":      {[]string{"--error", "1", "--description", "x"}, []string{"DialogTimer", "Error", "first", "second"}},
		"end dialog": {nil, []string{"DialogTimer", "first", "second", "EndDialog"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			s.apply(expenses)
			near, far := s.submit("//expense/Scan", "request")
			s.must("dialog", "send", far, "--type", "//expense/Scan", "--body", "first")
			s.must("dialog", "send", far, "--type", "//expense/Scan", "--body", "second")
			s.must(append([]string{"dialog", "end", far}, tc.end...)...)
			if got := s.must("dialog", "timer", near, "--after", "1ms").object(t); got["timer_due"] == nil {
				t.Errorf("dialog timer printed %v", got)
			}
			redistest.Eventually(t, "the timer to fire", func() bool { return len(s.must("peek", "web").lines(t)) == 4 })
			for i, want := range tc.want {
				m := s.receive(near)
				if got := m["body"].(string); got != want && !strings.HasSuffix(m["message_type"].(string), "/"+want) {
					t.Errorf("message %d is %v, want %s", i, m, want)
				}
			}
			if got := s.must("peek", "expenses").lines(t); len(got) != 0 {
				t.Errorf("the other side has %v", got)
			}
			s.must("audit")
		})
	}
}

// TestSeedRetention: a message is ready (1), received and kept (0), a copy of what was sent is kept (3), nothing kept is received
// again, and all goes when this side ends the conversation.
func TestSeedRetention(t *testing.T) {
	s := newShell(t)
	s.apply(strings.Replace(expenses, "{name: expenses}", "{name: expenses, retention: on}", 1))
	near, far := s.submit("//expense/Scan", "one")
	s.must("dialog", "send", near, "--type", "//expense/Scan", "--body", "two")
	kept := func(want ...string) {
		t.Helper()
		var got []string
		for _, row := range s.must("dialog", "retained", far).lines(t) {
			got = append(got, string(rune('0'+int(row["status"].(float64))))+" "+row["body"].(string))
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("kept %q, want %q", got, want)
		}
	}
	kept("1 one", "1 two")
	s.receive(far, "--rollback")
	kept("1 one", "1 two")
	s.receive(far)
	kept("0 one", "1 two")
	s.must("dialog", "send", far, "--type", "//expense/Scan", "--body", "answer")
	if got := s.table("dialog", "retained", far); !strings.Contains(got, "0 received") || !strings.Contains(got, "1 ready") || !strings.Contains(got, "3 sent") {
		t.Errorf("the table is\n%s", got)
	}
	s.receive(far)
	kept("0 one", "0 two", "3 answer")
	if got := s.must("dialog", "receive", "--handle", far).lines(t); len(got) != 0 {
		t.Errorf("a kept message was received: %v", got)
	}
	s.wantCount("expenses", "ready", 0)
	s.wantCount("expenses", "retained", 3)
	s.must("queue", "disable", "expenses")
	s.refused(3, []string{"dialog", "send", far, "--type", "//expense/Scan"}, "9618")
	s.must("queue", "enable", "expenses")
	kept("0 one", "0 two", "3 answer")
	s.must("dialog", "end", near) // the far side's end takes nothing
	if got := s.receive(far)["message_type"].(string); !strings.HasSuffix(got, "/EndDialog") {
		t.Errorf("received %v", got)
	}
	kept("0 one", "0 two", "3 answer", "0 ")
	s.must("dialog", "end", far)
	s.wantCount("expenses", "retained", 0)
	s.must("audit")
}
