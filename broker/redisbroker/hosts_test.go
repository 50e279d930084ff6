package redisbroker

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/broker"
	"parley/internal/redistest"
)

// TestHosts: what hosts publish is there until they fall silent or say good-bye, and a host that starts sweeps out the silent.
func TestHosts(t *testing.T) {
	ctx := t.Context()
	b, err := Open(ctx, Options{URL: redistest.Shared(t).URL(), Namespace: redistest.Namespace(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	want := func(hosts ...broker.HostReport) {
		t.Helper()
		got, err := b.ListHosts(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(hosts, got); diff != "" {
			t.Errorf("hosts (-want +got):\n%s", diff)
		}
	}
	want()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	orders := broker.MonitorReport{Queue: "orders", Plugin: "p", State: "NOTIFIED", MaxReaders: 4, ReadersStarted: 1, LastActivated: at}
	stock := broker.MonitorReport{Queue: "a|b stock", State: "INACTIVE", LastError: "x"}
	publish := func(name string, ttl time.Duration, m ...broker.MonitorReport) {
		t.Helper()
		if err := b.PublishHost(ctx, broker.HostReport{Name: name, Monitors: m}, ttl); err != nil {
			t.Fatal(err)
		}
	}
	publish("two:2", time.Hour, orders)
	publish("one:1", time.Hour, orders, stock)
	want(broker.HostReport{Name: "one:1", Monitors: []broker.MonitorReport{stock, orders}}, broker.HostReport{Name: "two:2", Monitors: []broker.MonitorReport{orders}})

	orders.State, orders.Running = "RECEIVES_OCCURRING", 3
	publish("one:1", time.Hour, orders) // the other monitor stays
	publish("two:2", time.Millisecond)
	redistest.Eventually(t, "the silent host to expire", func() bool {
		n, err := b.rdb.Exists(ctx, b.hostKey("two:2")).Result()
		return err == nil && n == 0
	})
	want(broker.HostReport{Name: "one:1", Monitors: []broker.MonitorReport{stock, orders}})

	publish("three:3", time.Hour, orders)
	if names, err := b.rdb.SMembers(ctx, b.nsKey("hosts")).Result(); err != nil || len(names) != 2 {
		t.Errorf("names kept: %v, %v", names, err)
	}
	for range 2 { // the second time there is nothing to forget
		if err := b.ForgetHost(ctx, "one:1"); err != nil {
			t.Fatal(err)
		}
	}
	want(broker.HostReport{Name: "three:3", Monitors: []broker.MonitorReport{orders}})
}
