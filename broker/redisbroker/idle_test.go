package redisbroker

import (
	"context"
	"testing"

	"parley/broker"
	"parley/internal/redistest"
)

// TestAnIdleReaderThatClosesWakesNobody: else each host would open a reader again for every one that closes, for ever. One that
// gives something back does.
func TestAnIdleReaderThatClosesWakesNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b, err := Open(ctx, Options{URL: redistest.Shared(t).URL(), Namespace: redistest.Namespace(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	queues := []broker.QueueSettings{broker.DefaultQueue("idle", false), broker.DefaultQueue("last", false)}
	if _, err := b.Apply(ctx, broker.Definitions{Queues: queues}, false); err != nil {
		t.Fatal(err)
	}
	wakes := make(chan string, 100)
	go func() { _ = b.Wakes(ctx, func(q string) { wakes <- q }) }()
	take := func(queue string, units int) broker.Reader {
		t.Helper()
		r, err := b.OpenReader(ctx, queue, broker.ReaderOptions{Slots: 1, Limit: 4})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := r.Turn(ctx, broker.TurnRequest{Free: []int{0}, Empty: 1, Top: 1})
		if err != nil || len(rep.Units) != units {
			t.Fatalf("%d units, %v; want %d", len(rep.Units), err, units)
		}
		return r
	}
	done := func(r broker.Reader) {
		t.Helper()
		if err := r.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// until returns how often idle was woken before last was, which is woken by a message. The first look may come before the
	// connection listens, so it is tried until it is heard.
	until := func() (n int) {
		t.Helper()
		done(take("last", 0))
		for {
			if _, err := b.Send(ctx, "last", broker.Outgoing{}); err != nil {
				t.Fatal(err)
			}
			for range 20 {
				select {
				case q := <-wakes:
					if q == "idle" {
						n++
					} else if q == "last" {
						if _, err := b.Purge(ctx, "last"); err != nil {
							t.Fatal(err)
						}
						return n
					}
				default:
					pauseFor(ctx, 5_000_000)
				}
			}
			if _, err := b.Purge(ctx, "last"); err != nil {
				t.Fatal(err)
			}
			done(take("last", 0))
		}
	}
	until()
	done(take("idle", 0))
	if n := until(); n != 0 {
		t.Errorf("an idle reader that closed woke the queue %d times", n)
	}
	if _, err := b.Send(ctx, "idle", broker.Outgoing{}); err != nil {
		t.Fatal(err)
	}
	holder := take("idle", 1)
	waiter := take("idle", 0) // it sleeps now
	done(holder)
	if n := until(); n != 2 {
		t.Errorf("the send and what was given back woke the queue %d times, want 2", n)
	}
	done(waiter)
}
