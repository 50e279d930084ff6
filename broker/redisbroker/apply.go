package redisbroker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

func isNil(err error) bool { return errors.Is(err, redis.Nil) }

// Apply implements broker.EntityAdmin.
func (b *Broker) Apply(ctx context.Context, defs broker.Definitions, dryRun bool) ([]broker.Change, error) {
	if err := b.dir.load(ctx, b); err != nil {
		return nil, err
	}
	if err := b.checkDefinitions(ctx, &defs); err != nil {
		return nil, err
	}
	plan, writes, err := b.plan(&defs)
	if err != nil || dryRun {
		return plan, err
	}
	if err := b.write(ctx, writes); err != nil {
		return nil, err
	}
	b.keepMu.Lock()
	b.keep.applied = defs
	b.keepMu.Unlock()
	if err := b.configureQueues(ctx); err != nil {
		return nil, err
	}
	if err := b.armSchedules(ctx); err != nil {
		return nil, err
	}
	return plan, b.wakeTargets(ctx, defs)
}

// entityWrite is one entry of the directory that changes.
type entityWrite struct {
	field string
	value any
}

// checkDefinitions refuses the whole when any part is wrong, joining all that is.
func (b *Broker) checkDefinitions(ctx context.Context, defs *broker.Definitions) error {
	err := broker.CheckDefinitions(defs)
	for _, q := range defs.Queues {
		if q.Durable > 0 && b.embedded != nil {
			err = errors.Join(err, broker.ErrInvalid.With("queue %q: durable %d: the embedded server has no replicas and keeps nothing; use a Redis, or durable 0", q.Name, q.Durable))
		}
	}
	for _, t := range defs.MessageTypes {
		if _, e := newChecker(t); e != nil {
			err = errors.Join(err, broker.ErrInvalid.With("message type %q: %v", t.Name, e))
		}
	}
	for _, s := range defs.Services {
		if !b.willExist(s.Queue, defs) {
			err = errors.Join(err, broker.ErrUnknownEntity.With("service %q: queue %q", s.Name, s.Queue))
		}
		for _, c := range s.Contracts {
			if !b.contractWillExist(c, defs) {
				err = errors.Join(err, broker.ErrUnknownContract.With("service %q: contract %q", s.Name, c))
			}
		}
	}
	for _, n := range defs.Notify {
		if n.Event == broker.EventQueueActivation && !b.willExist(n.Queue, defs) {
			err = errors.Join(err, broker.ErrUnknownEntity.With("event notification %s: queue %q", n.Event, n.Queue))
		}
	}
	for _, s := range defs.Schedules {
		if _, e := b.firstInstant(ctx, b.nsKey(""), s.Cron, s.Zone); e != nil {
			err = errors.Join(err, broker.ErrInvalid.With("schedule %q: %v", s.Name, e))
		}
	}
	return err
}

func (b *Broker) willExist(queue string, defs *broker.Definitions) bool {
	for _, q := range defs.Queues {
		if q.Name == queue {
			return true
		}
	}
	b.dir.mu.RLock()
	defer b.dir.mu.RUnlock()
	_, ok := b.dir.queues[queue]
	return ok
}

func (b *Broker) contractWillExist(name string, defs *broker.Definitions) bool {
	if name == broker.ContractDefault {
		return true
	}
	for _, c := range defs.Contracts {
		if c.Name == name {
			return true
		}
	}
	b.dir.mu.RLock()
	defer b.dir.mu.RUnlock()
	_, ok := b.dir.contract[name]
	return ok
}

// plan compares the definitions with what there is.
func (b *Broker) plan(defs *broker.Definitions) ([]broker.Change, []entityWrite, error) {
	b.dir.mu.RLock()
	defer b.dir.mu.RUnlock()
	p := &planner{}
	for _, t := range defs.MessageTypes {
		old, ok := b.dir.types[t.Name]
		p.add("message_type", "m/", t.Name, old, ok, t)
	}
	for _, c := range defs.Contracts {
		old, ok := b.dir.contract[c.Name]
		if ok && !reflect.DeepEqual(old, c) {
			return nil, nil, broker.ErrImmutable.With("contract %q is immutable (CT-3): give the new one another name", c.Name)
		}
		p.add("contract", "c/", c.Name, old, ok, c)
	}
	for _, q := range defs.Queues {
		old, ok := b.dir.queues[q.Name]
		p.queue(q, old, ok)
	}
	for _, s := range defs.Services {
		old, ok := b.dir.services[s.Name]
		if ok && old.Queue != s.Queue {
			return nil, nil, broker.ErrImmutable.With("service %q is bound to queue %q; delete it first to bind it to %q", s.Name, old.Queue, s.Queue)
		}
		p.add("service", "s/", s.Name, old, ok, s)
	}
	p.list("priorities", "p/", b.dir.prios, defs.Priorities)
	p.list("event_notifications", "n/", b.dir.notify, defs.Notify)
	p.list("schedules", "t/", b.dir.schedule, defs.Schedules)
	return p.changes, p.writes, nil
}

