package redisbroker

import (
	"context"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// Queues implements broker.QueueAdmin.
func (b *Broker) Queues(ctx context.Context) ([]string, error) {
	if err := b.dir.load(ctx, b); err != nil {
		return nil, err
	}
	return b.dir.queueNames(), nil
}

// Queue implements broker.QueueAdmin.
func (b *Broker) Queue(ctx context.Context, name string) (broker.QueueInfo, error) {
	if sub := broker.ParsePath(name); sub.Sub != broker.SubNone {
		name = sub.Entity
	}
	e, err := b.queueEntry(ctx, name)
	if err != nil {
		return broker.QueueInfo{}, err
	}
	p := b.prefix(name)
	if err := b.promote(ctx, p); err != nil {
		return broker.QueueInfo{}, err
	}
	var meta, dead, trans, slots, txs *redis.MapStringStringCmd
	var open, ended *redis.IntCmd
	_, err = b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		meta, dead, trans = pipe.HGetAll(ctx, p+"meta"), pipe.HGetAll(ctx, p+"d:meta"), pipe.HGetAll(ctx, p+"t:meta")
		slots, txs = pipe.HGetAll(ctx, p+"sl"), pipe.HGetAll(ctx, p+"txs")
		open, ended = pipe.HLen(ctx, p+"cv"), pipe.HLen(ctx, p+"ed")
		return nil
	})
	if err != nil {
		return broker.QueueInfo{}, b.fault("look at queue "+name, err)
	}
	if len(meta.Val()) == 0 {
		return broker.QueueInfo{}, broker.ErrUnknownEntity.With("queue %q is gone from Redis", name)
	}
	i := broker.QueueInfo{QueueSettings: e.Settings, Counts: countsOf(meta.Val(), dead.Val(), trans.Val())}
	i.Status = broker.QueueStatus(meta.Val()["status"])
	i.EntriesLost, i.Bytes = num(meta.Val()["lost"]), num(meta.Val()["bytes"])
	i.Open, i.Ended = open.Val(), ended.Val()
	for _, n := range slots.Val() {
		i.Readers += int(num(n))
	}
	i.Services = b.servicesOf(name)
	if i.Parked = num(meta.Val()["parked"]); i.Parked > 0 {
		if i.ParkedFirst, err = b.parkedGroups(ctx, p); err != nil {
			return i, err
		}
	}
	i.Transmit, err = b.transmitInfo(ctx, p, txs.Val())
	return i, err
}

func (b *Broker) servicesOf(queue string) []string {
	b.dir.mu.RLock()
	defer b.dir.mu.RUnlock()
	var out []string
	for _, s := range b.dir.services {
		if s.Queue == queue {
			out = append(out, s.Name)
		}
	}
	sort.Strings(out)
	return out
}

func (b *Broker) transmitInfo(ctx context.Context, p string, txs map[string]string) ([]broker.TransmitInfo, error) {
	var out []broker.TransmitInfo
	for t, v := range txs {
		n, err := b.rdb.XLen(ctx, p+"tx:"+t).Result()
		if err != nil {
			return nil, b.fault("look at a transmission queue", err)
		}
		ti := broker.TransmitInfo{Target: unescape(t), Waiting: n}
		ti.NextTry, ti.Status = transmitState(v)
		out = append(out, ti)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Target < out[j].Target })
	return out, nil
}

// transmitState reads next try|refusals|status, as kept in txs.
func transmitState(v string) (next time.Time, status string) {
	f := strings.Split(v, "|")
	if len(f) >= 3 {
		status = unescape(f[2])
	}
	return msTime(f[0]), status
}

