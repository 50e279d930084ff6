package main

import (
	"bytes"
	"strings"
	"testing"

	"parley/internal/redistest"
)

// TestAuditOutcomes runs audit on the command line over a right queue, a damaged one, its repair, and a namespace without queues.
func TestAuditOutcomes(t *testing.T) {
	s := newShell(t)
	exec := func(line string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(t.Context(), append(strings.Fields(line), "--redis", s.redis, "--namespace", s.ns), &out, &errs, strings.NewReader(""))
		return code, out.String(), errs.String()
	}
	if code, out, errs := exec("audit"); code != 4 || out != "" || !strings.Contains(errs, "has no entities") {
		t.Errorf("a namespace without queues: exit %d, %q, %q", code, out, errs)
	}
	s.apply(dialogEntities)
	s.must("send", "web", "--body", "a", "--count", "3")
	if code, out, errs := exec("audit"); code != 0 || out != "no difference: 2 queues, 3 messages, 0 conversations compared\n" || errs != "" {
		t.Errorf("all is right: exit %d, %q, %q", code, out, errs)
	}
	c := redistest.Shared(t).Client(t)
	if err := c.HSet(t.Context(), "{"+s.ns+"/web}:meta", "ready", -1).Err(); err != nil {
		t.Fatal(err)
	}
	code, out, errs := exec("audit web")
	if code != 1 || !strings.Contains(out, "counter ready") || !strings.Contains(out, "wrong") || !strings.Contains(errs, "--repair") {
		t.Errorf("a counter is wrong: exit %d, %q, %q", code, out, errs)
	}
	code, out, errs = exec("audit web --repair")
	if code != 0 || !strings.Contains(out, "1 difference repaired, no difference left: 1 queue, 3 messages") || errs != "" {
		t.Errorf("repair: exit %d, %q, %q", code, out, errs)
	}
	const compared = `{"queues":1,"messages":3,"conversations":0,"differences":0,"repaired":0,"unsettled":[]}` + "\n"
	if code, out, errs := exec("audit web -o json"); code != 0 || out != compared || errs != "" {
		t.Errorf("JSON of nothing: exit %d, %q, %q", code, out, errs)
	}
	if code, out, _ := exec("events"); code != 0 || !strings.Contains(out, "repaired") {
		t.Errorf("events: exit %d, %q", code, out)
	}
}
