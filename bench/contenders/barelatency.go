package contenders

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/bench/measure"
)

// idlePause is the rest before each latency sample, so that the receiver sleeps again.
const idlePause = 2 * time.Millisecond

// bareLatency times XADD until a blocked XREADGROUP returns in this process.
type bareLatency struct {
	sender, reader *redis.Client
	arrived        chan arrival
	stop           context.CancelFunc
	want           int
	samples        []time.Duration
}

// arrival is when the reader had the entry in hand, or why it never will.
type arrival struct {
	at  time.Time
	err error
}

func openBareLatency(_ context.Context, addr string) (measure.Side, error) {
	return &bareLatency{sender: newClient(addr), reader: newClient(addr), arrived: make(chan arrival, 1)}, nil
}

func (b *bareLatency) Prepare(ctx context.Context, n int) error {
	b.want = n
	if err := b.sender.XGroupCreateMkStream(ctx, bareSource, bareGroup, "0").Err(); err != nil {
		return err
	}
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	go b.read(reading)
	return nil
}

// read settles each entry after it has told when it came, as a handler would run first.
func (b *bareLatency) read(ctx context.Context) {
	args := &redis.XReadGroupArgs{
		Group: bareGroup, Consumer: "r0",
		Streams: []string{bareSource, ">"}, Count: 1, Block: time.Second,
	}
	for ctx.Err() == nil {
		streams, err := b.reader.XReadGroup(ctx, args).Result()
		at := time.Now()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err == nil {
			err = b.settle(ctx, streams[0].Messages[0].ID)
		}
		b.arrived <- arrival{at, err}
		if err != nil {
			return
		}
	}
}

func (b *bareLatency) settle(ctx context.Context, id string) error {
	_, err := b.reader.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.XAck(ctx, bareSource, bareGroup, id)
		pipe.XDel(ctx, bareSource, id)
		return nil
	})
	return err
}

func (b *bareLatency) Run(ctx context.Context) (err error) {
	values := []string{"b", measure.Body()}
	b.samples, err = sampleIdle(ctx, b.want, b.arrived, func() error {
		return b.sender.XAdd(ctx, &redis.XAddArgs{Stream: bareSource, Values: values}).Err()
	})
	return err
}

// sampleIdle sends n times, each after a pause, and returns how long each took to arrive.
func sampleIdle(ctx context.Context, n int, arrived <-chan arrival, send func() error) ([]time.Duration, error) {
	samples := make([]time.Duration, 0, n)
	rest := time.NewTicker(idlePause)
	defer rest.Stop()
	for len(samples) < n {
		select {
		case <-rest.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		start := time.Now()
		if err := send(); err != nil {
			return nil, err
		}
		select {
		case got := <-arrived:
			if got.err != nil {
				return nil, got.err
			}
			samples = append(samples, got.at.Sub(start))
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		rest.Reset(idlePause)
	}
	return samples, nil
}

func (b *bareLatency) Verify(ctx context.Context) error {
	return checkLength(ctx, b.sender, bareSource, 0)
}

// Samples implements measure.Sampler.
func (b *bareLatency) Samples() []time.Duration { return b.samples }

func (b *bareLatency) Close() error {
	if b.stop != nil {
		b.stop()
	}
	return errors.Join(b.sender.Close(), b.reader.Close())
}
