package redisbroker_test

import (
	"context"
	"errors"
	"testing"

	"parley/broker"
	"parley/broker/redisbroker"
)

func TestSweepTellsWorkFromIdleAndMarksTheIdleAsleep(t *testing.T) {
	each(t, func(t *testing.T, op func(redisbroker.Options) *redisbroker.Broker) {
		ctx := context.Background()
		b := op(redisbroker.Options{})
		apply(t, b, []string{"idle", "work", "off"}, nil)
		for _, q := range []string{"work", "off"} {
			if _, err := b.Send(ctx, q, broker.Outgoing{Body: []byte("m")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.SetStatus(ctx, "off", broker.QueueDisabled); err != nil {
			t.Fatal(err)
		}
		got, err := b.Sweep(ctx, []string{"idle", "work", "off", "none"})
		if len(got) != 1 || got[0] != "work" || !errors.Is(err, broker.ErrUnknownEntity) {
			t.Fatalf("got %v %v, want [work] and an unknown queue", got, err)
		}
		s, err := b.Snapshot(ctx, "idle")
		if err != nil || !s.Asleep {
			t.Fatalf("idle is not asleep: %v %v", s.Asleep, err)
		}
	})
}
