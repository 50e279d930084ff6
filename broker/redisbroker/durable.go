package redisbroker

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// durableWait is how long a call on a queue with durable waits for the replicas. It is well below callTimeout, which bounds the reply.
const durableWait = time.Second

// notDurableEvery is the least time between two not_durable events of one client on one queue.
const notDurableEvery = 10 * time.Second

// confirmation is what a call on a queue with durable: N wants and gets. It goes with the context, so that each repeat of a call asks
// again; the last answer counts.
type confirmation struct {
	want int
	got  int64
}

type confirmationKey struct{}

// confirming returns a context whose script calls wait for the replicas that queue wants, and the confirmation that they fill in. Where
// it wants none, that is ctx and one that is always met.
func (b *Broker) confirming(ctx context.Context, queue string) (context.Context, *confirmation) {
	b.dir.mu.RLock()
	n := b.dir.queues[queue].Settings.Durable
	b.dir.mu.RUnlock()
	c := &confirmation{want: n}
	if n == 0 {
		return ctx, c
	}
	return context.WithValue(ctx, confirmationKey{}, c), c
}

// met reports whether enough replicas confirmed.
func (c *confirmation) met() bool { return c.got >= int64(c.want) }

// unknown is the error of a send that was not confirmed.
func (c *confirmation) unknown(queue string, ids ...string) error {
	e := broker.ErrUnknownStored.With("queue %q is durable: %d, and %d replicas confirmed within %v", queue, c.want, c.got, durableWait)
	if len(ids) > 0 {
		return e.With("message ids %s", strings.Join(ids, ", "))
	}
	return e
}

// evalDurably is eval with a WAIT behind it on the same connection, whose offset is what WAIT waits for.
func (b *Broker) evalDurably(ctx context.Context, c *confirmation, cmd *redis.Cmd, key string) (any, error) {
	_, clustered := b.rdb.(*redis.ClusterClient)
	for try := 1; ; try++ {
		node, err := b.nodeOf(ctx, key)
		if err != nil {
			return nil, err
		}
		wait := redis.NewIntCmd(ctx, "wait", c.want, durableWait.Milliseconds())
		_, _ = node.Pipelined(ctx, func(p redis.Pipeliner) error {
			_ = p.Process(ctx, cmd)
			return p.Process(ctx, wait)
		})
		c.got = wait.Val()
		v, err := cmd.Result()
		switch {
		case err == nil || !clustered:
			return v, err
		case redis.HasErrorPrefix(err, "ASK"): // the slot is moving; where this goes, no WAIT can follow
			_ = b.rdb.Process(ctx, onceCmd{cmd})
			return cmd.Result()
		}
		b.seekNode(err)
		if !redis.HasErrorPrefix(err, "MOVED") || try == maxCallTries {
			return v, err
		}
		pauseFor(ctx, 50*time.Millisecond)
	}
}

// nodeOf is the client of the one server that has key.
func (b *Broker) nodeOf(ctx context.Context, key string) (redis.Cmdable, error) {
	if cc, ok := b.rdb.(*redis.ClusterClient); ok {
		return cc.MasterForKey(ctx, key)
	}
	return b.rdb, nil
}

// doubts remembers, of each queue, when this client last told that a turn was not confirmed.
type doubts struct {
	mu   sync.Mutex // guards told
	told map[string]time.Time
}

// due reports whether an event is due, and notes that it is written. A turn that was confirmed makes the next doubt a change.
func (d *doubts) due(queue string, met bool, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if met {
		if t, ok := d.told[queue]; ok && now.Sub(t) >= notDurableEvery {
			delete(d.told, queue)
		}
		return false
	}
	if t, ok := d.told[queue]; ok && now.Sub(t) < notDurableEvery {
		return false
	}
	if d.told == nil {
		d.told = map[string]time.Time{}
	}
	d.told[queue] = now
	return true
}

// settled tells, now and then, that a turn's commits were not confirmed. They count as done: to run them again would be worse than
// what a failover may make of them.
func (b *Broker) settled(ctx context.Context, queue string, c *confirmation) {
	if c.want == 0 || !b.doubts.due(queue, c.met(), time.Now()) {
		return
	}
	b.opt.Log("the replicas did not confirm a turn: a failover may undo it", "queue", queue, "wanted", c.want, "confirmed", c.got)
	now, err := b.clock(ctx, b.prefix(queue))
	if err != nil {
		return
	}
	err = b.rdb.XAdd(ctx, &redis.XAddArgs{Stream: b.prefix(queue) + "events", MaxLen: 10000, Approx: true, Values: []any{
		"type", "not_durable", "queue", escape(queue), "time", now.UnixMilli(), "wanted", c.want, "confirmed", c.got,
	}}).Err()
	if err == nil {
		err = b.rdb.Publish(ctx, b.channel(), "e "+b.prefix(queue)).Err()
	}
	if err != nil {
		b.opt.Log("no event could be written", "queue", queue, "error", err)
	}
}
