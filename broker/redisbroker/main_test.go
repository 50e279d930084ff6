package redisbroker_test

import (
	"context"
	"testing"

	"parley/broker"
	"parley/broker/redisbroker"
	"parley/internal/redistest"
)

// each runs f on the embedded server and on the shared real one, each in a namespace of its own.
func each(t *testing.T, f func(t *testing.T, open func(redisbroker.Options) *redisbroker.Broker)) {
	t.Helper()
	run := func(name, url string) {
		t.Run(name, func(t *testing.T) {
			ns := redistest.Namespace(t)
			f(t, func(o redisbroker.Options) *redisbroker.Broker {
				o.URL, o.Namespace = url, ns
				b, err := redisbroker.Open(context.Background(), o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = b.Close() })
				return b
			})
		})
	}
	run("embedded", "redis://"+redistest.StartEmbedded(t).Addr())
	run("real", "redis://"+redistest.Shared(t).Addr())
}

// apply makes queues and services with default settings.
func apply(t *testing.T, b *redisbroker.Broker, queues []string, services map[string]string) {
	t.Helper()
	var d broker.Definitions
	served := map[string]bool{}
	for s, q := range services {
		served[q] = true
		d.Services = append(d.Services, broker.Service{Name: s, Queue: q, Contracts: []string{broker.ContractDefault}})
	}
	for _, q := range queues {
		d.Queues = append(d.Queues, broker.DefaultQueue(q, served[q]))
	}
	if _, err := b.Apply(context.Background(), d, false); err != nil {
		t.Fatal(err)
	}
}

// clean fails when audit finds a difference in any queue.
func clean(t *testing.T, b *redisbroker.Broker) {
	t.Helper()
	d, err := b.Audit(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Unsettled) > 0 {
		t.Errorf("audit: not settled: %v", d.Unsettled)
	}
	for _, x := range d.Differences {
		t.Errorf("audit: %s: %s: want %s, got %s", x.Queue, x.Rule, x.Want, x.Got)
	}
}
