package main

import (
	"fmt"
	"strings"
	"testing"

	"parley/internal/redistest"
)

// lines waits until peek shows n messages on queue and returns them.
func (s shell) awaitMessages(queue string, n int) []map[string]any {
	s.t.Helper()
	var got []map[string]any
	redistest.Eventually(s.t, fmt.Sprintf("%d messages on %s", n, queue), func() bool {
		got = s.must("peek", queue, "--max", "100").lines(s.t)
		return len(got) >= n
	})
	return got
}

// begin begins a dialog and sends bodies on it.
func (s shell) begin(from, to string, bodies ...string) (handle string) {
	s.t.Helper()
	handle = s.must("dialog", "begin", "--from", from, "--to", to).object(s.t)["conversation_handle"].(string)
	for _, b := range bodies {
		s.must("dialog", "send", handle, "--body", b)
	}
	return handle
}

// TestPoisonHandler: the queue's own plugin fails on one message, the example repairs the queue: one look, one END, one ON, and
// the queue's readers, four of them and eager, never meet the message again.
func TestPoisonHandler(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, "shop.yaml", `
queues: [{name: web}, {name: inventory}, {name: repairs}]
services:
  - {name: //shop/Web, queue: web}
  - {name: //shop/Inventory, queue: inventory, contracts: [DEFAULT]}
  - {name: //shop/Repairs, queue: repairs}
event_notifications:
  - {event: queue_disabled, queue: inventory, to: //shop/Repairs}
plugins:
  - {name: inventory, source: `+example(t, "inventory")+`, queue: inventory, config: {stock: gear-7=100, obsolete: shaft-2}}
  - name: poison-handler
    source: `+example(t, "poison-handler")+`
    queue: repairs
    capabilities: [queue_peek, conversation_end, queue_enable]
`)
	s.must("apply", "-f", file)
	// Both wait before anybody looks: a host that runs may have ended the conversation before the second one is sent.
	poison := s.begin("//shop/Web", "//shop/Inventory", `{"part":"shaft-2","quantity":1}`, `{"part":"gear-7","quantity":1}`)
	p := s.start("serve", "-f", file)
	p.ready()
	for range 5 {
		s.begin("//shop/Web", "//shop/Inventory", `{"part":"gear-7","quantity":1}`)
	}
	got := s.awaitMessages("web", 6)
	errors := 0
	for _, m := range got {
		if strings.HasSuffix(m["message_type"].(string), "/Error") {
			errors++
			if m["conversation_handle"] != poison || !strings.Contains(m["body"].(string), "<Code>127</Code><Description>Unable to process message.") {
				t.Errorf("the error is %v", m)
			}
		} else if m["body"] != `{"part":"gear-7","granted":true,"left":99}` {
			t.Errorf("an answer is %v", m)
		}
	}
	if errors != 1 || len(got) != 6 {
		t.Errorf("%d errors among %d messages, want one of 6: the messages of the ended conversation go with it", errors, len(got))
	}
	redistest.Eventually(t, "the queue to be on and empty", func() bool {
		q := s.must("queue", "show", "inventory").object(t)
		return q["status"] == "active" && q["counts"].(map[string]any)["total"] == 0.0
	})
	switched := map[any]int{}
	for _, e := range s.must("events").lines(t) {
		switched[e["type"]]++
	}
	if switched["queue_disabled"] != 1 || switched["queue_enabled"] != 1 {
		t.Errorf("events are %v, want the queue off once and on once", switched)
	}
	s.wantCount("repairs", "total", 0)
	if r := p.end(); r.code != 0 || strings.Count(r.err, "an order change made it obsolete") < 5 {
		t.Errorf("serve ended with %d: %s", r.code, r.err)
	}
	s.must("audit")
}

// TestPoisonHandlerWithoutCapabilities changes nothing and says why.
func TestPoisonHandlerWithoutCapabilities(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, "shop.yaml", `
queues: [{name: inventory}, {name: repairs, max_delivery_count: 1}]
services:
  - {name: //shop/Inventory, queue: inventory, contracts: [DEFAULT]}
  - {name: //shop/Repairs, queue: repairs}
event_notifications:
  - {event: queue_disabled, queue: inventory, to: //shop/Repairs}
plugins:
  - {name: poison-handler, source: `+example(t, "poison-handler")+`, queue: repairs, capabilities: [conversation_end]}
`)
	s.must("apply", "-f", file)
	s.begin("//shop/Inventory", "//shop/Inventory", "poison")
	for range 5 {
		s.must("dialog", "receive", "inventory", "--rollback").object(t)
	}
	p := s.start("serve", "-f", file)
	p.ready()
	redistest.Eventually(t, "the event to be dead-lettered", func() bool { return s.counts("repairs")["dead_letter"] == 1.0 })
	dead := s.must("deadletter", "list", "repairs").object(t)
	if got := dead["last_error"].(string); !strings.HasPrefix(got, "CapabilityDenied: ") || !strings.Contains(got, "queue_peek") {
		t.Errorf("the event failed with %q", got)
	}
	if got := s.must("queue", "show", "inventory").object(t)["status"]; got != "off" {
		t.Errorf("the queue is %v", got)
	}
	p.end()
	s.must("audit")
}

