package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"parley/broker/redisbroker"
	"parley/internal/redistest"
)

func TestApply(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, "f.yaml", dialogEntities)
	plan := s.must("apply", "-f", file, "--dry-run").lines(t)
	if len(plan) < 4 || plan[0]["action"] != "create" {
		t.Errorf("the plan is %v", plan)
	}
	if r := s.must("queue", "list"); r.out != "" {
		t.Errorf("--dry-run created %s", r.out)
	}
	s.must("apply", "-f", file)
	for _, c := range s.must("apply", "-f", file).lines(t) {
		if c["action"] != "none" {
			t.Errorf("applying the same again: %v", c)
		}
	}
	if got := len(s.must("queue", "list").lines(t)); got != 2 {
		t.Errorf("%d queues, want 2", got)
	}
	q := s.must("queue", "show", "inventory").object(t)
	if q["poison_message_handling"].(map[string]any)["status"] != "on" || q["acting_limit"].(map[string]any)["at"] != 5.0 {
		t.Errorf("a queue with a service: %v", q)
	}
	// A later file that does not repeat the service must not take the defaults of a plain queue.
	s.apply("queues: [{name: inventory, max_delivery_count: 7}]\n")
	q = s.must("queue", "show", "inventory").object(t)
	if q["poison_message_handling"].(map[string]any)["status"] != "on" || q["max_delivery_count"] != 7.0 {
		t.Errorf("after a second file: %v", q)
	}
}

func TestPrecedence(t *testing.T) {
	server := redistest.Shared(t)
	ns := redistest.Namespace(t)
	file := writeFile(t, "f.yaml", "namespace: "+ns+"-file\nhost: {redis: '"+server.URL()+"'}\nqueues: [{name: from-file}]\n")
	exec := func(env map[string]string, args ...string) result {
		var out, errs bytes.Buffer
		a := &app{stdout: &out, stderr: &errs, stdin: strings.NewReader(""), connect: connect, getenv: func(k string) string { return env[k] }}
		return result{a.run(t.Context(), args), out.String(), errs.String()}
	}
	want := func(r result, text string) {
		t.Helper()
		if r.code != 0 || !strings.Contains(r.out, text) {
			t.Errorf("got %+v, want %q", r, text)
		}
	}
	// The file names redis and namespace; nothing else does.
	want(exec(nil, "apply", "-f", file), "from-file")
	base := map[string]string{"PARLEY_REDIS": server.URL(), "PARLEY_NAMESPACE": ns + "-env", "PARLEY_FILE": file, "PARLEY_OUTPUT": "json"}
	// The environment wins over the file, and is a flag's twin.
	want(exec(base, "apply"), `"action":"create"`)
	want(exec(base, "queue", "list"), `"name":"from-file"`)
	// A flag wins over the environment.
	want(exec(base, "queue", "list", "-o", "table", "--namespace", ns+"-none"), "no queues in namespace "+ns+"-none")
	bad := map[string]string{"PARLEY_REDIS": server.URL(), "PARLEY_MAX": "many"}
	r := exec(bad, "peek", "q")
	checkRefusal(t, r, 2, []string{"peek"}, "PARLEY_MAX")
	// The default is used where nobody says anything.
	a := &app{}
	opt, err := a.connectOptions("", "")
	if err != nil || opt.url != defaultRedis || opt.namespace != defaultNamespace {
		t.Errorf("defaults are %+v (%v)", opt, err)
	}
}

func TestEventsFollow(t *testing.T) {
	s := newShell(t)
	s.apply(dialogEntities)
	p := s.start("events", "--follow")
	h := s.must("dialog", "begin", "--from", "//shop/Web", "--to", "//shop/Inventory").object(t)["conversation_handle"].(string)
	s.must("dialog", "send", h, "--body", "poison")
	for range 5 {
		s.must("dialog", "receive", "inventory", "--wait", "2s", "--rollback")
	}
	redistest.Eventually(t, "the event", func() bool { return strings.Contains(p.out.String(), `"type":"queue_disabled"`) })
	if r := p.end(); r.code != 0 || r.err != "" {
		t.Errorf("events --follow ended with %d: %q", r.code, r.err)
	}
}

func TestMonitor(t *testing.T) {
	s := newShell(t)
	s.apply(plainQueues)
	s.must("send", "hooks", "--count", "3", "--body", "x")
	once := s.must("monitor", "--once").lines(t)
	if len(once) != 2 || once[0]["name"] != "hooks" || once[0]["counts"].(map[string]any)["ready"] != 3.0 || once[0]["total_change_per_second"] != nil {
		t.Errorf("monitor --once printed %v", once)
	}
	p := s.start("monitor", "--interval", "100ms")
	redistest.Eventually(t, "a second look", func() bool { return strings.Contains(p.out.String(), `"total_change_per_second":0`) })
	if r := p.end(); r.code != 0 || r.err != "" {
		t.Errorf("monitor ended with %d: %q", r.code, r.err)
	}
	m := monitor{last: map[string]int64{"q": 10}, at: time.Unix(100, 0)}
	if got := m.rate("q", 4, time.Unix(102, 0)); got == nil || *got != -3 {
		t.Errorf("rate is %v, want -3", got)
	}
}

func TestInterruptedWait(t *testing.T) {
	s := newShell(t)
	s.apply(plainQueues)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var out, errs bytes.Buffer
	args := []string{"receive", "hooks", "--wait", "60s", "--redis", s.redis, "--namespace", s.ns}
	ended := make(chan int)
	go func() { ended <- run(ctx, args, &out, &errs, strings.NewReader("")) }()
	channel := "parley:" + s.ns + ":wake"
	redistest.Eventually(t, "it to wait", func() bool {
		n, err := redistest.Shared(t).Client(t).PubSubNumSub(t.Context(), channel).Result()
		return err == nil && n[channel] > 0
	})
	stop()
	code := <-ended
	if code != 1 || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("exit %d, stderr %q, want 1 and one line", code, errs.String())
	}
}