func num(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func countsOf(m, dead, trans map[string]string) broker.Counts {
	c := broker.Counts{
		Ready: num(m["ready"]), Locked: num(m["locked"]), Retrying: num(m["retrying"]), Scheduled: num(m["scheduled"]),
		Transmission: num(m["tx"]), Retained: num(m["retained"]), DeadLetter: num(dead["ready"]) + num(dead["locked"]),
		TransferDeadLetter: num(trans["ready"]) + num(trans["locked"]),
	}
	c.Total = c.Ready + c.Locked + c.Retrying + c.Scheduled + c.Deferred + c.DeadLetter + c.TransferDeadLetter + c.Transmission
	return c
}

// SetStatus implements broker.QueueAdmin.
func (b *Broker) SetStatus(ctx context.Context, name string, s broker.QueueStatus) error {
	if _, err := b.queueEntry(ctx, name); err != nil {
		return err
	}
	switch s {
	case broker.QueueActive, broker.QueueOff, broker.QueueDisabled, broker.QueueSendDisabled, broker.QueueReceiveDisabled:
	default:
		return broker.ErrInvalid.With("queue %q: status %q", name, s)
	}
	return b.enable(ctx, name, s, "")
}

// enable switches a queue, only if its epoch is still epoch ("": whatever it is), and has parked arrivals tried at once.
func (b *Broker) enable(ctx context.Context, name string, s broker.QueueStatus, epoch string) error {
	v, err := b.repeat(ctx, "status", b.prefix(name)+"meta", b.now(), string(s), epoch)
	if err != nil {
		return b.fault("switch queue "+name, err)
	}
	if v == "NOENT" {
		return broker.ErrUnknownEntity.With("queue %q is gone from Redis", name)
	}
	if !s.CanSend() {
		return nil
	}
	targets := []string{"queue:" + escape(name)}
	for _, svc := range b.servicesOf(name) {
		targets = append(targets, escape(svc))
	}
	return b.retryTransmissions(ctx, targets)
}

// purgeStep is how many messages one purge call looks at: well under 50 ms.
const purgeStep = 500

// Purge implements broker.QueueAdmin and broker.DeadLetters.
func (b *Broker) Purge(ctx context.Context, path string) (int64, error) {
	prefix, queue := b.pathPrefix(path)
	if _, err := b.queueEntry(ctx, queue); err != nil {
		return 0, err
	}
	var total int64
	after := "0"
	for {
		a, err := b.repeatStrings(ctx, "purge", prefix+"meta", b.now(), purgeStep, after)
		if err != nil {
			return total, err
		}
		total += num(a[0])
		if a[1] == "0" && num(a[0]) < purgeStep {
			return total, nil
		}
		if a[1] != "0" {
			after = a[1]
		}
	}
}

// DeleteQueue implements broker.QueueAdmin. Its keys are removed in steps, its entry in the directory first, so that nothing is
// sent to it meanwhile.
func (b *Broker) DeleteQueue(ctx context.Context, name string) error {
	if _, err := b.queueEntry(ctx, name); err != nil {
		return err
	}
	if s := b.servicesOf(name); len(s) > 0 {
		return broker.ErrImmutable.With("queue %q serves %s; delete the service first", name, strings.Join(s, ", "))
	}
	if err := b.rdb.Eval(ctx, undefine, []string{b.nsKey("entities"), b.nsKey("version")}, "q/"+name, newVersion()).Err(); err != nil {
		return b.fault("delete queue "+name, err)
	}
	if err := b.dir.load(ctx, b); err != nil {
		return err
	}
	return b.deleteKeys(ctx, name)
}

// undefine takes an entry out of the directory. It is one script, so that a full Redis does both or nothing: it refuses SET alone,
// and not behind a write that makes room.
// KEYS 1: entities  2: version. ARGV 1: field of the entry  2: new version.
const undefine = `redis.call('HDEL', KEYS[1], ARGV[1])
return redis.call('SET', KEYS[2], ARGV[2])`

func (b *Broker) deleteKeys(ctx context.Context, name string) error {
	return b.eachKey(ctx, b.prefix(name), func(keys []string) error {
		args := make([]string, len(keys))
		copy(args, keys)
		if err := b.rdb.Unlink(ctx, args...).Err(); err != nil {
			return b.fault("delete queue "+name, err)
		}
		return nil
	})
}

// eachKey calls f with the keys of one queue, some at a time, from every node that may hold them; one call at a time.
func (b *Broker) eachKey(ctx context.Context, prefix string, f func(keys []string) error) error {
	pattern := globEscape(prefix) + "*"
	var one sync.Mutex // the nodes of a Cluster are asked side by side
	scan := func(ctx context.Context, c redis.Cmdable) error {
		var cursor uint64
		for {
			keys, next, err := c.Scan(ctx, cursor, pattern, 500).Result()
			if err != nil {
				return b.fault("scan", err)
			}
			if len(keys) > 0 {
				one.Lock()
				err := f(keys)
				one.Unlock()
				if err != nil {
					return err
				}
			}
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	}
	if cc, ok := b.rdb.(*redis.ClusterClient); ok {
		return cc.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return scan(ctx, c) })
	}
	return scan(ctx, b.rdb)
}

func globEscape(s string) string {
	r := strings.NewReplacer("*", "\\*", "?", "\\?", "[", "\\[", "]", "\\]", "\\", "\\\\")
	return r.Replace(s)
}

// Reasons returns how many messages of a queue were ever dead-lettered for each reason.
func (b *Broker) Reasons(ctx context.Context, queue string) (map[string]int64, error) {
	v, err := b.rdb.HGetAll(ctx, b.prefix(queue)+"reasons").Result()
	if err != nil {
		return nil, b.fault("look at queue "+queue, err)
	}
	out := make(map[string]int64, len(v))
	for k, n := range v {
		out[unescape(k)] = num(n)
	}
	return out, nil
}
