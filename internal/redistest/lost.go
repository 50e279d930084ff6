package redistest

import (
	"os"
	"path/filepath"
	"testing"
)

// Written is how much of its history a [Persistent] server has on disk: all that
// it has answered.
func (s *Server) Written(t testing.TB) int64 {
	t.Helper()
	info, err := os.Stat(s.history(t))
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	return info.Size()
}

// Lose kills the server and starts it as it was when [Server.Written] said
// written: it has lost its last writes, as a replica that lagged at a failover
// has, or a machine that lost its power. The clients that it answered know of
// them.
func (s *Server) Lose(t testing.TB, written int64) {
	t.Helper()
	s.stop()
	if err := os.Truncate(s.history(t), written); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	s.Restart(t)
}

// history is the append-only file that grows. A [Persistent] server never
// rewrites it, so there is one.
func (s *Server) history(t testing.TB) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(found) != 1 {
		t.Fatalf("redistest: the server is not persistent, or rewrote its file: %v, %v", found, err)
	}
	return found[0]
}
