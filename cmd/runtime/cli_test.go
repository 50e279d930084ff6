package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/internal/redistest"
)

// result is what one command did.
type result struct {
	code     int
	out, err string
}

// lines are the JSON documents of the output, one a line.
func (r result) lines(t *testing.T) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(r.out) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("output is not one JSON object a line: %v\n%s", err, r.out)
		}
		all = append(all, v)
	}
	return all
}

// object is the output as one JSON object.
func (r result) object(t *testing.T) map[string]any {
	t.Helper()
	all := r.lines(t)
	if len(all) != 1 {
		t.Fatalf("got %d lines, want one object:\n%s", len(all), r.out)
	}
	return all[0]
}

// shell runs commands on one broker and namespace.
type shell struct {
	t     *testing.T
	redis string
	ns    string
}

// newShell uses the test binary's own server and a namespace of its own.
func newShell(t *testing.T) shell {
	return shell{t, redistest.Shared(t).URL(), redistest.Namespace(t)}
}

// run runs one command with JSON output.
func (s shell) run(args ...string) result { return s.pipe("", args...) }

func (s shell) pipe(stdin string, args ...string) result {
	s.t.Helper()
	var out, errs bytes.Buffer
	args = append(args, "--redis", s.redis, "--namespace", s.ns, "-o", "json")
	code := run(s.t.Context(), args, &out, &errs, strings.NewReader(stdin))
	return result{code, out.String(), errs.String()}
}

// must runs a command that has to succeed.
func (s shell) must(args ...string) result {
	s.t.Helper()
	r := s.run(args...)
	if r.code != 0 || r.err != "" {
		s.t.Fatalf("runtime %s: exit %d, stderr %q, stdout %q", strings.Join(args, " "), r.code, r.err, r.out)
	}
	return r
}

// refused runs a command that has to fail with code, and with one line on stderr that holds each of texts.
func (s shell) refused(code int, args []string, texts ...string) result {
	s.t.Helper()
	r := s.run(args...)
	checkRefusal(s.t, r, code, args, texts...)
	return r
}

func checkRefusal(t *testing.T, r result, code int, args []string, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("runtime %s: exit %d, want %d (stderr %q)", strings.Join(args, " "), r.code, code, r.err)
	}
	if strings.Count(r.err, "\n") != 1 || !strings.HasSuffix(r.err, "\n") {
		t.Errorf("runtime %s: stderr is not one line: %q", strings.Join(args, " "), r.err)
	}
	for _, text := range texts {
		if !strings.Contains(r.err, text) {
			t.Errorf("runtime %s: stderr %q, want %q in it", strings.Join(args, " "), r.err, text)
		}
	}
}

// apply applies a file with this text.
func (s shell) apply(yaml string) {
	s.t.Helper()
	s.must("apply", "-f", writeFile(s.t, "apply.yaml", yaml))
}

// counts are the counters of a queue.
func (s shell) counts(queue string) map[string]any {
	s.t.Helper()
	return s.must("queue", "show", queue).object(s.t)["counts"].(map[string]any)
}

// wantCount fails unless the named counter of the queue has the value.
func (s shell) wantCount(queue, counter string, want int) {
	s.t.Helper()
	if got := s.counts(queue)[counter]; got != float64(want) {
		s.t.Errorf("queue %s: %s is %v, want %d", queue, counter, got, want)
	}
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// process is a command that goes on until it is stopped, such as serve.
type process struct {
	t    *testing.T
	stop context.CancelFunc
	done chan struct{}
	code int // valid once done is closed
	out  *safeBuffer
	err  *safeBuffer
}

// start runs a command in the background; the end of the test stops it.
func (s shell) start(args ...string) *process {
	s.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &process{t: s.t, stop: stop, done: make(chan struct{}), out: &safeBuffer{}, err: &safeBuffer{}}
	args = append(args, "--redis", s.redis, "--namespace", s.ns, "-o", "json")
	go func() {
		defer close(p.done)
		p.code = run(ctx, args, p.out, p.err, strings.NewReader(""))
	}()
	s.t.Cleanup(func() {
		stop()
		<-p.done
	})
	return p
}

// end stops the command as SIGTERM does and returns what it did.
func (p *process) end() result {
	p.stop()
	<-p.done
	return result{p.code, p.out.String(), p.err.String()}
}

// ready waits for the line that serve prints.
func (p *process) ready() {
	p.t.Helper()
	p.await("ready\n")
}

// await waits until the output holds text. Compiling plugins takes what it takes, so only the end of the process, or of
// the test's own time, ends it.
func (p *process) await(text string) {
	p.t.Helper()
	for {
		written := p.out.next()
		if strings.Contains(p.out.String(), text) {
			return
		}
		select {
		case <-written:
		case <-p.done:
			p.t.Fatalf("it ended with %d: %s", p.code, p.err.String())
		}
	}
}

// safeBuffer is a buffer that can be read while it is written.
type safeBuffer struct {
	mu      sync.Mutex // guards the fields below
	buf     bytes.Buffer
	written chan struct{} // closed by the next write; nil when nobody waits
}

// next is closed by the first write after this call.
func (b *safeBuffer) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written == nil {
		b.written = make(chan struct{})
	}
	return b.written
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written != nil {
		close(b.written)
		b.written = nil
	}
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
