package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/internal/redistest"
)

// TestValuesAreRefusedBeforeConnecting uses an address nobody answers at: a wrong flag must not need a broker.
func TestValuesAreRefusedBeforeConnecting(t *testing.T) {
	s := shell{t, "redis://127.0.0.1:1", "default"}
	for _, tc := range []struct{ line, want string }{
		{"send", "ENTITY is missing"},
		{"send q --count 0", "--count"},
		{"send q --count 2 --id a", "--id"},
		{"send q --prop nonsense", "key=value"},
		{"send q --delay -5s", "wants a duration"},
		{"send q --ttl 5", "wants a duration"},
		{"send q --at tomorrow", "--at wants an instant"},
		{"send q --at 2026-01-01T00:00:00Z --delay 5s", "--delay and --at"},
		{"send q --body a --body-file b", "give one"},
		{"send q --body-file /does/not/exist", "no such file"},
		{"peek q --max 0", "--max"},
		{"receive q --settle defer", "NotAvailable"},
		{"receive q --settle burn", `"burn" is no way to settle`},
		{"receive q --mode steal", "--mode"},
		{"receive q --mode receive-and-delete --settle abandon", "nothing to settle"},
		{"receive q --reason R", "--reason"},
		{"settle q t defer", "NotAvailable"},
		{"settle q t", "complete|abandon"},
		{"settle q t burn", `"burn" is no way to settle`},
		{"queue disable q --what everything", "--what"},
		{"queue frobnicate", "there is no command"},
		{"queue", "name a command"},
		{"frobnicate", "unknown command"},
		{"peek q --frobnicate", "unknown flag"},
		{"peek q extra", `"extra" is one argument too many`},
		{"deadletter show q one", "whole number"},
		{"deadletter resubmit q", "sequence number"},
		{"deadletter resubmit q --all", "NotAvailable"},
		{"deadletter resubmit q 1 --dry-run", "NotAvailable"},
		{"deadletter groups q", "NotAvailable"},
		{"deadletter edit q 1", "NotAvailable"},
		{"deadletter purge q", "--yes"},
		{"dialog begin --from a", "--from and --to"},
		{"dialog begin --from a --to b --lifetime -5s", "8411"},
		{"dialog begin --from a --to b --lifetime 0s", "8411"},
		{"dialog end h --error 0 --description x", "8419"},
		{"dialog end h --error -3 --description x", "8419"},
		{"dialog end h --error 3", "8424"},
		{"dialog end h --description x", "8424"},
		{"dialog end h --cleanup", "--force"},
		{"dialog list --state XX", "--state wants"},
		{"dialog receive q --top 0", "--top"},
		{"dialog receive q --handle a --group b", "give one"},
		{"dialog timer h", "give one of --after, --cron and --cancel"},
		{"dialog timer h --after 5s --cancel", "give one of --after, --cron and --cancel"},
		{"dialog timer h --after NaN", "TimerOutOfRange"},
		{"dialog timer h --after -1s", "TimerOutOfRange"},
		{"dialog timer h --after 1s --time-zone UTC", "--time-zone goes with --cron"},
		{"dialog move h", "--to-group is missing"},
		{"dialog retained", "HANDLE is missing"},
		{"apply", "-f FILE is missing"},
		{"apply -f /does/not/exist.yaml", "cannot be read"},
		{"serve", "-f FILE is missing"},
		{"monitor --interval 1ms", "--interval"},
		{"plugin build /does/not/exist --out x", "does not exist"},
		{"plugin build .", "--out"},
		{"plugin inspect /does/not/exist", "no such file"},
		{"peek q -o yaml", "--output wants table or json"},
	} {
		t.Run(tc.line, func(t *testing.T) {
			var out, errs safeBuffer
			args := append(strings.Fields(tc.line), "--redis", s.redis)
			code := run(t.Context(), args, &out, &errs, strings.NewReader(""))
			checkRefusal(t, result{code, out.String(), errs.String()}, 2, args, tc.want)
		})
	}
}

