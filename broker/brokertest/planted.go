package brokertest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Catches lets the randomised test hunt brokers that open makes, which have a fault planted on purpose, and returns what
// it found. It fails t when as many steps as the suite makes show no difference.
func Catches(t testing.TB, open New) string {
	t.Helper()
	hunting.Lock()
	defer hunting.Unlock()
	defer setFlag(t, "rapid.shrinktime", "1s")()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		hunt(r, open, randomSteps)
	}()
	<-done
	if !r.Failed() {
		t.Fatalf("%d random steps found nothing", randomSteps)
	}
	return r.first()
}

// recorder is a test that may fail without failing the one it stands in.
type recorder struct {
	testing.TB
	mu     sync.Mutex // guards the fields below
	failed bool
	lines  []string
}

func (r *recorder) note(line string, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || failed
	r.lines = append(r.lines, line)
}

// first is the first line that says what failed.
func (r *recorder) first() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		if head, _, ok := strings.Cut(l, "\nafter:"); ok {
			return head
		}
	}
	return strings.Join(r.lines, "\n")
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Helper() {}

func (r *recorder) Log(args ...any) { r.note(fmt.Sprint(args...), false) }

func (r *recorder) Logf(format string, args ...any) { r.note(fmt.Sprintf(format, args...), false) }

func (r *recorder) Error(args ...any) { r.note(fmt.Sprint(args...), true) }

func (r *recorder) Errorf(format string, args ...any) { r.note(fmt.Sprintf(format, args...), true) }

func (r *recorder) Fail() { r.note("failed", true) }

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
