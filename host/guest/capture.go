package guest

import (
	"fmt"
	"strings"
	"time"

	"parley/host"
	"parley/sdk/abi"
)

const (
	levelStdout = int(abi.LevelInfo)
	levelStderr = int(abi.LevelWarn)
	maxLines    = 1024 // lines kept of a stream, whatever their length
)

// tail keeps the last limit bytes of a stream. It needs at most twice that.
type tail struct {
	limit int
	buf   []byte
	total int64 // bytes written
}

func (t *tail) reset() {
	if cap(t.buf) > keptBuffer {
		t.buf = nil
	}
	t.buf, t.total = t.buf[:0], 0
}

// keptBuffer is how large a buffer may be to stay with an idle instance.
const keptBuffer = 4 << 10

func (t *tail) write(p []byte) {
	t.total += int64(len(p))
	if len(p) >= t.limit {
		t.buf = append(t.buf[:0], p[len(p)-t.limit:]...)
		return
	}
	if len(t.buf)+len(p) > 2*t.limit {
		keep := t.limit - len(p)
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-keep:]...)
	}
	t.buf = append(t.buf, p...)
}

// kept is the last bytes written, at most limit.
func (t *tail) kept() []byte { return t.buf[max(len(t.buf)-t.limit, 0):] }

// last is the last n bytes written as text.
func (t *tail) last(n int) string {
	b := t.kept()
	return strings.ToValidUTF8(string(b[max(len(b)-n, 0):]), "\uFFFD")
}

// lines appends what was kept to out, line by line, after a mark that says how much is missing.
func (t *tail) lines(out []host.LogLine, now time.Time, level int, stream string) []host.LogLine {
	if t.total == 0 {
		return out
	}
	text := strings.TrimSuffix(string(t.kept()), "\n")
	cut := t.total - int64(len(t.kept()))
	all := strings.Split(text, "\n")
	if drop := len(all) - maxLines; drop > 0 {
		for _, line := range all[:drop] {
			cut += int64(len(line)) + 1
		}
		all = all[drop:]
	}
	if cut > 0 {
		out = append(out, truncated(cut, now, level, stream))
	}
	for _, line := range all {
		line = strings.ToValidUTF8(strings.TrimSuffix(line, "\r"), "\uFFFD")
		out = append(out, host.LogLine{Time: now, Level: level, Stream: stream, Text: line})
	}
	return out
}

func truncated(n int64, now time.Time, level int, stream string) host.LogLine {
	return host.LogLine{Time: now, Level: level, Stream: stream, Text: fmt.Sprintf("truncated %d bytes", n)}
}

// lines keeps the last lines logged, at most limit bytes and maxLines of them.
type lines struct {
	limit int
	all   []host.LogLine
	first int   // all[:first] are dropped
	bytes int   // of all[first:]
	cut   int64 // bytes of dropped lines
}

func (l *lines) reset() { *l = lines{limit: l.limit} }

func (l *lines) empty() bool { return len(l.all) == 0 && l.cut == 0 }

func (l *lines) add(line host.LogLine) {
	if len(line.Text) > l.limit {
		l.cut += int64(len(line.Text) - l.limit)
		line.Text = strings.ToValidUTF8(line.Text[len(line.Text)-l.limit:], "")
	}
	l.all = append(l.all, line)
	l.bytes += len(line.Text)
	for l.bytes > l.limit || len(l.all)-l.first > maxLines {
		l.bytes -= len(l.all[l.first].Text)
		l.cut += int64(len(l.all[l.first].Text))
		l.all[l.first] = host.LogLine{}
		l.first++
	}
	if l.first > maxLines {
		l.all = append(l.all[:0], l.all[l.first:]...)
		l.first = 0
	}
}

// take returns the lines kept, after a mark when some are missing.
func (l *lines) take(now time.Time) []host.LogLine {
	kept := l.all[l.first:]
	if l.cut == 0 {
		return kept
	}
	return append([]host.LogLine{truncated(l.cut, now, levelStdout, "log")}, kept...)
}