func TestTables(t *testing.T) {
	s := newShell(t)
	s.apply(dialogEntities + "namespace: ignored-because-of-the-flag\n")
	s.must("send", "web", "--body", "a\tb\x1b[31m\n"+strings.Repeat("é", 100), "--session", "s")
	for _, tc := range []struct {
		line string
		want []string // nil: it fails
	}{
		{"queue list", []string{"NAME", "inventory", "active"}},
		{"queue show web", []string{"status", "active", "acts first", "poison_message_handling at 5 failures", "//shop/Web"}},
		{"peek web", []string{"SEQ", "a b [31m ", "…"}},
		{"deadletter list web", []string{"no dead letters on web"}},
		{"dialog list", []string{"no conversations"}},
		{"events", []string{"no events"}},
		{"audit", []string{"no difference"}},
		{"receive inventory", []string{"no messages on inventory"}},
		{"monitor --once", []string{"PER SECOND", "inventory"}},
		{"doctor", []string{"noeviction", "eviction", "latency"}},
		{"queue disable web", []string{"disabled"}},
		{"plugin build --help", []string{"Compile a Go plugin folder"}},
		{"deadletter list none", nil},
	} {
		line, want := tc.line, tc.want
		t.Run(line, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), append(strings.Fields(line), "--redis", s.redis, "--namespace", s.ns), &out, &errs, strings.NewReader(""))
			if (code == 0) != (want != nil) {
				t.Fatalf("exit %d: %s", code, errs.String())
			}
			for _, w := range want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("%q is not in\n%s", w, out.String())
				}
			}
			if strings.ContainsAny(out.String(), "\x1b\t") {
				t.Errorf("control characters reach the terminal:\n%q", out.String())
			}
		})
	}
}

func TestDoctor(t *testing.T) {
	fit := redisbroker.ServerInfo{
		URL: "redis://h:6379", Product: "redis", Version: "7.0.15", Mode: "standalone", Role: "master", EvictionPolicy: "noeviction",
		MaxMemory: 1 << 30, UsedMemory: 1 << 20, AppendOnly: "yes", AppendSync: "everysec", StreamNodeBytes: 4096,
		Latency: time.Millisecond, Slowest: 2 * time.Millisecond,
	}
	for _, f := range diagnose(&fit, false) {
		if f.Level != levelOK || f.Advice != "" {
			t.Errorf("a fit server: %+v", f)
		}
	}
	for name, tc := range map[string]struct {
		change       func(*redisbroker.ServerInfo)
		check, level string
	}{
		"old":           {func(s *redisbroker.ServerInfo) { s.Version = "6.2.1" }, "version", levelError},
		"evicts":        {func(s *redisbroker.ServerInfo) { s.EvictionPolicy = "allkeys-lru" }, "eviction", levelError},
		"does not tell": {func(s *redisbroker.ServerInfo) { s.EvictionPolicy = "" }, "eviction", levelWarning},
		"full":          {func(s *redisbroker.ServerInfo) { s.UsedMemory = 1 << 30 }, "memory", levelWarning},
		"no limit":      {func(s *redisbroker.ServerInfo) { s.MaxMemory = 0 }, "memory", levelWarning},
		"no AOF":        {func(s *redisbroker.ServerInfo) { s.AppendOnly = "no" }, "persistence", levelWarning},
		"never syncs":   {func(s *redisbroker.ServerInfo) { s.AppendSync = "no" }, "persistence", levelWarning},
		"disk broken":   {func(s *redisbroker.ServerInfo) { s.LastWriteFailed = true }, "disk", levelError},
		"cluster down": {func(s *redisbroker.ServerInfo) {
			s.Mode, s.ClusterState, s.URL = "cluster", "fail", "redis-cluster://h:1"
		}, "cluster", levelError},
		"cluster by redis": {func(s *redisbroker.ServerInfo) { s.Mode, s.ClusterState = "cluster", "ok" }, "cluster", levelError},
		"replica":          {func(s *redisbroker.ServerInfo) { s.Role = "slave" }, "role", levelError},
		"clock behind":     {func(s *redisbroker.ServerInfo) { s.Skew = -2 * time.Second }, "clock", levelWarning},
		"far away":         {func(s *redisbroker.ServerInfo) { s.Latency = 5 * time.Millisecond }, "latency", levelWarning},
		"large nodes":      {func(s *redisbroker.ServerInfo) { s.StreamNodeBytes = 65536 }, "stream nodes", levelWarning},
	} {
		t.Run(name, func(t *testing.T) {
			s := fit
			tc.change(&s)
			for _, f := range diagnose(&s, false) {
				want := levelOK
				if f.Check == tc.check {
					want = tc.level
				}
				if f.Level != want || (want != levelOK) != (f.Advice != "") {
					t.Errorf("%+v, want level %s", f, want)
				}
			}
		})
	}
}

func TestDoctorLooksAtTheServer(t *testing.T) {
	s := newShell(t)
	found := map[string]string{}
	for _, f := range s.must("doctor").lines(t) {
		found[f["check"].(string)] = f["level"].(string) + " " + f["value"].(string)
	}
	for check, want := range map[string]string{
		"version": "ok redis ", "eviction": "ok noeviction", "persistence": "warning no append-only file", "cluster": "ok standalone",
		"role": "ok master", "clock": "ok ", "stream nodes": "ok stream-node-max-bytes 4096",
	} {
		if !strings.HasPrefix(found[check], want) {
			t.Errorf("%s: got %q, want %q", check, found[check], want)
		}
	}
}