// TestCompensate: an error of the far side has every withdrawal booked back, the last first.
func TestCompensate(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, "shop.yaml", `
queues: [{name: web}, {name: stock, retention: on}, {name: ledger}]
services:
  - {name: //shop/Web, queue: web}
  - {name: //shop/Stock, queue: stock, contracts: [DEFAULT]}
plugins:
  - {name: compensate, source: `+example(t, "compensate")+`, queue: stock, config: {ledger: ledger}}
`)
	p := s.start("serve", "-f", file)
	p.ready()
	part := func(name string) string { return fmt.Sprintf(`{"part":%q,"quantity":1}`, name) }
	h := s.begin("//shop/Web", "//shop/Stock", part("a"), part("b"), part("c"))
	far := s.awaitMessages("web", 3)[0]["conversation_handle"]
	kept := s.must("dialog", "show", far.(string)).object(t)["far_side"].(map[string]any)
	var statuses []any
	for _, row := range s.must("dialog", "retained", kept["conversation_handle"].(string)).lines(t) {
		statuses = append(statuses, row["status"])
	}
	if got := fmt.Sprint(statuses); strings.Count(got, "0") != 3 || strings.Count(got, "3") != 3 || len(statuses) != 6 {
		t.Errorf("kept before the error: %v", statuses)
	}
	s.must("dialog", "end", h, "--error", "500", "--description", "the order was cancelled")
	lines := s.awaitMessages("ledger", 6)
	for i, want := range []string{"withdrawn a", "withdrawn b", "withdrawn c", "returned c", "returned b", "returned a"} {
		entry, name, _ := strings.Cut(want, " ")
		if got := lines[i]["body"]; got != `{"entry":"`+entry+`",`+part(name)[1:] {
			t.Errorf("line %d of the ledger is %v, want %s", i, got, want)
		}
	}
	redistest.Eventually(t, "what was kept to go", func() bool { return s.counts("stock")["retained"] == 0.0 })
	s.wantCount("stock", "total", 0)
	if r := p.end(); r.code != 0 {
		t.Errorf("serve ended with %d: %s", r.code, r.err)
	}
	s.must("audit")
}

// TestMonitorShowsActivation: what hosts publish is shown while they run, and gone when they have said good-bye.
func TestMonitorShowsActivation(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, "hooks.yaml", `
queues: [{name: hooks}, {name: triaged}]
plugins: [{name: triage, source: `+example(t, "github-triage")+`, queue: hooks, max_queue_readers: 3}]
`)
	p := s.start("serve", "-f", file)
	p.ready()
	for range 3 {
		s.must("send", "hooks", "--body", `{"repository":{"full_name":"a/b"}}`, "--prop", "event=push")
	}
	hooks := func() map[string]any {
		for _, q := range s.must("monitor", "--once").lines(t) {
			if q["name"] == "hooks" {
				a, _ := q["activation"].(map[string]any)
				return a
			} else if q["activation"] != nil {
				t.Errorf("a queue without a plugin has the activation %v", q["activation"])
			}
		}
		return nil
	}
	redistest.Eventually(t, "the monitor to be idle again after three attempts", func() bool {
		a := hooks()
		if a == nil {
			return false
		}
		m := a["monitors"].([]any)[0].(map[string]any)
		return a["state"] == "INACTIVE" && m["committed"] == 3.0 && m["readers_stopped"] == m["readers_started"] && m["last_empty_time"] != nil
	})
	m := hooks()["monitors"].([]any)[0].(map[string]any)
	if m["plugin"] != "triage" || m["max_queue_readers"] != 3.0 || m["readers_started"].(float64) < 1 || m["last_activated_time"] == nil || m["attempts"] != 3.0 {
		t.Errorf("the monitor is %v", m)
	}
	if got := s.must("monitor", "--once", "--hosts").object(t); got["name"] != "hooks" || got["host"] != hostName() {
		t.Errorf("monitor --hosts printed %v", got)
	}
	s.must("send", "hooks", "--body", "x") // it fails each time, and stays
	redistest.Eventually(t, "the failed attempt to be counted", func() bool {
		m := hooks()["monitors"].([]any)[0].(map[string]any)
		return m["dead_lettered"].(float64)+m["rolled_back"].(float64) > 0
	})
	p.end()
	if a := hooks(); a != nil {
		t.Errorf("a host that is gone is shown: %v", a)
	}
}
