package host

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/broker"
)

// trimmed is a Runner that notes when it is trimmed, and to what.
type trimmed struct {
	fakeRunner

	mu   sync.Mutex // guards kept
	kept []int
}

func (t *trimmed) Trim(keep int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, keep)
}

func (t *trimmed) seen() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.kept)
}

func TestIdleQueueGivesItsInstancesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q", "unused")
		f, unused := &trimmed{}, &trimmed{}
		start(t, b, func(c *Config) {
			c.Plugins = []PluginConfig{{Name: "p", Queue: "q", Runner: f}, {Name: "u", Queue: "unused", Runner: unused}}
		})
		want := func(when string, f *trimmed, kept ...int) {
			t.Helper()
			synctest.Wait()
			if got := slices.Compact(f.seen()); !slices.Equal(got, kept) {
				t.Errorf("%s: trimmed to %v, want %v", when, got, kept)
			}
		}
		time.Sleep(2 * keepWarm)
		want("never used", unused, 0)
		f.mu.Lock()
		f.kept = nil
		f.mu.Unlock()
		b.send("q", "", 20)
		time.Sleep(DefaultLinger / 2)
		want("while readers linger", f)
		time.Sleep(DefaultLinger)
		want("when they are gone", f, 1)
		time.Sleep(keepWarm + DefaultSweep)
		want("a minute later", f, 1, 0)
		time.Sleep(time.Hour)
		want("an hour later", f, 1, 0)
		b.send("q", "", 1)
		time.Sleep(2 * DefaultLinger)
		want("after the next message", f, 1, 0, 1)
	})
}

func TestNothingIsTrimmedWhileAHandlerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		f := &trimmed{}
		f.handle = func(ctx context.Context, inv *Invocation) broker.Settlement { return sleeps(time.Hour)(ctx, inv) }
		start(t, b, func(c *Config) {
			one(PluginConfig{Runner: f})(c)
			c.Drain = -1
		})
		b.send("q", "", 1)
		time.Sleep(time.Second)
		before := len(f.seen())
		time.Sleep(30 * time.Minute)
		if got := f.seen(); len(got) != before {
			t.Errorf("trimmed to %v beside a handler that runs", got[before:])
		}
	})
}
