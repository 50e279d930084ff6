package contenders

import (
	"context"

	"github.com/redis/go-redis/v9"

	"parley/bench/measure"
)

// bareAppend adds entries: pipelined from one goroutine, or one XADD a round
// trip from many.
type bareAppend struct {
	client  *redis.Client
	senders int
	want    int
}

// openBareAppend pipelines bareBatch commands when senders is 0.
func openBareAppend(senders int) func(context.Context, string) (measure.Side, error) {
	return func(_ context.Context, addr string) (measure.Side, error) {
		options := &redis.Options{Addr: addr, MaxRetries: -1, PoolSize: max(senders, 1), ContextTimeoutEnabled: true}
		return &bareAppend{client: redis.NewClient(options), senders: senders}, nil
	}
}

func (b *bareAppend) Prepare(ctx context.Context, n int) error {
	b.want = n
	return b.client.Ping(ctx).Err()
}

func (b *bareAppend) Run(ctx context.Context) error {
	if b.senders == 0 {
		return appendBare(ctx, b.client, bareSource, b.want, bareBatch)
	}
	values := []string{"b", measure.Body()}
	return fromMany(ctx, b.senders, b.want, func(ctx context.Context) error {
		return b.client.XAdd(ctx, &redis.XAddArgs{Stream: bareSource, Values: values}).Err()
	})
}

func (b *bareAppend) Verify(ctx context.Context) error {
	return checkLength(ctx, b.client, bareSource, b.want)
}

func (b *bareAppend) Close() error { return b.client.Close() }

// bareWaiting only lets entries wait, for the memory they take.
type bareWaiting struct{ bareAppend }

func openBareWaiting(_ context.Context, addr string) (measure.Side, error) {
	return &bareWaiting{bareAppend{client: newClient(addr)}}, nil
}

func (b *bareWaiting) Prepare(ctx context.Context, n int) error {
	b.want = n
	return appendBare(ctx, b.client, bareSource, n, fillBatch)
}

func (b *bareWaiting) Run(context.Context) error { return nil }
