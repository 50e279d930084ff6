package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInspectShowsTheLimitsThatWouldApply: the defaults where nothing is stated, and what is stated where it is.
func TestInspectShowsTheLimitsThatWouldApply(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.wasm")
	if err := os.WriteFile(path, handlerModule(1, "parley_handle"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newShell(t)
	limits := s.must("plugin", "inspect", path).object(t)["limits"].(map[string]any)
	for name, want := range map[string]any{
		"memory": 67108864.0, "time": "30s", "fuel": 0.0, "output": 65536.0, "reply": 262144.0, "effects": 1000.0,
		"effect_bytes": 4194304.0, "host_calls": 100000.0,
	} {
		if limits[name] != want {
			t.Errorf("limit %s is %v, want %v", name, limits[name], want)
		}
	}
	stated := s.must("plugin", "inspect", path, "--memory", "1MiB", "--time", "5s").object(t)["limits"].(map[string]any)
	if stated["memory"] != 1048576.0 || stated["time"] != "5s" {
		t.Errorf("limits are %v, want the memory and time that were stated", stated)
	}
	var text, errs bytes.Buffer
	if code := run(t.Context(), []string{"plugin", "inspect", path}, &text, &errs, strings.NewReader("")); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	for _, want := range []string{"limit memory", "64 MiB", "limit time", "30s", "limit fuel", "none"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text does not show %q:\n%s", want, text.String())
		}
	}
}
