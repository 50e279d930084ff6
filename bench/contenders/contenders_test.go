package contenders

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bench/measure"
)

func startServer(t *testing.T) *measure.Server {
	t.Helper()
	server, err := measure.StartServer(t.Context(), "redis-server")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// TestPeersRun leaves BullMQ out: it downloads from the network.
func TestPeersRun(t *testing.T) {
	server := startServer(t)
	for _, work := range Peers(500, &BullMQ{}) {
		if work.Name == BullMQDrain {
			continue
		}
		t.Run(work.Name, func(t *testing.T) {
			result, err := measure.Run(t.Context(), server, work, 30*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if result.Value <= 0 || result.Count != work.Count {
				t.Errorf("result %+v has no figure", result)
			}
		})
	}
}

// thief removes one waiting message between filling and draining.
type thief struct {
	measure.Side
	steal func(ctx context.Context) error
}

func (s thief) Prepare(ctx context.Context, n int) error {
	if err := s.Side.Prepare(ctx, n); err != nil {
		return err
	}
	return s.steal(ctx)
}

func TestALostMessageFailsEachDrain(t *testing.T) {
	server := startServer(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	dropFirst := func(stream string) func(context.Context) error {
		return func(ctx context.Context) error { return client.XTrimMaxLen(ctx, stream, 99).Err() }
	}
	for name, steal := range map[string]func(context.Context) error{
		BareDrain: dropFirst(bareSource),
		BareSend:  dropFirst(bareSource),
		Watermill: dropFirst(watermillTopic),
		Asynq:     func(ctx context.Context) error { return client.RPop(ctx, "asynq:{default}:pending").Err() },
	} {
		t.Run(name, func(t *testing.T) {
			work := workload(t, name)
			work.Count = 100
			open := work.Open
			work.Open = func(ctx context.Context, addr string) (measure.Side, error) {
				side, err := open(ctx, addr)
				return thief{side, steal}, err
			}
			_, err := measure.Run(t.Context(), server, work, time.Second)
			if err == nil || !strings.Contains(err.Error(), "99") {
				t.Errorf("Run = %v, want an error that tells of 99 messages", err)
			}
		})
	}
}

func workload(t *testing.T, name string) measure.Workload {
	t.Helper()
	for _, work := range Peers(100, &BullMQ{}) {
		if work.Name == name {
			return work
		}
	}
	t.Fatalf("no workload %q", name)
	return measure.Workload{}
}
