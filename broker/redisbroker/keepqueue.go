package redisbroker

import (
	"context"
	"errors"
	"sync"
	"time"

	"parley/broker"
)

// keepAtOnce is how many queues are kept side by side: fewer than the client has connections, so that readers get theirs.
const keepAtOnce = 16

// Pauses before a queue is kept again that could not be, from the second failure in a row on.
const (
	keepPauseFirst = time.Second
	keepPauseMost  = 30 * time.Second
)

// trouble is a queue that could not be kept.
type trouble struct {
	fails int
	text  string    // of the last failure
	until time.Time // by the monotonic clock: it rests until then
}

// kept is what keeping one queue gave.
type kept struct {
	prefix string
	rep    broker.KeepReport
	next   int64 // when something of it is due, in ms; 0: never
	err    error
}

// keepQueues keeps house for each of those queues on its own feet, some at a time: one that fails holds up no other, is said once a change,
// and rests longer each time. An error is returned only when none could be kept.
func (b *Broker) keepQueues(ctx context.Context, prefixes []string, rep *broker.KeepReport) error {
	var todo []string
	for _, p := range prefixes {
		if t := b.keep.bad[p]; t == nil || time.Now().After(t.until) {
			todo = append(todo, p)
		}
	}
	work, done := make(chan string), make(chan kept, keepAtOnce)
	var workers sync.WaitGroup
	for range min(keepAtOnce, len(todo)) {
		workers.Go(func() {
			for p := range work {
				k := kept{prefix: p}
				k.next, k.err = b.keepQueue(ctx, p, &k.rep)
				done <- k
			}
		})
	}
	go func() {
		for _, p := range todo {
			work <- p
		}
		close(work)
		workers.Wait()
		close(done)
	}()
	var failed []error
	for k := range done {
		rep.Promoted += k.rep.Promoted
		rep.Transmitted += k.rep.Transmitted
		rep.DeadReaders = append(rep.DeadReaders, k.rep.DeadReaders...)
		rep.Repaired = append(rep.Repaired, k.rep.Repaired...)
		b.keep.next[k.prefix] = k.next
		b.note(k.prefix, k.err)
		if k.err != nil {
			failed = append(failed, k.err)
		}
	}
	if len(failed) == 0 || len(failed) < len(todo) {
		return nil
	}
	if len(failed) > 1 && ctx.Err() == nil { // mostly one cause
		failed = failed[:1]
	}
	return errors.Join(failed...)
}

// note remembers whether a queue could be kept, and says so when that changed.
func (b *Broker) note(prefix string, err error) {
	t := b.keep.bad[prefix]
	if err == nil {
		if t != nil {
			b.opt.Log("housekeeping of a queue works again", "queue", b.queueOf(prefix))
			delete(b.keep.bad, prefix)
		}
		return
	}
	if t == nil {
		t = &trouble{}
		if b.keep.bad == nil {
			b.keep.bad = map[string]*trouble{}
		}
		b.keep.bad[prefix] = t
	}
	if t.text != err.Error() {
		t.text = err.Error()
		b.opt.Log("housekeeping of a queue fails; the others go on", "queue", b.queueOf(prefix), "error", err)
	}
	if t.fails++; t.fails > 1 {
		t.until = time.Now().Add(min(keepPauseFirst<<min(t.fails-2, 10), keepPauseMost))
	}
}

// keepQueue does everything one queue has due: promotions, dead readers (its sub-queues' too), transmissions. It returns when something of it
// is due next.
func (b *Broker) keepQueue(ctx context.Context, prefix string, rep *broker.KeepReport) (next int64, err error) {
	sooner := func(at int64) {
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	for _, sub := range []string{"", "d:", "t:"} {
		at, promoted, err := b.dueAll(ctx, prefix+sub, rep)
		if sub == "" {
			rep.Promoted += promoted
		}
		if err != nil {
			return next, err
		}
		sooner(at)
	}
	if err := b.checkGroups(ctx, prefix, rep); err != nil {
		return next, err
	}
	at, err := b.transmitAll(ctx, prefix, rep)
	sooner(at)
	return next, err
}
