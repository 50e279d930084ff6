package measure

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// lossy takes n messages and lets only some through.
type lossy struct {
	lose, double int
	count        *Count
	closed       bool
}

func (l *lossy) Prepare(_ context.Context, n int) error {
	l.count = NewCount(n)
	l.count.Add(n - l.lose + l.double)
	return nil
}
func (l *lossy) Run(ctx context.Context) error { return l.count.Wait(ctx) }
func (l *lossy) Verify(context.Context) error  { return l.count.Check() }
func (l *lossy) Close() error                  { l.closed = true; return nil }
func (l *lossy) Samples() []time.Duration      { return []time.Duration{3000, 1000, 2000} }
func (l *lossy) workload(kind Kind) Workload {
	return Workload{Name: "lossy", Kind: kind, Count: 10, Open: func(context.Context, string) (Side, error) { return l, nil }}
}

func startServer(t *testing.T) *Server {
	t.Helper()
	server, err := StartServer(t.Context(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

func TestRunFailsOnALostMessageInsteadOfHanging(t *testing.T) {
	side := &lossy{lose: 1}
	_, err := Run(t.Context(), startServer(t), side.workload(Rate), 50*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "9 of 10") {
		t.Errorf("Run = %v, want the deadline and 9 of 10", err)
	}
	if !side.closed {
		t.Error("the side was left open")
	}
}

func TestRunFailsOnADoubledMessage(t *testing.T) {
	side := &lossy{double: 1}
	_, err := Run(t.Context(), startServer(t), side.workload(Rate), time.Second)
	if err == nil || !strings.Contains(err.Error(), "verify: 11 messages went through, want 10") {
		t.Errorf("Run = %v, want a failed check", err)
	}
}

func TestRunTakesTheFigureOfItsKind(t *testing.T) {
	result, err := Run(t.Context(), startServer(t), (&lossy{}).workload(Latency), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if result.Value != 2 || result.P50 != 2 || result.P99 != 3 {
		t.Errorf("value %v p50 %v p99 %v, want 2, 2 and 3 us", result.Value, result.P50, result.P99)
	}
}

func TestStopEndsTheServer(t *testing.T) {
	server, err := StartServer(t.Context(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	if server.Version == "" {
		t.Error("the server has no version")
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := server.Flush(t.Context()); err == nil {
		t.Error("a stopped server answered")
	}
}

func TestStartServerReportsAMissingBinary(t *testing.T) {
	if _, err := StartServer(t.Context(), "/nonexistent/redis-server"); err == nil {
		t.Error("a missing binary started")
	}
}
