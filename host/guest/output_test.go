package guest

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/broker"
	"parley/host"
)

// of returns the lines of one stream.
func of(lines []host.LogLine, stream string) (texts []string) {
	for _, l := range lines {
		if l.Stream == stream {
			texts = append(texts, l.Text)
		}
	}
	return texts
}

func size(texts []string) (n int) {
	for _, s := range texts {
		n += len(s)
	}
	return n
}

// heap is the memory in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCase35OutputFlood: a guest that prints for its whole 2 s keeps its deadline, and its last 64 KiB are kept
// (wasm-stdout-flood).
func TestCase35OutputFlood(t *testing.T) {
	var log bytes.Buffer
	p := load(t, wat(t, "trouble"), Options{
		Name: "flood", Limits: Limits{Time: 2 * time.Second},
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	before := heap()
	start := time.Now()
	r := attemptOf(t, p, "o")
	if took := time.Since(start); took > 2*time.Second+soon {
		t.Errorf("it ran for %v", took)
	}
	wantRollback(t, r, broker.ReasonDeadlineExceeded, "")
	for _, stream := range []string{"stdout", "stderr"} {
		lines := of(r.Logs, stream)
		if n := size(lines); n > 66<<10 || n < 50<<10 {
			t.Errorf("%s: %d bytes are kept", stream, n)
		}
		var cut int
		if _, err := fmt.Sscanf(lines[0], "truncated %d bytes", &cut); err != nil || cut < 1<<20 {
			t.Errorf("%s: the first line is %q", stream, lines[0])
		}
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "a line of sixty-four bytes") {
			t.Errorf("%s: the last line is %q", stream, last)
		}
	}
	if n := strings.Count(log.String(), "stream="); n > linesPerSecond {
		t.Errorf("%d lines are in the host's log", n)
	}
	if grown := int64(heap()) - int64(before); grown > 16<<20 {
		t.Errorf("the host's memory grew by %d bytes", grown)
	}
}

// TestCase35ResultUnaffected: diagnostics never change how an attempt ends.
func TestCase35ResultUnaffected(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{})
	r := attemptOf(t, p, "p") // 100,000 lines on either stream
	wantCommit(t, r)
	const written = 100_000 * 64
	if lines := of(r.Logs, "stderr"); lines[0] != fmt.Sprintf("truncated %d bytes", written-(size(lines[1:])+len(lines)-1)) {
		t.Errorf("the mark is %q", lines[0])
	}
	r = attemptOf(t, p, "?")
	if len(r.Logs) != 0 {
		t.Errorf("output of the attempt before: %+v", r.Logs)
	}
}

func TestCase35LongLine(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{})
	r := attemptOf(t, p, "L") // 10 MiB without a line feed
	wantCommit(t, r)
	lines := of(r.Logs, "stdout")
	if len(lines) != 2 || lines[0] != fmt.Sprintf("truncated %d bytes", 10<<20-64<<10) || lines[1] != strings.Repeat("x", 64<<10) {
		t.Errorf("%d lines, first %q", len(lines), lines[0])
	}
}

func TestCase35InvalidBytes(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{})
	r := attemptOf(t, p, "f")
	wantCommit(t, r)
	lines := of(r.Logs, "stdout")
	if len(lines) != 1 || !utf8.ValidString(lines[0]) || !strings.Contains(lines[0], "\uFFFD") {
		t.Errorf("got %q", lines)
	}
}

// TestLogFlood: lines logged through the ABI are bounded by bytes, by number, and by the limit on host calls.
func TestLogFlood(t *testing.T) {
	p := load(t, wat(t, "trouble"), Options{})
	r := attemptOf(t, p, "k")
	wantRollback(t, r, broker.ReasonHostCallLimit, "")
	lines := of(r.Logs, "log")
	if n := size(lines); n > 66<<10 || len(lines) > maxLines+1 {
		t.Errorf("%d lines of %d bytes are kept", len(lines), n)
	}
	if !strings.HasPrefix(lines[0], "truncated ") {
		t.Errorf("the first line is %q", lines[0])
	}
}

// TestTail: whatever the sizes of the writes, the last bytes are kept and the others counted.
func TestTail(t *testing.T) {
	for _, write := range []int{1, 3, 7, 10, 11, 25} {
		tail := tail{limit: 10}
		var all []byte
		for i := range 20 {
			p := bytes.Repeat([]byte{byte('a' + i)}, write)
			all = append(all, p...)
			tail.write(p)
			if want := all[max(len(all)-10, 0):]; !bytes.Equal(tail.kept(), want) {
				t.Fatalf("writes of %d: kept %q, want %q", write, tail.kept(), want)
			}
			if len(tail.buf) > 20 {
				t.Fatalf("writes of %d: %d bytes are held", write, len(tail.buf))
			}
		}
		if tail.total != int64(len(all)) {
			t.Errorf("writes of %d: total is %d", write, tail.total)
		}
	}
}

// TestLogSinkShare: at most 100 lines in a second, and the next second says how many are missing.
func TestLogSinkShare(t *testing.T) {
	var log bytes.Buffer
	s := newLogSink(slog.New(slog.NewTextHandler(&log, nil)), "p")
	for _, c := range []struct {
		n                int
		second           int64
		allowed, skipped int
	}{
		{60, 1, 60, 0},
		{60, 1, 40, 0},
		{5, 1, 0, 0},
		{3, 2, 3, 25},
		{200, 2, 96, 0},
		{1, 5, 1, 104},
	} {
		allowed, skipped := s.share(c.n, c.second)
		if allowed != c.allowed || skipped != c.skipped {
			t.Errorf("%d lines in second %d: %d allowed, %d reported missing; want %d, %d", c.n, c.second, allowed, skipped, c.allowed, c.skipped)
		}
	}
	inv := dialogInvocation()
	s.write(t.Context(), inv, []host.LogLine{{Level: 4, Stream: "log", Text: "hello"}})
	for _, want := range []string{"level=WARN", "msg=hello", "plugin=p", "queue=orders", "attempt=3", "trace_id=4bf92f3577b34da6a3ce929d0e0e4736", "span_id=00f067aa0ba902b7"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log line %q does not contain %s", log.String(), want)
		}
	}
}
