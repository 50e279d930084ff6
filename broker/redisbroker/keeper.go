package redisbroker

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/broker"
)

// keepState is what the keeper of this client remembers between passes.
type keepState struct {
	next    map[string]int64 // prefix → next due ms as far as known
	bad     map[string]*trouble
	last    time.Time // of the last full sweep
	applied broker.Definitions
	hintMu  sync.Mutex // guards hints and anew
	hints   map[string]int64
	anew    bool // look at every queue
}

const (
	sweepEvery = 5 * time.Second
	dueAtOnce  = 500 // of each kind in one script
	dueHead    = 7   // values in front of the names in the reply of due
	atOnce     = 1   // ms of an instant that is over on every clock
)

// hintDue notes that something of prefix is due at ms: published by the script that arranged it.
func (b *Broker) hintDue(prefix string, ms int64) {
	b.keep.hintMu.Lock()
	defer b.keep.hintMu.Unlock()
	if b.keep.hints == nil {
		b.keep.hints = map[string]int64{}
	}
	if old, ok := b.keep.hints[prefix]; !ok || ms < old {
		b.keep.hints[prefix] = ms
	}
}

// forgetDues has the next pass look at every queue: what was known to be due may be what the server has lost, and hints may have been missed.
func (b *Broker) forgetDues() {
	b.keep.hintMu.Lock()
	defer b.keep.hintMu.Unlock()
	b.keep.hints, b.keep.anew = nil, true
}

// Keep implements broker.Keeper. Queues with something due, as far as is known, are looked at; all of them every sweepEvery.
func (b *Broker) Keep(ctx context.Context) (broker.KeepReport, error) {
	b.keepMu.Lock()
	defer b.keepMu.Unlock()
	if b.keep.next == nil {
		b.keep.next = map[string]int64{}
	}
	b.hub.mu.Lock()
	b.hub.start()
	b.hub.mu.Unlock()
	var rep broker.KeepReport
	if err := b.dir.fresh(ctx, b); err != nil {
		return rep, err
	}
	if err := b.restoreDefinitions(ctx, &rep); err != nil {
		return rep, err
	}
	now, err := b.clockWithin(ctx, b.nsKey(""), 0)
	if err != nil {
		return rep, err
	}
	err = b.keepQueues(ctx, b.dueQueues(now), &rep)
	rep.Next = b.nextDue()
	return rep, err
}

// dueQueues returns the prefixes to look at now.
func (b *Broker) dueQueues(now time.Time) []string {
	b.keep.hintMu.Lock()
	for p, ms := range b.keep.hints {
		if old, ok := b.keep.next[p]; !ok || old == 0 || ms < old {
			b.keep.next[p] = ms
		}
	}
	anew := b.keep.anew
	b.keep.hints, b.keep.anew = nil, false
	b.keep.hintMu.Unlock()
	sweep := anew || b.opt.Now != nil || now.Sub(b.keep.last) >= sweepEvery
	if sweep {
		b.keep.last = now
	}
	var out []string
	for _, name := range b.dir.queueNames() {
		p := b.prefix(name)
		due := b.keep.next[p]
		if sweep || due != 0 && due <= now.UnixMilli() {
			out = append(out, p)
		}
	}
	return out
}

func (b *Broker) nextDue() time.Time {
	var t int64
	for _, ms := range b.keep.next {
		if ms != 0 && (t == 0 || ms < t) {
			t = ms
		}
	}
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(t)
}

// promote makes what is due deliverable, without a host: receive, peek and counts are right by themselves.
func (b *Broker) promote(ctx context.Context, prefix string) error {
	var rep broker.KeepReport
	_, _, err := b.dueAll(ctx, prefix, &rep)
	return err
}

