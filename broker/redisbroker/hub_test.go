package redisbroker

import (
	"context"
	"strings"
	"sync"
	"testing"

	"parley/broker"
	"parley/internal/redistest"
)

// TestASilentSubscriptionIsNoticedAndMadeAgain lets nothing pass on connections that stay open: a host hears of it once, connects again by
// itself, and then looks at everything.
func TestASilentSubscriptionIsNoticedAndMadeAgain(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{"real": redistest.Shared(t).Addr(), "embedded": redistest.StartEmbedded(t).Addr()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := redistest.NewProxy(t, addr)
			var mu sync.Mutex
			var lines []string
			said := func(text string) (n int) {
				mu.Lock()
				defer mu.Unlock()
				for _, l := range lines {
					if strings.HasPrefix(l, text) {
						n++
					}
				}
				return n
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b, err := Open(ctx, Options{URL: p.URL(), Namespace: redistest.Namespace(t), Log: func(msg string, _ ...any) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, msg)
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			if _, err := b.Apply(ctx, broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("q", false)}}, false); err != nil {
				t.Fatal(err)
			}
			wakes := make(chan string, 1000)
			go func() { _ = b.Wakes(ctx, func(q string) { wakes <- q }) }()
			<-wakes // all: the subscription stands
			for range 2 {
				p.Stall()
				redistest.Eventually(t, "the silence to be noticed", func() bool { return said("wake-ups are lost") > said("wake-ups come again") })
				for len(wakes) > 0 {
					<-wakes
				}
				p.Resume()
				redistest.Eventually(t, "wake-ups", func() bool { return said("wake-ups come again") == said("wake-ups are lost") })
				if q := <-wakes; q != "" {
					t.Errorf("after the silence %q was woken, not everything", q)
				}
			}
			if n := said("wake-ups are lost"); n != 2 {
				t.Errorf("the loss was told %d times, want once a change", n)
			}
		})
	}
}

// TestAQuietSubscriptionStays: one that answers is not taken for a silent one.
func TestAQuietSubscriptionStays(t *testing.T) {
	t.Parallel()
	for name, addr := range map[string]string{"real": redistest.Shared(t).Addr(), "embedded": redistest.StartEmbedded(t).Addr()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pings := make(chan struct{}, 10)
			lost := make(chan string, 10)
			b, err := Open(t.Context(), Options{URL: "redis://" + addr, Namespace: redistest.Namespace(t), Log: func(msg string, _ ...any) { lost <- msg }})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b.hub.onPong = func() { pings <- struct{}{} }
			go func() { _ = b.Wakes(ctx, func(string) {}) }()
			for range 2 {
				select {
				case <-pings:
				case msg := <-lost:
					t.Fatal(msg)
				}
			}
		})
	}
}
