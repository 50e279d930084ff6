package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/broker"
	"parley/plugins/examples/internal/exampletest"
	"parley/sdk"
	"parley/sdk/abi"
)

// TestWebhooks runs all bodies through the compiled plugin: 235 are triaged, 38 have no repository.
func TestWebhooks(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != 273 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	g := exampletest.Group{Plugin: exampletest.Load(t, nil)}
	count := make(map[broker.Verdict]int)
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		event, _, _ := strings.Cut(filepath.Base(file), "__")
		s := g.Run(t, "webhook", body, map[string]string{"event": event})
		count[s.Verdict]++
		switch s.Verdict {
		case broker.VerdictCommit:
			wantTriaged(t, file, event, body, s)
		case broker.VerdictDeadLetter:
			if s.Reason != "NoRepository" || !strings.Contains(s.Description, event) || len(s.Effects) != 0 {
				t.Errorf("%s: %+v", file, s)
			}
		default:
			t.Errorf("%s: %+v", file, s)
		}
	}
	if count[broker.VerdictCommit] != 235 || count[broker.VerdictDeadLetter] != 38 {
		t.Errorf("counts by verdict: %v, want 235 commits and 38 dead letters", count)
	}
}

// wantTriaged compares what the plugin sent with the body, read the slow way.
func wantTriaged(t *testing.T, file, event string, body []byte, s broker.Settlement) {
	t.Helper()
	var hook map[string]any
	if err := json.Unmarshal(body, &hook); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	text := func(v any) string { s, _ := v.(string); return s }
	inner := func(name, key string) string { m, _ := hook[name].(map[string]any); return text(m[key]) }
	want := triaged{event, text(hook["action"]), inner("repository", "full_name"), inner("sender", "login")}
	var got triaged
	if len(s.Effects) != 1 || s.Effects[0].Queue != "triaged" {
		t.Fatalf("%s: %+v", file, s.Effects)
	}
	if err := json.Unmarshal(s.Effects[0].Message.Body, &got); err != nil || got != want {
		t.Errorf("%s: sent %+v, want %+v (%v)", file, got, want, err)
	}
}

func TestHandle(t *testing.T) {
	for _, c := range []struct {
		body   string
		want   int32
		reason string
		sent   string
	}{
		{`{"repository":{"full_name":"a/b"}}`, abi.Commit, "", `{"event":"push","action":"","repository":"a/b","sender":""}`},
		{`{"action":"x","repository":{"full_name":"a/b"},"sender":{"login":"z"}}`, abi.Commit, "", `{"event":"push","action":"x","repository":"a/b","sender":"z"}`},
		{`{"repository":null}`, abi.DeadLetter, "NoRepository", ""},
		{`{}`, abi.DeadLetter, "NoRepository", ""},
		{`{"repository":`, abi.Rollback, "", ""},
		{``, abi.Rollback, "", ""},
	} {
		fake := sdk.Fake{Messages: []sdk.FakeMessage{{Body: []byte(c.body), Properties: map[string]string{"event": "push"}}}}
		out := fake.Run(handle)
		if out.Result != c.want || out.Reason != c.reason {
			t.Errorf("%s: %+v", c.body, out)
		}
		if c.sent != "" && (len(out.Effects) != 1 || string(out.Effects[0].Outgoing.Body) != c.sent) {
			t.Errorf("%s: sent %+v", c.body, out.Effects)
		}
	}
}
