package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/redistest"
)

// example is the folder of an example plugin.
func example(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "plugins", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestServeTriagesWebhooks sends every webhook body we have through the plugin, built from source by serve itself.
func TestServeTriagesWebhooks(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, "triage.yaml", `
host: {lease: 5s, drain: 10s}
queues: [{name: hooks}, {name: triaged}]
plugins:
  - {name: triage, source: `+example(t, "github-triage")+`, queue: hooks, limits: {memory: 64MiB, time: 10s}}
`)
	p := s.start("serve", "-f", file)
	p.ready()
	bodies, err := filepath.Glob(filepath.Join(example(t, "github-triage"), "testdata", "*.json"))
	if err != nil || len(bodies) == 0 {
		t.Fatalf("no webhook bodies: %v", err)
	}
	repositories := 0
	for _, b := range bodies {
		event, _, _ := strings.Cut(filepath.Base(b), "__")
		s.must("send", "hooks", "--body-file", b, "--prop", "event="+event)
		if hasRepository(t, b) {
			repositories++
		}
	}
	redistest.Eventually(t, "the queue to be empty", func() bool {
		n := s.counts("hooks")
		return n["ready"].(float64)+n["locked"].(float64)+n["retrying"].(float64) == 0
	})
	if r := p.end(); r.code != 0 || r.out != "ready\n" {
		t.Errorf("serve ended with %d and printed %q: %s", r.code, r.out, r.err)
	}
	s.wantCount("triaged", "ready", repositories)
	s.wantCount("triaged", "total", repositories)
	s.wantCount("hooks", "dead_letter", len(bodies)-repositories)
	for _, d := range s.must("deadletter", "list", "hooks").lines(t) {
		if d["reason"] != "NoRepository" {
			t.Errorf("a dead letter has the reason %v", d["reason"])
		}
	}
	s.must("audit")
}

// hasRepository looks at a body without the plugin's eyes.
func hasRepository(t *testing.T, file string) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(data, &body); err != nil {
		t.Fatal(err)
	}
	repository, _ := body["repository"].(map[string]any)
	name, _ := repository["full_name"].(string)
	return name != ""
}

// TestServeSmallestHandler runs a module that imports nothing.
func TestServeSmallestHandler(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.wasm"), handlerModule(1, "parley_handle"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "f.yaml")
	if err := os.WriteFile(file, []byte("queues: [{name: q}]\nplugins: [{name: p, source: p.wasm, queue: q}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("apply", "-f", file)
	s.must("send", "q", "--count", "50", "--body", "x")
	p := s.start("serve", "-f", file)
	p.ready()
	redistest.Eventually(t, "the messages to be handled", func() bool { return s.counts("q")["total"] == 0.0 })
	if r := p.end(); r.code != 0 {
		t.Errorf("serve ended with %d: %s", r.code, r.err)
	}
	s.wantCount("q", "dead_letter", 0)
}

// TestT_AC_8 is about a handler that returns without a verdict: what it answers is none of commit, rollback and dead-letter.
func TestT_AC_8_a_return_without_a_verdict_is_a_rollback_that_is_told(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.wasm"), answeringModule(1, "parley_handle", 7), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "f.yaml")
	yaml := "queues: [{name: q}]\nservices: [{name: //s, queue: q}]\nplugins: [{name: p, source: p.wasm, queue: q}]\n"
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("apply", "-f", file)
	s.must("send", "q", "--body", "x")
	p := s.start("serve", "-f", file)
	p.ready()
	redistest.Eventually(t, "the queue to be off", func() bool { return s.must("queue", "show", "q").object(t)["status"] == "off" })
	r := p.end()
	if r.code != 0 {
		t.Errorf("serve ended with %d: %s", r.code, r.err)
	}
	if n := strings.Count(r.err, "the handler returned 7"); n != 5 { // once an attempt
		t.Errorf("%d lines tell of the answer, want 5:\n%s", n, r.err)
	}
	if got := s.must("peek", "q").object(t); got["rollback_count"] != 5.0 || got["body"] != "x" {
		t.Errorf("the message is %v, want it first in its queue, rolled back five times", got)
	}
	s.wantCount("q", "total", 1)
	told := ""
	for _, e := range s.must("events").lines(t) {
		if e["type"] == "queue_disabled" {
			told += fmt.Sprint(e["last_error"])
		}
	}
	if told != "HandlerError: the handler returned 7" {
		t.Errorf("the event says %q", told)
	}
	s.must("audit")
}

func TestServeNeedsNoPlugins(t *testing.T) {
	s := newShell(t)
	p := s.start("serve", "-f", writeFile(t, "f.yaml", "queues: [{name: q}]\n"))
	p.ready()
	s.must("queue", "show", "q")
	if r := p.end(); r.code != 0 {
		t.Errorf("serve ended with %d: %s", r.code, r.err)
	}
}

func TestServeRefusesAPluginWithoutQueue(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "p.wasm"), handlerModule(1, "parley_handle"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "f.yaml")
	if err := os.WriteFile(file, []byte("queues: [{name: q}]\nplugins:\n  - {name: p, source: p.wasm, queue: none}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.refused(2, []string{"serve", "-f", file}, "f.yaml:3: ", `"none"`)
	if r := s.must("queue", "list"); r.out != "" {
		t.Errorf("a refused file created %s", r.out)
	}
}
