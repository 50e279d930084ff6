package redisbroker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// clocked is a client of a server whose clock is its own, with a schedule and a dialog.
type clocked struct {
	t      *testing.T
	s      *redistest.Server
	b      *Broker
	handle string
}

func newClocked(t *testing.T, ahead time.Duration, spec string) *clocked {
	s := redistest.Start(t, redistest.Clocked())
	s.SetClock(t, ahead)
	b, err := Open(t.Context(), Options{URL: s.URL(), Namespace: redistest.Namespace(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	c := &clocked{t: t, s: s, b: b}
	service := broker.Service{Name: "//t/Work", Queue: "work", Contracts: []string{broker.ContractDefault}}
	_, err = b.Apply(t.Context(), broker.Definitions{
		Queues: []broker.QueueSettings{broker.DefaultQueue("work", true)}, Services: []broker.Service{service},
		Schedules: []broker.Schedule{{Name: "tick", Cron: spec, To: service.Name}},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	e, err := b.Begin(t.Context(), broker.Dialog{From: service.Name, To: service.Name})
	if err != nil {
		t.Fatal(err)
	}
	c.handle = e.Handle
	return c
}

func (c *clocked) now() time.Time {
	c.t.Helper()
	now, err := c.b.rdb.Time(c.t.Context()).Result()
	if err != nil {
		c.t.Fatal(err)
	}
	return now
}

func (c *clocked) keep() {
	c.t.Helper()
	if _, err := c.b.Keep(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
}

// within wants what is armed, the schedule or the timer, to be due after before, and no further from now than its spec allows.
func (c *clocked) within(what, key, name string, before time.Time, most time.Duration) {
	c.t.Helper()
	at, err := c.b.rdb.ZScore(c.t.Context(), c.b.prefix("work")+key, name).Result()
	due := time.UnixMilli(int64(at))
	if now := c.now(); err != nil || !due.After(before) || due.After(now.Add(most)) {
		c.t.Errorf("%s: armed for %v (%v); want it after %v, and at most %v from now, %v", what, due.UTC(), err, before.UTC(), most, now.UTC())
	}
}

// run keeps house until the schedule runs, and returns the instant it was planned for. It must not come early.
func (c *clocked) run() time.Time {
	c.t.Helper()
	var at time.Time
	redistest.Eventually(c.t, "a run of the schedule", func() bool {
		c.keep()
		d, err := c.b.Receive(c.t.Context(), "work", broker.ReceiveOptions{Max: 1, Top: 1})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, x := range d {
			m := x.Unit.Messages[0]
			if ms, ok := strings.CutPrefix(m.MessageID, "tick@"); ok {
				at = msTime(ms)
			}
			if _, err := c.b.Settle(c.t.Context(), "work", x.Token, broker.Settlement{Unit: x.Unit}); err != nil {
				c.t.Fatal(err)
			}
		}
		return !at.IsZero()
	})
	if now := c.now(); at.After(now) {
		c.t.Errorf("the run planned for %v came at %v", at.UTC(), now.UTC())
	}
	return at
}

// offsets are how far Redis's clock is from the host's.
var offsets = []time.Duration{-300 * time.Second, -90 * time.Second, 90 * time.Second, 300 * time.Second}

func TestTheHostsClockDecidesNothing(t *testing.T) {
	t.Parallel()
	for _, ahead := range offsets {
		t.Run(fmt.Sprint("redis is ahead by ", ahead), func(t *testing.T) {
			t.Parallel()
			c := newClocked(t, ahead, "@every 1s")
			before := c.now().Add(-time.Second)
			c.within("the schedule", "sd", "tick", before, 2*time.Second)
			if err := c.b.Timer(t.Context(), c.handle, 0, "*/10 * * * * *", "", 0); err != nil {
				t.Fatal(err)
			}
			c.within("the timer", "tm", c.handle, before, 10*time.Second)
			first := c.run()
			if off := first.Sub(before); off < 0 || first.Nanosecond() != 0 {
				t.Errorf("the first run was planned for %v, the schedule was made after %v", first, before)
			}
			if second := c.run(); !second.After(first) {
				t.Errorf("planned for %v after %v", second, first)
			}
		})
	}
}

// TestRedisClockIsMovedUnderAClient moves it to and fro while a client knows what it showed a moment ago.
func TestRedisClockIsMovedUnderAClient(t *testing.T) {
	t.Parallel()
	for _, to := range offsets {
		t.Run(fmt.Sprint("by ", to), func(t *testing.T) {
			t.Parallel()
			c := newClocked(t, 0, "*/20 * * * * *")
			c.keep()
			c.s.SetClock(t, to)
			moved := c.now()
			// The client computes the first instant from what it saw last, before the clock was moved.
			if err := c.b.Timer(t.Context(), c.handle, 0, "* * * * *", "", 0); err != nil {
				t.Fatal(err)
			}
			redistest.Eventually(t, "the clock to be seen", func() bool {
				c.keep()
				at, err := c.b.rdb.ZScore(t.Context(), c.b.prefix("work")+"sd", "tick").Result()
				return err == nil && time.UnixMilli(int64(at)).Before(c.now().Add(20*time.Second))
			})
			c.within("the schedule", "sd", "tick", moved.Add(-time.Second), 20*time.Second)
			c.within("the timer", "tm", c.handle, moved, time.Minute)
		})
	}
}

func TestAServersClockIsNeverThoughtToBeAhead(t *testing.T) {
	var c serverClock
	if _, _, ok := c.now(""); ok {
		t.Error("a clock is known that was never seen")
	}
	if moved := c.saw("", 5_000_000); moved != 0 {
		t.Errorf("the first sight: moved by %v", moved)
	}
	at, age, ok := c.now("")
	if !ok || at.Sub(time.UnixMilli(5_000_000)) != age {
		t.Errorf("got %v after %v", at, age)
	}
	for _, by := range []time.Duration{-2 * time.Hour, -90 * time.Second, 300 * time.Second} {
		known, _, _ := c.now("")
		if moved := c.saw("", known.Add(by).UnixMilli()); (moved - by).Abs() > time.Second {
			t.Errorf("set by %v: seen as %v", by, moved)
		}
	}
	if _, _, ok := c.now("another node"); ok {
		t.Error("the clock of another node is taken for its own")
	}
}
