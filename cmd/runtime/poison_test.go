package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"parley/broker"
	"parley/internal/redistest"
)

// TestT_PM_9_real_failures lets a module fail in each of its ways, through a host and on the real server: every one counts, and the
// fifth turns its queue OFF with its own reason.
func TestT_PM_9_real_failures(t *testing.T) {
	s := newShell(t)
	module, err := filepath.Abs(filepath.Join("..", "..", "host", "guest", "testdata", "trouble.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	const long = "30s" // no other limit may be reached before the one that is meant
	ways := []struct{ letter, reason, time string }{
		{"u", broker.ReasonTrap, long},
		{"l", broker.ReasonDeadlineExceeded, "50ms"},
		{"r", broker.ReasonStackOverflow, long},
		{"g", broker.ReasonMemoryLimit, long},
		{"e", broker.ReasonEffectLimit, long},
		{"h", broker.ReasonHostCallLimit, long},
		{"3", broker.ReasonHandlerError, long},
	}
	var queues, services, plugins strings.Builder
	for i, w := range ways {
		fmt.Fprintf(&queues, "  - {name: q%d}\n", i)
		fmt.Fprintf(&services, "  - {name: //t/S%d, queue: q%d}\n", i, i)
		fmt.Fprintf(&plugins, "  - {name: p%d, source: %s, queue: q%d, limits: {time: %s, memory: 1MiB}}\n", i, module, i, w.time)
	}
	queues.WriteString("  - {name: triaged}\n") // where the module sends to
	file := writeFile(t, "f.yaml", "queues:\n"+queues.String()+"services:\n"+services.String()+"plugins:\n"+plugins.String())
	s.must("apply", "-f", file)
	for i, w := range ways {
		s.must("send", fmt.Sprint("q", i), "--body", w.letter)
	}
	p := s.start("serve", "-f", file)
	p.ready()
	for i, w := range ways {
		q := fmt.Sprint("q", i)
		redistest.Eventually(t, q+" to be OFF: "+w.reason, func() bool { return s.must("queue", "show", q).object(t)["status"] == "off" })
		m := s.must("peek", q).lines(t)
		if len(m) != 1 || m[0]["delivery_count"] != 5.0 || !strings.HasPrefix(fmt.Sprint(m[0]["last_error"]), w.reason+": ") {
			t.Errorf("%s: on the queue: %v", w.reason, m)
		}
	}
	switched := map[any]int{}
	for _, e := range s.must("events").lines(t) {
		if e["type"] == "queue_disabled" {
			switched[e["queue"]]++
		}
	}
	if len(switched) != len(ways) {
		t.Errorf("events queue_disabled by queue: %v", switched)
	}
	for q, n := range switched {
		if n != 1 {
			t.Errorf("queue %v: %d events", q, n)
		}
	}
	s.must("audit")
}
