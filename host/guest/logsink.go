package guest

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/host"
)

// linesPerSecond bounds what the guests of one plugin may write to the host's log.
const linesPerSecond = 100

// logSink passes guests' lines on to the host's log.
type logSink struct {
	log *slog.Logger // nil: nobody listens

	mu      sync.Mutex
	second  int64 // the second that written counts for; protected by mu
	written int   // protected by mu
	skipped int   // lines since the last report; protected by mu
}

func newLogSink(log *slog.Logger, plugin string) *logSink {
	if log != nil {
		log = log.With("plugin", plugin)
	}
	return &logSink{log: log}
}

// write logs what one attempt left, as far as this second's share goes.
func (s *logSink) write(ctx context.Context, inv *host.Invocation, lines []host.LogLine) {
	if s.log == nil {
		return
	}
	allowed, skipped := s.share(len(lines), mono()/int64(time.Second))
	if skipped > 0 {
		s.log.Warn("guest log lines were left out", "lines", skipped, "limit_per_second", linesPerSecond)
	}
	if allowed == 0 {
		return
	}
	log := s.log.With("queue", inv.Queue, "attempt", inv.Attempt)
	if trace, span, ok := traceOf(inv.Traceparent); ok {
		log = log.With("trace_id", trace, "span_id", span)
	}
	for _, line := range lines[len(lines)-allowed:] {
		log.Log(ctx, slog.Level(line.Level), line.Text, "stream", line.Stream)
	}
}

// share returns how many of n lines may be written now, and how many lines of earlier seconds have to be reported missing.
func (s *logSink) share(n int, second int64) (allowed, skipped int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if second != s.second {
		skipped, s.skipped = s.skipped, 0
		s.second, s.written = second, 0
		if skipped > 0 {
			s.written++
		}
	}
	allowed = min(n, linesPerSecond-s.written)
	s.written += allowed
	s.skipped += n - allowed
	return allowed, skipped
}

// traceOf takes the ids out of a W3C traceparent.
func traceOf(parent string) (trace, span string, ok bool) {
	const size = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	if len(parent) < size {
		return "", "", false
	}
	return parent[3:35], parent[36:52], true
}
