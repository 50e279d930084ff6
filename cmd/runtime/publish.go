package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"parley/broker"
	"parley/host"
)

// How a host's monitors are published: what changed every second, a sign of life when nothing did, and now and then all, in case
// Redis lost them.
const (
	publishEvery = time.Second
	publishAlive = 5 * time.Second
	publishAll   = time.Minute
	publishTTL   = 15 * time.Second
)

// publisher tells operators what the queue monitors of this host do.
type publisher struct {
	hosts    broker.Hosts
	name     string
	monitors func() []host.MonitorInfo
	log      *slog.Logger

	told  map[string]broker.MonitorReport // by queue: as it was published last
	whole time.Time                       // when all was published
	last  time.Time                       // when anything was
	mute  bool                            // the last try failed, and said so
}

// start publishes until the function it returns is called, which waits and says good-bye.
func (p *publisher) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a draining host is still one to look at
	var done sync.WaitGroup
	done.Go(func() { p.run(ctx) })
	return func() {
		cancel()
		done.Wait()
		bye, end := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer end()
		_ = p.hosts.ForgetHost(bye, p.name) // it expires by itself if this fails
	}
}

func (p *publisher) run(ctx context.Context) {
	tick := time.NewTicker(publishEvery)
	defer tick.Stop()
	for {
		p.once(ctx, time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// once publishes what changed since the last time.
func (p *publisher) once(ctx context.Context, now time.Time) {
	whole := now.Sub(p.whole) >= publishAll
	r := broker.HostReport{Name: p.name}
	for _, info := range p.monitors() {
		m := newMonitorReport(&info)
		if before, known := p.told[m.Queue]; whole || !known || before != m {
			r.Monitors = append(r.Monitors, m)
		}
	}
	if len(r.Monitors) == 0 && now.Sub(p.last) < publishAlive {
		return
	}
	if err := p.hosts.PublishHost(ctx, r, publishTTL); err != nil {
		if !p.mute && ctx.Err() == nil {
			p.log.Warn("the queue monitors cannot be published", slog.Any("error", err))
		}
		p.mute, p.whole = true, time.Time{}
		return
	}
	if whole {
		p.told, p.whole = make(map[string]broker.MonitorReport, len(r.Monitors)), now
	}
	for _, m := range r.Monitors {
		p.told[m.Queue] = m
	}
	p.mute, p.last = false, now
}

func newMonitorReport(i *host.MonitorInfo) broker.MonitorReport {
	s := i.Settled
	return broker.MonitorReport{
		Queue: i.Queue, Plugin: i.Plugin, State: string(i.State), Off: i.Off, Paused: i.Paused, MaxReaders: i.MaxReaders,
		Readers: i.Readers, Slots: i.Slots, Running: i.Running, Waiting: i.Waiting,
		ReadersStarted: i.ReadersStarted, ReadersStopped: i.ReadersStopped, LimitReached: i.LimitReached, Errors: i.Errors,
		LeaseLosses: i.LeaseLosses, Units: i.Units, Committed: s[broker.Committed],
		RolledBack:   s[broker.RolledBack] + s[broker.QueueTurned] + s[broker.Refused],
		DeadLettered: s[broker.DeadLettered], Lost: s[broker.Lost],
		Recess: i.Recess, RecessEnds: stamp(i.RecessEnds), LastError: i.LastError, LastActivated: stamp(i.LastActivated), LastEmpty: stamp(i.LastEmpty),
	}
}

// stamp leaves out of an instant what does not survive its storage, so that it compares equal.
func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Second)
}