// planner gathers changes and the writes they need.
type planner struct {
	changes []broker.Change
	writes  []entityWrite
}

func (p *planner) add(kind, field, name string, old any, exists bool, now any) {
	c := broker.Change{Action: "create", Kind: kind, Name: name}
	if exists {
		c.Action = "none"
		if !reflect.DeepEqual(old, now) {
			c.Action, c.Detail = "alter", difference(old, now)
		}
	}
	p.changes = append(p.changes, c)
	if c.Action != "none" {
		p.writes = append(p.writes, entityWrite{field + name, now})
	}
}

func (p *planner) queue(q broker.QueueSettings, old queueEntry, exists bool) {
	n := len(p.writes)
	p.add("queue", "q/", q.Name, old.Settings, exists, q)
	if len(p.writes) > n {
		p.writes[n].value = queueEntry{Number: old.Number, Settings: q}
	}
}

func (p *planner) list(kind, field string, old, now any) {
	v := reflect.ValueOf(now)
	if v.Len() == 0 || reflect.DeepEqual(old, now) {
		return
	}
	action := "alter"
	if reflect.ValueOf(old).Len() == 0 {
		action = "create"
	}
	p.changes = append(p.changes, broker.Change{Action: action, Kind: kind, Name: kind, Detail: fmt.Sprintf("%d entries", v.Len())})
	p.writes = append(p.writes, entityWrite{field, now})
}

// difference lists the fields that differ: name old → new.
func difference(old, now any) string {
	a, b := reflect.ValueOf(old), reflect.ValueOf(now)
	var out []string
	for i := range a.NumField() {
		x, y := a.Field(i).Interface(), b.Field(i).Interface()
		if !reflect.DeepEqual(x, y) {
			out = append(out, fmt.Sprintf("%s %v → %v", a.Type().Field(i).Name, x, y))
		}
	}
	return strings.Join(out, ", ")
}

// write stores the directory's entries. A new queue gets its number here; numbers are never used again.
func (b *Broker) write(ctx context.Context, writes []entityWrite) error {
	if len(writes) == 0 {
		return nil
	}
	if err := b.number(ctx, writes); err != nil {
		return b.fault("apply", err)
	}
	var args []any
	for _, w := range writes {
		j, err := json.Marshal(w.value)
		if err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		args = append(args, w.field, j)
	}
	if err := b.rdb.HSet(ctx, b.nsKey("entities"), args...).Err(); err != nil {
		return b.fault("apply", err)
	}
	if err := b.rdb.Set(ctx, b.nsKey("version"), newVersion(), 0).Err(); err != nil {
		return b.fault("apply", err)
	}
	_ = b.rdb.Publish(ctx, b.channel(), "v").Err()
	return b.dir.load(ctx, b)
}

// newVersion is a version that the directory never had. It is random, since one that counts is given again when the server has lost
// its last writes, and a number, since clients of an earlier version count on.
func newVersion() int64 { return rand.Int64N(1 << 62) }

// number gives new queues their numbers. One that is new to the directory only, since the directory was lost, has its number in its own
// slot, where the handles of its conversations begin with it; no other queue gets one of these.
func (b *Broker) number(ctx context.Context, writes []entityWrite) error {
	var greatest int64
	var fresh []*entityWrite
	for i := range writes {
		e, ok := writes[i].value.(queueEntry)
		if !ok || e.Number != "" {
			continue
		}
		had, err := b.rdb.HGet(ctx, b.prefix(e.Settings.Name)+"meta", "qn").Result()
		n, bad := strconv.ParseInt(had, 16, 64)
		switch {
		case err != nil && !isNil(err):
			return err
		case err != nil || bad != nil:
			fresh = append(fresh, &writes[i])
		default:
			e.Number, greatest = had, max(greatest, n)
			writes[i].value = e
		}
	}
	b.dir.mu.RLock()
	for had := range b.dir.byNumber {
		n, _ := strconv.ParseInt(had, 16, 64)
		greatest = max(greatest, n)
	}
	b.dir.mu.RUnlock()
	for _, w := range fresh {
		n, err := b.rdb.Incr(ctx, b.nsKey("queue_number")).Result()
		if err == nil && n <= greatest {
			n, err = b.rdb.IncrBy(ctx, b.nsKey("queue_number"), greatest-n+1).Result()
		}
		if err != nil {
			return err
		}
		e := w.value.(queueEntry)
		e.Number = fmt.Sprintf("%08x", n)
		w.value = e
	}
	return nil
}

// configureQueues writes every queue's settings, services and priority rules into its own slot. It is repeated whole, so an
// apply that was cut short is completed by the next.
func (b *Broker) configureQueues(ctx context.Context) error {
	b.dir.mu.RLock()
	queues := make(map[string]queueEntry, len(b.dir.queues))
	for n, e := range b.dir.queues {
		queues[n] = e
	}
	services := map[string][]string{}
	for _, s := range b.dir.services {
		services[s.Queue] = append(services[s.Queue], s.Name)
	}
	prios := b.dir.prios
	b.dir.mu.RUnlock()
	names := make([]string, 0, len(queues))
	for n := range queues {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		sort.Strings(services[n])
		if err := b.configure(ctx, n, queues[n], services[n], prios); err != nil {
			return err
		}
	}
	return b.writeServices(ctx, services)
}