// dueAll calls due until nothing more is due, reaps the dead readers it names, and re-arms repeating timers.
func (b *Broker) dueAll(ctx context.Context, prefix string, rep *broker.KeepReport) (next int64, promoted int, err error) {
	for {
		a, err := b.repeatStrings(ctx, "due", prefix+"meta", b.now(), b.direct(), dueAtOnce)
		if err != nil {
			return 0, promoted, err
		}
		if len(a) < dueHead {
			return 0, promoted, nil
		}
		next, _ = strconv.ParseInt(a[0], 10, 64)
		n, _ := strconv.Atoi(a[1])
		promoted += n
		dead, _ := strconv.Atoi(a[3])
		now := msTime(a[4])
		for _, name := range a[dueHead : dueHead+dead] {
			if err := b.reap(ctx, prefix, name, rep); err != nil {
				return next, promoted, err
			}
		}
		if err := b.rearm(ctx, prefix, now, a[dueHead+dead:]); err != nil {
			return next, promoted, err
		}
		if a[5] == "1" {
			if err := b.replan(ctx, prefix, now); err != nil {
				return next, promoted, err
			}
		}
		if a[2] != "1" && dead == 0 {
			return next, promoted, nil
		}
	}
}

func (b *Broker) direct() string {
	if b.cluster {
		return ""
	}
	return "d"
}

// reap counts and frees what a dead reader held.
func (b *Broker) reap(ctx context.Context, prefix, name string, rep *broker.KeepReport) error {
	lock := strings.HasPrefix(name, tokenReader)
	a, err := b.repeatStrings(ctx, "reap", prefix+"meta", b.now(), name, b.direct(), flag(lock))
	if err != nil {
		return err
	}
	for i := 1; i+3 < len(a); i += 4 {
		d := broker.DeadAttempt{Queue: b.queueOf(prefix), Reader: name, Uncertain: a[i+3] == "uncertain"}
		d.Message = b.decodeHead(a[i], a[i+1])
		n, _, _ := strings.Cut(a[i+2], ",")
		d.Message.DeliveryCount, _ = strconv.Atoi(n)
		switch a[i+3] {
		case "bury":
			d.Consequence = broker.DeadLettered
		case "trip":
			d.Consequence = broker.QueueTurned
		default:
			d.Consequence = broker.RolledBack
		}
		rep.DeadReaders = append(rep.DeadReaders, d)
	}
	return nil
}

// decodeHead decodes a header without its body.
func (b *Broker) decodeHead(ref, head string) broker.Message {
	m, _ := b.decode(ref, head, make([]byte, max(0, bodyLen(head))))
	m.Body = nil
	return m
}

// locksAtOnce is how many locks of a queue one call looks at for holders that are no readers.
const locksAtOnce = 1000

// checkGroups repairs lanes that lost their consumer group (field case 1 C), and frees what names a reader that is none.
func (b *Broker) checkGroups(ctx context.Context, prefix string, rep *broker.KeepReport) error {
	a, err := b.repeatStrings(ctx, "ghosts", prefix+"meta", b.now(), locksAtOnce)
	if err != nil {
		return err
	}
	switch a[0] {
	case "NOENT":
		return b.remake(ctx, b.queueOf(prefix), rep)
	case "NOGROUP":
		rep.Repaired = append(rep.Repaired, b.queueOf(prefix))
		return b.rebuild(ctx, prefix)
	}
	return nil
}

// remake configures a queue whose keys are gone although the directory has it: a master of a Cluster came back empty.
func (b *Broker) remake(ctx context.Context, queue string, rep *broker.KeepReport) error {
	if err := b.dir.load(ctx, b); err != nil { // it may have been deleted just now
		return err
	}
	b.dir.mu.RLock()
	e, ok := b.dir.queues[queue]
	prios := b.dir.prios
	var due []broker.Schedule
	for _, s := range b.dir.schedule {
		if b.dir.services[s.To].Queue == queue {
			due = append(due, s)
		}
	}
	b.dir.mu.RUnlock()
	if !ok {
		return nil
	}
	if err := b.configure(ctx, queue, e, b.servicesOf(queue), prios); err != nil {
		return err
	}
	if err := b.armQueueSchedules(ctx, queue, due); err != nil {
		return err
	}
	rep.Repaired = append(rep.Repaired, queue)
	return b.tellLost(ctx, queue)
}

func (b *Broker) rebuild(ctx context.Context, prefix string) error {
	_, err := b.repeat(ctx, "rebuild", prefix+"meta", b.now())
	return b.fault("rebuild "+b.queueOf(prefix), err)
}
