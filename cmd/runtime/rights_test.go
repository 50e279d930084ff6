package main

import (
	"slices"
	"strings"
	"testing"

	"parley/internal/redistest"
)

// leastShell is a shell on a server of its own, as a user who may do exactly what doctor --acl prints, and what it advises.
func leastShell(t *testing.T) (shell, *redistest.Server) {
	t.Helper()
	server := redistest.Start(t)
	s := shell{t, "redis://app:pw@" + server.Addr(), "shop"}
	rights := s.must("doctor", "--acl").object(t)
	words := strings.Fields(rights["line"].(string))
	if want := []string{"ACL", "SETUSER", "app"}; !slices.Equal(words[:3], want) {
		t.Fatalf("doctor --acl begins with %q", words[:3])
	}
	words = words[3:]
	for _, advised := range rights["advised"].([]any) {
		words = append(words, "+"+advised.(string))
	}
	server.User(t, "app", words...)
	return s, server
}

// TestTheLeastRightsAreEnough walks through a shop: apply, serve with a plugin, dialogs, dead letters, queues, audit.
func TestTheLeastRightsAreEnough(t *testing.T) {
	s, _ := leastShell(t)
	file := writeFile(t, "shop.yaml", `
queues: [{name: hooks}, {name: triaged}, {name: web}, {name: stock}]
services: [{name: //web, queue: web}, {name: //stock, queue: stock}]
plugins:
  - {name: triage, source: `+example(t, "github-triage")+`, queue: hooks}
`)
	s.must("apply", "-f", file)
	p := s.start("serve", "-f", file)
	p.ready()
	s.must("send", "hooks", "--body", `{"no":"repository"}`, "--prop", "event=push")
	redistest.Eventually(t, "the dead letter", func() bool { return s.counts("hooks")["dead_letter"] == 1.0 })
	s.must("deadletter", "list", "hooks")
	handle := s.begin("//web", "//stock", "hello")
	s.must("dialog", "receive", "stock")
	s.must("dialog", "show", handle)
	s.must("dialog", "end", handle)
	s.must("send", "triaged", "--count", "3", "--body", "x")
	s.must("peek", "triaged")
	s.must("receive", "triaged", "--max", "2")
	s.must("events")
	s.must("queue", "purge", "triaged")
	s.must("deadletter", "purge", "hooks", "--yes")
	s.must("queue", "delete", "triaged")
	s.must("audit")
	for _, f := range s.must("doctor").lines(t) {
		if f["check"] == "rights" && f["level"] != "ok" {
			t.Errorf("doctor says %v", f)
		}
	}
	if r := p.end(); r.code != 0 || strings.Contains(r.err, "NOPERM") || strings.Contains(r.err, "The user executing") {
		t.Errorf("serve ended with %d: %s", r.code, r.err)
	}
}

// TestServeEndsWhenARightIsTakenAway, with the same text as a connect without it.
func TestServeEndsWhenARightIsTakenAway(t *testing.T) {
	s, server := leastShell(t)
	file := writeFile(t, "f.yaml", "queues: [{name: q}]\n")
	p := s.start("serve", "-f", file)
	p.ready()
	server.User(t, "app", "-hmget")
	<-p.done
	if p.code != 5 || !strings.Contains(p.err.String(), "ACL SETUSER app +hmget\n") {
		t.Errorf("serve ended with %d: %s", p.code, p.err.String())
	}
	s.refused(5, []string{"queue", "list"}, "MissingRights", "hmget", "ACL SETUSER app +hmget")
	s.refused(2, []string{"doctor"}, "lacks command hmget")
}

// TestAFullRedisIsDrainedByAHost: serve starts with a file that is applied already, and handles what waits.
func TestAFullRedisIsDrainedByAHost(t *testing.T) {
	server := redistest.Start(t)
	s := shell{t, server.URL(), "shop"}
	file := writeFile(t, "shop.yaml", `
queues: [{name: hooks}, {name: triaged}]
plugins:
  - {name: triage, source: `+example(t, "github-triage")+`, queue: hooks}
`)
	s.must("apply", "-f", file)
	s.must("send", "hooks", "--count", "20", "--body", `{"no":"repository"}`, "--prop", "event=push")
	if err := server.Client(t).ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	s.refused(1, []string{"send", "triaged", "--body", "x"}, "QuotaExceeded", "make room")
	p := s.start("serve", "-f", file)
	p.ready()
	redistest.Eventually(t, "the queue to be handled", func() bool { return s.counts("hooks")["dead_letter"] == 20.0 })
	if got := s.must("deadletter", "purge", "hooks", "--yes").object(t); got["purged"] != 20.0 {
		t.Errorf("purge printed %v", got)
	}
	s.must("audit")
	if r := p.end(); r.code != 0 {
		t.Errorf("serve ended with %d: %s", r.code, r.err)
	}
}