// writeServices writes which queue serves each service, as far as it is news: a full Redis refuses to write even what it has.
func (b *Broker) writeServices(ctx context.Context, services map[string][]string) error {
	known, err := b.rdb.HGetAll(ctx, b.nsKey("services")).Result()
	if err != nil {
		return b.fault("apply", err)
	}
	for q, list := range services {
		for _, s := range list {
			if known[escape(s)] == escape(q) {
				continue
			}
			if err := b.rdb.HSet(ctx, b.nsKey("services"), escape(s), escape(q)).Err(); err != nil {
				return b.fault("apply", err)
			}
		}
	}
	return nil
}

func (b *Broker) configure(ctx context.Context, name string, e queueEntry, services []string, prios []broker.PriorityRule) error {
	q := e.Settings
	set := []any{
		"name", escape(name), "maxdel", q.MaxDelivery, "poison", poisonLimit(q.Poison), "pscope", q.Poison.Scope[:1],
		"ri", q.Retry.Initial.Milliseconds(), "rm", q.Retry.Max.Milliseconds(), "rx", strconv.FormatFloat(q.Retry.Multiplier, 'f', -1, 64),
		"rj", strconv.FormatFloat(q.Retry.Jitter, 'f', -1, 64), "ttl", q.DefaultTTL.Milliseconds(), "dttl", flag(q.DeadLetterTTL),
		"retention", flag(q.Retention), "archive", flag(q.Archive), "odl", q.OnDeadLetter, "age", q.PriorityAging.Milliseconds(), "notify", b.notified(broker.EventQueueDisabled, name),
		"actq", b.activated(name),
	}
	args := append([]any{b.now(), e.Number, len(set) / 2}, set...)
	args = append(args, len(services))
	for _, s := range services {
		args = append(args, escape(s))
	}
	args = append(args, len(prios))
	for _, r := range prios {
		args = append(args, escape(r.Contract)+"|"+escape(r.Local)+"|"+escape(r.Remote), r.Level)
	}
	_, err := b.repeat(ctx, "configure", b.prefix(name)+"meta", args...)
	return b.fault("configure queue "+name, err)
}

func poisonLimit(p broker.Poison) int {
	if !p.On {
		return 0
	}
	return p.Rollbacks
}

// wakeTargets retries what waited for a service or queue that exists now.
func (b *Broker) wakeTargets(ctx context.Context, defs broker.Definitions) error {
	var targets []string
	for _, s := range defs.Services {
		targets = append(targets, escape(s.Name))
	}
	for _, q := range defs.Queues {
		targets = append(targets, "queue:"+escape(q.Name))
	}
	if len(b.dir.queueNames())*len(targets) > 10_000 { // the transmitter finds them by its own back-off
		return nil
	}
	return b.retryTransmissions(ctx, targets)
}

// restoreDefinitions applies again what this client applied when it is gone from Redis (a flush): acceptance resumes from the
// hosts' files (field case 1).
func (b *Broker) restoreDefinitions(ctx context.Context, rep *broker.KeepReport) error {
	defs := b.keep.applied
	if len(defs.Queues) == 0 {
		return nil
	}
	var meta, entities *redis.IntCmd
	_, err := b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error { // of two slots
		meta, entities = pipe.Exists(ctx, b.prefix(defs.Queues[0].Name)+"meta"), pipe.Exists(ctx, b.nsKey("entities"))
		return nil
	})
	if err != nil || entities.Val() == 1 && (meta.Val() == 1 || b.cluster) { // remake looks after single queues of a Cluster
		return b.fault("keep", err)
	}
	b.dir.mu.Lock()
	b.dir.version, b.dir.queues = "", nil
	b.dir.mu.Unlock()
	b.keepMu.Unlock()
	_, err = b.Apply(ctx, defs, false)
	b.keepMu.Lock()
	if err != nil {
		return err
	}
	for _, q := range defs.Queues {
		rep.Repaired = append(rep.Repaired, q.Name)
		if err := b.tellLost(ctx, q.Name); err != nil {
			return err
		}
	}
	return nil
}

// tellLost writes the event of a queue whose keys were gone.
func (b *Broker) tellLost(ctx context.Context, queue string) error {
	now, err := b.clock(ctx, b.prefix(queue))
	if err != nil {
		return err
	}
	err = b.rdb.XAdd(ctx, &redis.XAddArgs{Stream: b.prefix(queue) + "events", MaxLen: 10000, Approx: true, Values: []any{
		"type", "stream_lost", "queue", escape(queue), "time", now.UnixMilli(), "messages", 0,
	}}).Err()
	return b.fault("keep", err)
}
