package redisbroker_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

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

// TestSweepPassesOverWhatIsBroken: a queue whose keys are of a wrong type hides none behind it.
func TestSweepPassesOverWhatIsBroken(t *testing.T) {
	each(t, func(t *testing.T, op func(redisbroker.Options) *redisbroker.Broker) {
		ctx := context.Background()
		b := op(redisbroker.Options{})
		apply(t, b, []string{"idle", "work"}, nil)
		if _, err := b.Send(ctx, "work", broker.Outgoing{}); err != nil {
			t.Fatal(err)
		}
		redisClient(t, b).Set(ctx, "{"+b.Namespace()+"/broken}:meta", "no hash", 0)
		got, err := b.Sweep(ctx, []string{"broken", "idle", "work"})
		if len(got) != 1 || got[0] != "work" || err == nil {
			t.Fatalf("got %v, %v; want [work] and the error of the other", got, err)
		}
	})
}

func redisClient(t *testing.T, b *redisbroker.Broker) *redis.Client {
	opt, err := redis.ParseURL(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(opt)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
