package host

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/broker"
)

// sweepingBroker is a fakeBroker that is a Sweeper too.
type sweepingBroker struct{ *fakeBroker }

func (b sweepingBroker) Sweep(_ context.Context, queues []string) (found []string, err error) {
	if err := b.begin("sweep", ""); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	for _, name := range queues {
		q := b.queues[name]
		switch {
		case q == nil || q.gone:
			err = broker.ErrUnknownEntity.With("queue %s", name)
		case q.off:
		case len(q.ready) > 0:
			found = append(found, name)
		default:
			q.asleep = true
		}
	}
	return found, err
}

// cpu returns the processor time this process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestTenThousandIdleQueuesCostNextToNothing(t *testing.T) {
	const queues, minutes = 10_000, 2
	names := make([]string, queues)
	for i := range names {
		names[i] = fmt.Sprintf("q%05d", i)
	}
	for _, sweeps := range []bool{true, false} {
		t.Run(fmt.Sprintf("Sweeper=%v", sweeps), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFakeBroker(names...)
				r := start(t, b, func(c *Config) {
					if sweeps {
						c.Readers = sweepingBroker{b}
					}
					for _, q := range names {
						c.Plugins = append(c.Plugins, PluginConfig{Name: q, Queue: q, Runner: &fakeRunner{}})
					}
				})
				time.Sleep(10 * time.Second)
				before, calls := cpu(t), b.allCalls()
				time.Sleep(minutes * time.Minute)
				used, made := cpu(t)-before, b.allCalls()-calls
				t.Logf("%d idle minutes of %d queues: %v of processor time, %d calls", minutes, queues, used, made)
				if limit := minutes * time.Minute * 3 / 100; used > limit {
					t.Errorf("processor time: got %v, want at most %v, 3 %% of a core", used, limit)
				}
				if perSecond := made / (minutes * 60); perSecond > 70 {
					t.Errorf("calls a second: got %d, want at most 70", perSecond)
				}
				b.send(names[7777], "", 1)
				synctest.Wait()
				if got := len(b.done(names[7777])); got != 1 {
					t.Errorf("done after waking: got %d, want 1", got)
				}
				r.halt()
			})
		})
	}
}

func TestSweeperFindsWhatWasLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker("q", "off", "new")
		b.queues["off"].off = true
		r := start(t, b, func(c *Config) {
			c.Readers = sweepingBroker{b}
			for _, q := range []string{"q", "off", "new"} {
				c.Plugins = append(c.Plugins, PluginConfig{Name: q, Queue: q, Runner: &fakeRunner{}})
			}
			c.Restore = func(context.Context) error {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.queues["new"].gone = false
				return nil
			}
		})
		b.mu.Lock()
		b.deaf, b.queues["new"].gone, b.queues["new"].asleep = true, true, false
		b.mu.Unlock()
		b.send("q", "", 1)
		r.until(6*time.Second, "the sweep finds the message", func() bool { return len(b.done("q")) == 1 })
		r.until(6*time.Second, "the sweep has the entity restored", func() bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return !b.queues["new"].gone
		})
		if got := b.count("open"); got != 1 {
			t.Errorf("readers opened: got %d, want 1: a sweep opens none on idle queues and none on queues that are off", got)
		}
	})
}
