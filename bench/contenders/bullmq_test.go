package contenders

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	stat := "42 (node (main) x) S 1 42 42 0 -1 4194560 100 0 0 0 123 45 7 8 20 0 11 0 999"
	if got, err := parseStat(stat); err != nil || got != 1680*time.Millisecond {
		t.Errorf("parseStat = %v, %v, want 1.68s", got, err)
	}
	for _, bad := range []string{"", "42 (node) S 1 2 3", "42 (node) S 1 42 42 0 -1 4194560 100 0 0 0 x 45 7"} {
		if got, err := parseStat(bad); err == nil {
			t.Errorf("parseStat(%q) = %v, want an error", bad, got)
		}
	}
}
