package host

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/broker"
)

func TestKeeperPassesOnceASecondOrWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		r := start(t, b, one(PluginConfig{Runner: &fakeRunner{}}))
		time.Sleep(10 * time.Second)
		if got := b.count("keep"); got < 9 || got > 12 {
			t.Errorf("passes in 10 s: got %d, want about 10", got)
		}
		time.Sleep(100 * time.Millisecond)
		before := b.count("keep")
		r.host.keeper.due(time.Now().Add(50 * time.Millisecond))
		time.Sleep(49 * time.Millisecond)
		synctest.Wait()
		if got := b.count("keep"); got != before {
			t.Errorf("a pass %d before it was due", got-before)
		}
		time.Sleep(2 * time.Millisecond)
		if got := b.count("keep"); got != before+1 {
			t.Errorf("passes at the due time: got %d, want 1", got-before)
		}
	})
}

func TestKeeperDoesNotSpinOnASkewedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		start(t, b, one(PluginConfig{Runner: &fakeRunner{}}))
		b.mu.Lock()
		b.keepNext = time.Now().Add(-10 * time.Minute) // due by this clock, not by the broker's
		b.mu.Unlock()
		time.Sleep(10 * time.Second)
		before := b.count("keep")
		time.Sleep(60 * time.Second)
		if got := b.count("keep") - before; got > 62 {
			t.Errorf("passes in 60 s: got %d, want at most one a second", got)
		}
	})
}

func TestKeeperReportsAndBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q")
		o := &spyObserver{}
		r := start(t, b, func(c *Config) {
			one(PluginConfig{Runner: &fakeRunner{}})(c)
			c.Observer = o
		})
		b.mu.Lock()
		b.dead = []broker.DeadAttempt{{Queue: "q", Reader: "x", Message: broker.Message{MessageID: "m1"}}}
		b.mu.Unlock()
		time.Sleep(2 * time.Second)
		if got := o.all(); !slices.Equal(got, []string{"died m1"}) {
			t.Errorf("observed: got %v, want the dead attempt", got)
		}
		if got := r.log.count("attempts died with their host"); got != 1 {
			t.Errorf("lines: got %d, want 1", got)
		}
		b.mu.Lock()
		b.fail = func(op, _ string) error {
			if op == "keep" {
				return errors.New("EOF")
			}
			return nil
		}
		before := b.calls["keep"]
		b.mu.Unlock()
		time.Sleep(20 * time.Second)
		if got := b.count("keep") - before; got < 5 || got > 25 {
			t.Errorf("failing passes in 20 s: got %d, want 5 to 25", got)
		}
		if got := r.log.count("housekeeping failed"); got > 21 {
			t.Errorf("lines in 20 s: got %d, want at most one a second", got)
		}
	})
}

func TestConfigNamesEveryProblem(t *testing.T) {
	_, err := New(Config{Plugins: []PluginConfig{
		{Name: "a", Queue: "q"},
		{Name: "b", Queue: "q", Runner: &fakeRunner{}, MaxReaders: 40_000},
		{Name: "c", Queue: "r", Runner: &fakeRunner{}, Top: -1},
	}})
	if !errors.Is(err, ErrConfig) {
		t.Fatalf("got %v, want ErrConfig", err)
	}
	for _, want := range []string{
		"the readers are missing", "the waker is missing", `plugin "a": the runner is missing`, `plugin "b": max readers 40000`,
		`plugin "b": plugin "a" is activated on queue "q" already`, `plugin "c": top -1`,
	} {
		if !containsLine(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func containsLine(text, part string) bool {
	return slices.ContainsFunc(strings.Split(text, "\n"), func(l string) bool { return strings.HasPrefix(l, part) })
}
