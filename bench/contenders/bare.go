// Package contenders holds every side that bench/ compares: bare Redis commands,
// asynq, watermill-redisstream, BullMQ and Parley itself.
package contenders

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"parley/bench/measure"
)

const (
	bareSource  = "bare:source"
	bareTarget  = "bare:target"
	bareGroup   = "g"
	bareReaders = 2
	bareBatch   = 100
	fillBatch   = 1000
)

// bare drains a stream with nothing but the commands any reader would need.
type bare struct {
	client *redis.Client
	send   bool
	count  *measure.Count
	want   int
}

// openBare returns a drain that, with send, adds each body to a second stream.
func openBare(send bool) func(context.Context, string) (measure.Side, error) {
	return func(_ context.Context, addr string) (measure.Side, error) {
		return &bare{client: newClient(addr), send: send}, nil
	}
}

// newClient never retries: a lost reply must show, not double a message.
func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
}

func (b *bare) Prepare(ctx context.Context, n int) error {
	b.want, b.count = n, measure.NewCount(n)
	if err := b.client.XGroupCreateMkStream(ctx, bareSource, bareGroup, "0").Err(); err != nil {
		return err
	}
	return appendBare(ctx, b.client, bareSource, n, fillBatch)
}

// appendBare adds n entries of one field, the body, batch commands a pipeline.
func appendBare(ctx context.Context, client *redis.Client, stream string, n, batch int) error {
	values := []string{"b", measure.Body()}
	for n > 0 {
		size := min(n, batch)
		n -= size
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for range size {
				pipe.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: values})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bare) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for reader := range bareReaders {
		name := fmt.Sprintf("r%d", reader)
		group.Go(func() error { return b.drain(ctx, name) })
	}
	return group.Wait()
}

// drain reads until the stream has nothing new.
func (b *bare) drain(ctx context.Context, consumer string) error {
	read := &redis.XReadGroupArgs{
		Group: bareGroup, Consumer: consumer,
		Streams: []string{bareSource, ">"}, Count: bareBatch, Block: -1,
	}
	for {
		streams, err := b.client.XReadGroup(ctx, read).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := b.settle(ctx, streams[0].Messages); err != nil {
			return err
		}
		b.count.Add(len(streams[0].Messages))
	}
}

func (b *bare) settle(ctx context.Context, messages []redis.XMessage) error {
	ids := make([]string, len(messages))
	for i, message := range messages {
		ids[i] = message.ID
	}
	_, err := b.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		if b.send {
			for _, message := range messages {
				pipe.XAdd(ctx, &redis.XAddArgs{Stream: bareTarget, Values: []any{"b", message.Values["b"]}})
			}
		}
		pipe.XAck(ctx, bareSource, bareGroup, ids...)
		pipe.XDel(ctx, bareSource, ids...)
		return nil
	})
	return err
}

func (b *bare) Verify(ctx context.Context) error {
	if err := b.count.Check(); err != nil {
		return err
	}
	pending, err := b.client.XPending(ctx, bareSource, bareGroup).Result()
	if err != nil {
		return err
	}
	if pending.Count != 0 {
		return fmt.Errorf("%d entries still pending", pending.Count)
	}
	if err := checkLength(ctx, b.client, bareSource, 0); err != nil {
		return err
	}
	if !b.send {
		return nil
	}
	return checkLength(ctx, b.client, bareTarget, b.want)
}

// checkLength fails unless stream holds exactly want entries.
func checkLength(ctx context.Context, client *redis.Client, stream string, want int) error {
	length, err := client.XLen(ctx, stream).Result()
	if err != nil {
		return err
	}
	if length != int64(want) {
		return fmt.Errorf("stream %s holds %d entries, want %d", stream, length, want)
	}
	return nil
}

func (b *bare) Close() error { return b.client.Close() }