func TestUnknownThings(t *testing.T) {
	s := newShell(t)
	s.apply(plainQueues)
	const handle = "00000001-0000-4000-8000-000000000000"
	for line, want := range map[string]string{
		"queue show none":                  "MessagingEntityNotFound",
		"queue enable none":                "MessagingEntityNotFound",
		"queue delete none":                "MessagingEntityNotFound",
		"queue purge none":                 "MessagingEntityNotFound",
		"send none":                        "MessagingEntityNotFound",
		"peek none":                        "MessagingEntityNotFound",
		"receive none":                     "MessagingEntityNotFound",
		"deadletter list none":             "MessagingEntityNotFound",
		"deadletter show hooks 99":         "MessageNotFound",
		"deadletter resubmit hooks 99":     "MessageNotFound",
		"dialog show " + handle:            "8426",
		"dialog send " + handle:            "8426",
		"dialog end " + handle:             "8426",
		"dialog begin --from none --to no": "8423",
	} {
		t.Run(line, func(t *testing.T) {
			sub := s
			sub.t = t
			sub.refused(4, strings.Fields(line), want)
		})
	}
	s.refused(2, []string{"send", "hooks/$DeadLetterQueue", "--body", "x"}, "SubQueueSend")
	s.ns = "a/b"
	s.refused(2, []string{"queue", "list"}, "InvalidName")
}

func TestQueueThatIsOff(t *testing.T) {
	s := newShell(t)
	s.apply(plainQueues)
	s.must("send", "hooks", "--body", "x")
	if got := s.must("queue", "disable", "hooks").object(t); got["status"] != "disabled" {
		t.Errorf("disable printed %v", got)
	}
	s.refused(3, []string{"receive", "hooks", "--wait", "20s"}, "9617")
	s.refused(3, []string{"send", "hooks"}, "9617")
	s.must("peek", "hooks").object(t)
	s.must("queue", "enable", "hooks")
	s.must("receive", "hooks").object(t)
	if got := s.must("queue", "purge", "hooks").object(t); got["purged"] != 0.0 {
		t.Errorf("purge printed %v", got)
	}
	s.must("queue", "delete", "hooks")
	s.refused(4, []string{"queue", "show", "hooks"}, "MessagingEntityNotFound")
}

func TestBodyOverTheLimit(t *testing.T) {
	s := newShell(t)
	s.apply("queues: [{name: q, max_message_size: 1KiB}]\n")
	body := strings.Repeat("x", 1025)
	s.refused(1, []string{"send", "q", "--body", body}, "MessageSizeExceeded")
	s.refused(1, []string{"send", "q", "--body", body[:1020], "--prop", "key=value"}, "MessageSizeExceeded")
	s.wantCount("q", "total", 0)
	s.must("send", "q", "--body", body[:1024])
	s.wantCount("q", "total", 1)
}

func TestRedisThatIsDown(t *testing.T) {
	server := redistest.Start(t, redistest.Password("s3cret-word"))
	server.Kill(t)
	for _, line := range []string{"queue list", "doctor", "send q", "audit", "events"} {
		s := shell{t, server.URL(), "default"}
		r := s.refused(5, strings.Fields(line), "BrokerUnreachable", server.Addr())
		wantSilence(t, r, "s3cret-word")
	}
	file := writeFile(t, "f.yaml", "queues: [{name: q}]\n")
	s := shell{t, server.URL(), "default"}
	for _, line := range []string{"apply -f " + file, "serve -f " + file} {
		wantSilence(t, s.refused(5, strings.Fields(line), "BrokerUnreachable"), "s3cret-word")
	}
}

