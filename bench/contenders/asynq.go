package contenders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"parley/bench/measure"
)

const (
	asynqConcurrency = 64
	asynqSenders     = 32
	asynqPool        = 2 * asynqConcurrency
	asynqType        = "measured"
	asynqTarget      = "target"
)

// asynqDrain is an asynq server with a native handler.
type asynqDrain struct {
	client    *asynq.Client
	server    *asynq.Server
	inspector *asynq.Inspector
	enqueue   bool
	count     *measure.Count
	want      int
}

// openAsynq returns a drain whose handler does nothing or, with enqueue, enqueues
// the payload on a second queue.
func openAsynq(enqueue bool) func(context.Context, string) (measure.Side, error) {
	return func(_ context.Context, addr string) (measure.Side, error) {
		connect := asynqConnect(addr)
		return &asynqDrain{
			client:    asynq.NewClient(connect),
			inspector: asynq.NewInspector(connect),
			server: asynq.NewServer(connect, asynq.Config{
				Concurrency: asynqConcurrency,
				LogLevel:    asynq.FatalLevel,
			}),
			enqueue: enqueue,
		}, nil
	}
}

// asynqConnect gives asynq more connections than it has workers, so that the pool is never its limit.
func asynqConnect(addr string) asynq.RedisClientOpt {
	return asynq.RedisClientOpt{Addr: addr, PoolSize: asynqPool}
}

func (a *asynqDrain) Prepare(ctx context.Context, n int) error {
	a.want, a.count = n, measure.NewCount(n)
	return enqueueMany(ctx, a.client, n)
}

func enqueueMany(ctx context.Context, client *asynq.Client, n int) error {
	payload := []byte(measure.Body())
	return fromMany(ctx, asynqSenders, n, func(ctx context.Context) error {
		_, err := client.EnqueueContext(ctx, asynq.NewTask(asynqType, payload))
		return err
	})
}

func (a *asynqDrain) Run(ctx context.Context) error {
	if err := a.server.Start(asynq.HandlerFunc(a.handle)); err != nil {
		return err
	}
	return a.count.Wait(ctx)
}

func (a *asynqDrain) handle(ctx context.Context, task *asynq.Task) error {
	if a.enqueue {
		_, err := a.client.EnqueueContext(ctx, asynq.NewTask(asynqType, task.Payload()), asynq.Queue(asynqTarget))
		if err != nil {
			return err
		}
	}
	a.count.Add(1)
	return nil
}

// Verify waits for the last tasks: asynq marks one done only after its handler returned.
func (a *asynqDrain) Verify(ctx context.Context) error {
	if err := measure.Until(ctx, 10*time.Millisecond, a.settled); err != nil {
		return err
	}
	if err := a.count.Check(); err != nil {
		return err
	}
	if !a.enqueue {
		return nil
	}
	return checkPending(a.inspector, asynqTarget, a.want)
}

func (a *asynqDrain) settled() error {
	info, err := a.inspector.GetQueueInfo("default")
	if err != nil {
		return err
	}
	if info.Size != 0 || info.ProcessedTotal != a.want || info.FailedTotal != 0 {
		return fmt.Errorf("asynq has %d tasks left, %d processed, %d failed, want %d processed",
			info.Size, info.ProcessedTotal, info.FailedTotal, a.want)
	}
	return nil
}

func checkPending(inspector *asynq.Inspector, queue string, want int) error {
	info, err := inspector.GetQueueInfo(queue)
	if err != nil {
		return err
	}
	if info.Pending != want || info.Size != want {
		return fmt.Errorf("asynq queue %s holds %d tasks, %d of them pending, want %d", queue, info.Size, info.Pending, want)
	}
	return nil
}

func (a *asynqDrain) Close() error {
	a.server.Shutdown()
	return errors.Join(a.client.Close(), a.inspector.Close())
}

// asynqEnqueue enqueues from asynqSenders goroutines.
type asynqEnqueue struct {
	client    *asynq.Client
	inspector *asynq.Inspector
	want      int
}

func openAsynqEnqueue(_ context.Context, addr string) (measure.Side, error) {
	connect := asynqConnect(addr)
	return &asynqEnqueue{client: asynq.NewClient(connect), inspector: asynq.NewInspector(connect)}, nil
}

func (a *asynqEnqueue) Prepare(_ context.Context, n int) error {
	a.want = n
	return a.client.Ping()
}

func (a *asynqEnqueue) Run(ctx context.Context) error { return enqueueMany(ctx, a.client, a.want) }

func (a *asynqEnqueue) Verify(context.Context) error {
	return checkPending(a.inspector, "default", a.want)
}

func (a *asynqEnqueue) Close() error { return errors.Join(a.client.Close(), a.inspector.Close()) }
