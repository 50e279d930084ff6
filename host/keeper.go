package host

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/broker"
)

// Pauses between passes of housekeeping.
const (
	keepAtMost  = time.Second           // a timer fires at most so late on an idle namespace
	keepAtLeast = 20 * time.Millisecond // passes are no closer than this, whatever is due
)

// keeper makes passes of housekeeping: one a second, or when the next thing is due.
type keeper struct {
	h      *Host
	sooner chan struct{} // holds one: next came closer

	idle int // passes in a row that did nothing although something was said to be due

	mu   sync.Mutex // guards next
	next time.Time  // when the next pass is planned, by this host's clock
}

func (k *keeper) init(h *Host) { k.h, k.sooner = h, make(chan struct{}, 1) }

// due says that something is due at an instant of the broker's clock. It never blocks.
func (k *keeper) due(at time.Time) {
	local := k.h.clock.local(at)
	k.mu.Lock()
	closer := local.Before(k.next)
	if closer {
		k.next = local
	}
	k.mu.Unlock()
	if closer {
		select {
		case k.sooner <- struct{}{}:
		default:
		}
	}
}

// plan sets the time of the next pass.
func (k *keeper) plan(at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.next = at
}

// left returns how long until the next pass, given when the last one ended.
func (k *keeper) left(last time.Time) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	return max(k.next.Sub(now), last.Add(keepAtLeast).Sub(now), 0)
}

// run is the loop of k.
func (k *keeper) run(ctx context.Context) {
	if k.h.cfg.Keeper == nil {
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last time.Time
	var pauses backoff
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.sooner:
			timer.Reset(k.left(last))
			continue
		case <-timer.C:
		}
		k.pass(ctx, &pauses)
		last = time.Now()
		timer.Reset(k.left(last))
	}
}

// pass makes one pass and plans the next.
func (k *keeper) pass(ctx context.Context, pauses *backoff) {
	k.plan(time.Now().Add(keepAtMost)) // what due says meanwhile counts
	rep, err := k.once(ctx)
	switch {
	case err == nil:
		pauses.reset()
		k.follow(&rep)
	case ctx.Err() == nil:
		if errors.Is(err, broker.ErrUnknownEntity) {
			k.h.restore.ask()
		}
		k.h.quiet.say(slog.LevelError, "keep", 1, "housekeeping failed", slog.Any("error", err))
		k.plan(time.Now().Add(pauses.pause()))
	}
}

// follow plans the pass for what rep says is due next. Where the clocks differ it may be due here and not there: then
// passes thin out rather than spin.
func (k *keeper) follow(rep *broker.KeepReport) {
	if rep.Promoted+rep.Transmitted+len(rep.DeadReaders) > 0 {
		k.idle = 0
	}
	if rep.Next.IsZero() {
		return
	}
	if k.h.clock.local(rep.Next).After(time.Now()) {
		k.idle = 0
		k.due(rep.Next)
		return
	}
	k.plan(time.Now().Add(min(keepAtLeast<<min(k.idle, 10), keepAtMost)))
	k.idle++
}

// once makes one pass and reports what it did: the spans of attempts that died with their host, and one line a repaired
// queue.
func (k *keeper) once(ctx context.Context) (broker.KeepReport, error) {
	rep, err := k.h.cfg.Keeper.Keep(ctx)
	o := k.h.cfg.Observer
	dead := make(map[string]int)
	for i := range rep.DeadReaders {
		a := &rep.DeadReaders[i]
		if o != nil {
			o.Died(a)
		}
		dead[a.Queue]++
	}
	for q, n := range dead {
		k.h.cfg.Log.Warn("attempts died with their host", slog.String("queue", q), slog.Int("attempts", n))
		k.h.wake(q)
	}
	for _, q := range rep.Repaired {
		k.h.cfg.Log.Warn("the stream of a queue was lost and has been made again", slog.String("queue", q))
		k.h.wake(q)
	}
	return rep, err
}