func TestWrongPassword(t *testing.T) {
	server := redistest.Start(t, redistest.Password("s3cret-word"))
	for _, url := range []string{
		"redis://:wr0ng-word@" + server.Addr(), "redis://user:wr0ng-word@" + server.Addr(),
		"redis://" + server.Addr() + "?password=wr0ng-word",
	} {
		s := shell{t, url, "default"}
		for _, line := range []string{"queue list", "doctor"} {
			r := s.run(strings.Fields(line)...)
			if strings.Contains(url, "?") {
				wantSilence(t, r, "wr0ng-word")
				continue
			}
			checkRefusal(t, r, 5, []string{line}, "credentials", server.Addr())
			wantSilence(t, r, "wr0ng-word")
		}
	}
	// In a file, and in an address that cannot be understood at all.
	file := writeFile(t, "f.yaml", "host: {redis: 'redis://:wr0ng-word@"+server.Addr()+"'}\n")
	var out, errs safeBuffer
	code := run(t.Context(), []string{"serve", "-f", file}, &out, &errs, strings.NewReader(""))
	r := result{code, out.String(), errs.String()}
	checkRefusal(t, r, 5, []string{"serve"}, "credentials")
	wantSilence(t, r, "wr0ng-word")
	for _, url := range []string{"redis://:wr0ng-word%zz@" + server.Addr(), "nonsense://:wr0ng-word@x", ":wr0ng-word@x"} {
		s := shell{t, url, "default"}
		wantSilence(t, s.refused(2, []string{"queue", "list"}, "URL"), "wr0ng-word")
	}
}

func wantSilence(t *testing.T, r result, secret string) {
	t.Helper()
	if strings.Contains(r.out+r.err, secret) {
		t.Errorf("the password is printed: %q", r.out+r.err)
	}
}

func TestEvictionPolicyIsRefused(t *testing.T) {
	server := redistest.Start(t, redistest.Config("maxmemory-policy allkeys-lru"), redistest.MaxMemory("100mb"))
	s := shell{t, server.URL(), "default"}
	file := writeFile(t, "f.yaml", "queues: [{name: q}]\n")
	for _, line := range []string{"queue list", "apply -f " + file, "serve -f " + file} {
		s.refused(2, strings.Fields(line), "EvictionPolicy", "allkeys-lru", "noeviction")
	}
	s.refused(2, []string{"doctor"}, "eviction", "allkeys-lru")
	s.must("apply", "-f", file, "--allow-eviction")
	s.must("doctor", "--allow-eviction")
}

func TestBadConfigurationOnTheCommandLine(t *testing.T) {
	s := newShell(t)
	for name, tc := range map[string]struct{ yaml, want string }{
		"unknown key":        {"queues:\n  - name: a\n    colour: red\n", `:3: `},
		"reserved character": {"queues:\n  - name: a\n  - name: 'a*b'\n", `:3: `},
	} {
		file := writeFile(t, "bad.yaml", tc.yaml)
		for _, command := range []string{"apply", "serve"} {
			t.Run(command+" "+name, func(t *testing.T) {
				sub := s
				sub.t = t
				sub.refused(2, []string{command, "-f", file}, filepath.Base(file)+tc.want)
			})
		}
	}
	if r := s.must("queue", "list"); r.out != "" {
		t.Errorf("a refused file created %s", r.out)
	}
}

func TestBadModulesAreRefusedBeforeAnythingIsApplied(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		module []byte
		limits string
		want   string
	}{
		"not wasm":          {[]byte("#!/bin/sh\n"), "", "no WebAssembly module"},
		"lacks the export":  {handlerModule(1, "somebody_else"), "", "parley_handle"},
		"memory over limit": {handlerModule(32, "parley_handle"), "limits: {memory: 1MiB}", "memory"},
	} {
		t.Run(name, func(t *testing.T) {
			sub := s
			sub.t = t
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".wasm")
			if err := os.WriteFile(path, tc.module, 0o600); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "f.yaml")
			yaml := "queues: [{name: q}]\nplugins:\n  - name: p\n    queue: q\n    source: " + filepath.Base(path) + "\n"
			if tc.limits != "" {
				yaml += "    " + tc.limits + "\n"
			}
			if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			sub.refused(2, []string{"serve", "-f", file}, "f.yaml:5: ", tc.want)
			args := []string{"plugin", "inspect", path}
			if tc.limits != "" {
				args = append(args, "--memory", "1MiB")
			}
			sub.refused(2, args, tc.want)
			if r := sub.must("queue", "list"); r.out != "" {
				t.Errorf("a refused module left %s", r.out)
			}
		})
	}
}
