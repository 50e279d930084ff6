package redisbroker

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// Keys of the namespace: the set hosts of names, and for each host a hash from queue to monitor that expires with the host's
// silence. A name whose hash has expired is swept out by the next host that starts.

func (b *Broker) hostKey(name string) string { return b.nsKey("host:" + escape(name)) }

// PublishHost implements broker.Hosts.
func (b *Broker) PublishHost(ctx context.Context, h broker.HostReport, ttl time.Duration) error {
	fields := make([]any, 0, 2*len(h.Monitors))
	for i := range h.Monitors {
		v, err := json.Marshal(&h.Monitors[i])
		if err != nil {
			return broker.ErrInvalid.With("monitor of queue %q: %v", h.Monitors[i].Queue, err)
		}
		fields = append(fields, h.Monitors[i].Queue, v)
	}
	key := b.hostKey(h.Name)
	var added *redis.IntCmd
	_, err := b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		added = pipe.SAdd(ctx, b.nsKey("hosts"), h.Name)
		for chunk := range slices.Chunk(fields, 2000) {
			pipe.HSet(ctx, key, chunk...)
		}
		pipe.PExpire(ctx, key, ttl)
		return nil
	})
	if err != nil || added.Val() == 0 {
		return b.fault("publish the monitors of host "+h.Name, err)
	}
	return b.sweepHosts(ctx)
}

// sweepHosts forgets the names of hosts that went without a word.
func (b *Broker) sweepHosts(ctx context.Context) error {
	names, found, err := b.hostHashes(ctx)
	if err != nil {
		return err
	}
	var gone []any
	for i, n := range names {
		if len(found[i]) == 0 {
			gone = append(gone, n)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	return b.fault("forget hosts", b.rdb.SRem(ctx, b.nsKey("hosts"), gone...).Err())
}

// ForgetHost implements broker.Hosts.
func (b *Broker) ForgetHost(ctx context.Context, name string) error {
	_, err := b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Del(ctx, b.hostKey(name))
		pipe.SRem(ctx, b.nsKey("hosts"), name)
		return nil
	})
	return b.fault("forget host "+name, err)
}

// ListHosts implements broker.Hosts.
func (b *Broker) ListHosts(ctx context.Context) ([]broker.HostReport, error) {
	names, found, err := b.hostHashes(ctx)
	if err != nil {
		return nil, err
	}
	var hosts []broker.HostReport
	for i, n := range names {
		if len(found[i]) == 0 {
			continue
		}
		h := broker.HostReport{Name: n}
		for queue, v := range found[i] {
			var m broker.MonitorReport
			if err := json.Unmarshal([]byte(v), &m); err != nil {
				return nil, broker.ErrCorrupt.With("monitor of queue %q, host %s: %v", queue, n, err)
			}
			h.Monitors = append(h.Monitors, m)
		}
		slices.SortFunc(h.Monitors, func(a, b broker.MonitorReport) int { return strings.Compare(a.Queue, b.Queue) })
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// hostHashes returns every host's name, sorted, and its hash, which is empty when it has expired.
func (b *Broker) hostHashes(ctx context.Context) ([]string, []map[string]string, error) {
	names, err := b.rdb.SMembers(ctx, b.nsKey("hosts")).Result()
	if err != nil || len(names) == 0 {
		return nil, nil, b.fault("list hosts", err)
	}
	slices.Sort(names)
	replies := make([]*redis.MapStringStringCmd, len(names))
	_, err = b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, n := range names {
			replies[i] = pipe.HGetAll(ctx, b.hostKey(n))
		}
		return nil
	})
	if err != nil {
		return nil, nil, b.fault("list hosts", err)
	}
	found := make([]map[string]string, len(names))
	for i, r := range replies {
		found[i] = r.Val()
	}
	return names, found, nil
}
