package redistest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Match says whether a fault is meant for this command; words are its name and
// arguments as sent. It must not block.
type Match func(words []string) bool

// Command matches commands that begin with these words, the case ignored:
// Command("XADD"), Command("EVALSHA", script.Hash()).
func Command(words ...string) Match {
	return func(got []string) bool {
		return len(got) >= len(words) &&
			slices.EqualFunc(got[:len(words)], words, strings.EqualFold)
	}
}

// Nth matches only the n-th command, counted from 1, that m matches.
func Nth(n int, m Match) Match {
	var mu sync.Mutex
	return func(words []string) bool {
		mu.Lock()
		defer mu.Unlock()
		if n < 1 || !m(words) {
			return false
		}
		n--
		return n == 0
	}
}

type action int

const (
	cutRequest action = iota // the server never sees the command
	cutReply                 // the server did the work, the client never hears
	holdReply                // the client hears when the test says so
	refuse                   // the server never sees the command, and the client hears an error
)

// Fault happens once, to the first command that matches.
type Fault struct {
	action action
	match  Match
	answer string // of refuse

	mu      sync.Mutex // guards claimed
	claimed bool

	hit      chan struct{} // closed when the fault happened
	released chan struct{} // closed by Release
	release  sync.Once
}

func newFault(a action, m Match) *Fault {
	return &Fault{action: a, match: m, hit: make(chan struct{}), released: make(chan struct{})}
}

// claim takes the fault for one command.
func (f *Fault) claim(words []string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claimed || !f.match(words) {
		return false
	}
	f.claimed = true
	return true
}

// Hit is closed when the fault has happened: for a cut reply, after the server
// answered and the connection is closed; for a held one, when the server has
// answered and the client waits.
func (f *Fault) Hit() <-chan struct{} { return f.hit }

// Await waits until the fault has happened, and fails the test after
// [EventuallyTimeout].
func (f *Fault) Await(t testing.TB) {
	t.Helper()
	select {
	case <-f.hit:
	case <-time.After(EventuallyTimeout):
		t.Fatalf("no command met the fault in %v", EventuallyTimeout)
	}
}

// Release lets a held reply go to the client. Later calls do nothing.
func (f *Fault) Release() { f.release.Do(func() { close(f.released) }) }
