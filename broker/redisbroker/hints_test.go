package redisbroker_test

import (
	"context"
	"testing"

	"parley/broker"
	"parley/broker/redisbroker"
	"parley/internal/redistest"
)

// TestARefusedHintFailsNoScript takes the right to the channel away while somebody sleeps, so that every script that follows would
// publish: each does all that it does otherwise, or nothing.
func TestARefusedHintFailsNoScript(t *testing.T) {
	ctx := context.Background()
	s := redistest.Start(t)
	admin := s.Client(t)
	acl := func(args ...any) {
		t.Helper()
		if err := admin.Do(ctx, append([]any{"ACL", "SETUSER", "app"}, args...)...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	acl("on", ">pw", "~*", "&*", "+@all")
	b := connectTo(t, redisbroker.Options{URL: "redis://app:pw@" + s.Addr(), Namespace: "ns"})
	apply(t, b, []string{"q", "web", "stock"}, map[string]string{"//web": "web", "//stock": "stock"})
	r := open(t, b, "q", 1)
	take(t, r, 1, 1) // falls asleep
	acl("resetchannels")
	for _, m := range []broker.Outgoing{
		{MessageID: "fast", Body: []byte("1")}, {MessageID: "ttl", Body: []byte("2"), TTL: 1 << 40}, {MessageID: "later", Body: []byte("3"), Delay: 1 << 40},
	} {
		if _, err := b.Send(ctx, "q", m); err != nil {
			t.Errorf("send %s: %v", m.MessageID, err)
		}
	}
	if i, err := b.Queue(ctx, "q"); err != nil || i.Counts.Ready != 2 || i.Counts.Scheduled != 1 {
		t.Errorf("the queue holds %+v, %v; want 2 ready and 1 scheduled", i.Counts, err)
	}
	for _, status := range []broker.QueueStatus{broker.QueueDisabled, broker.QueueActive} { // with events
		if err := b.SetStatus(ctx, "q", status); err != nil {
			t.Errorf("switch to %s: %v", status, err)
		}
	}
	units := take(t, r, 2, 1).Units
	if len(units) != 2 {
		t.Fatalf("received %d units, want 2", len(units))
	}
	take(t, r, 0, 1, broker.Settlement{Unit: units[0]}, broker.Settlement{Unit: units[1]})
	e, err := b.Begin(ctx, broker.Dialog{From: "//web", To: "//stock"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.SendOn(ctx, e.Handle, broker.Outgoing{Body: []byte("x")}); err != nil {
		t.Errorf("send on a dialog: %v", err)
	}
	clean(t, b)
}
