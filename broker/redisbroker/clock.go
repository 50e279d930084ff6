package redisbroker

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// serverClock is what a client knows of its server's clock: the last time it saw in a reply, and how long ago that was by the
// monotonic clock of this host. The host's time of day plays no part. On a Cluster each node has its own. What it says is never
// ahead of the server's clock, unless that was set back since.
type serverClock struct {
	mu   sync.Mutex // guards seen
	seen map[string]sighting
}

// sighting is one look at a server's clock.
type sighting struct {
	ms int64
	at time.Time // with the monotonic clock's reading
}

// freshClock is how old a sighting may be where an instant by cron is computed from it: else the server is asked.
const freshClock = time.Second

// saw notes what the clock of a node showed in a reply that came now. It returns how far that is from what was expected: above 0
// when the clock was set forward, below when it was set back, 0 at the first sight.
func (c *serverClock) saw(node string, ms int64) (moved time.Duration) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]sighting{}
	}
	if old, ok := c.seen[node]; ok {
		moved = time.Duration(ms-old.ms)*time.Millisecond - now.Sub(old.at)
	}
	c.seen[node] = sighting{ms: ms, at: now}
	return moved
}

// now is what the clock of a node shows, and how long ago it was seen; ok is false when it never was.
func (c *serverClock) now(node string) (t time.Time, age time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.seen[node]
	if !ok {
		return time.Time{}, 0, false
	}
	age = time.Since(s.at)
	return time.UnixMilli(s.ms).Add(age), age, true
}

// clockNode names the node that has the keys of a prefix: "" on a server that is no Cluster.
func (b *Broker) clockNode(ctx context.Context, prefix string) (name string, node redis.UniversalClient, err error) {
	cc, ok := b.rdb.(*redis.ClusterClient)
	if !ok {
		return "", b.rdb, nil
	}
	n, err := cc.MasterForKey(ctx, prefix+"meta")
	if err != nil {
		return "", nil, err
	}
	return n.Options().Addr, n, nil
}

// clock is what the clock of the server shows that has the keys of a prefix, as far as is known: it says when to look, or is shown. It asks
// only when it has never seen that clock.
func (b *Broker) clock(ctx context.Context, prefix string) (time.Time, error) {
	return b.clockWithin(ctx, prefix, 1<<62)
}

// clockWithin is clock, asking the server when it was last seen longer ago than limit. An answer that does not come leaves what is known.
func (b *Broker) clockWithin(ctx context.Context, prefix string, limit time.Duration) (time.Time, error) {
	if t, ok := b.testClock(); ok {
		return t, nil
	}
	name, node, err := b.clockNode(ctx, prefix)
	if err != nil {
		return time.Time{}, b.fault("read the clock", err)
	}
	known, age, ok := b.time.now(name)
	if ok && age <= limit {
		return known, nil
	}
	t, err := node.Time(ctx).Result()
	switch {
	case err == nil:
		b.time.saw(name, t.UnixMilli())
		return t, nil
	case ok:
		return known, nil
	}
	return time.Time{}, b.fault("read the clock", err)
}

// testClock is the clock that a test gives to every script.
func (b *Broker) testClock() (time.Time, bool) {
	if b.opt.Now == nil {
		return time.Time{}, false
	}
	ms := b.opt.Now()
	return time.UnixMilli(ms), ms != 0
}
