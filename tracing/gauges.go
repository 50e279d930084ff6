package tracing

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"parley/broker"
	"parley/host"
)

// gauges is the instruments that are read when somebody looks.
type gauges struct {
	t *Telemetry
	m *metrics

	messages, conversations, off, readers, running, instances, ready metric.Int64ObservableGauge
	started, limited, turns, dropped                                 metric.Int64ObservableCounter

	mu    sync.Mutex // guards the rest
	at    time.Time
	known []broker.QueueInfo
}

// queuesFresh is how long the counts of queues are used again, and queuesLimit how long asking for them may take.
const (
	queuesFresh = 5 * time.Second
	queuesLimit = 3 * time.Second
)

// observe registers the gauges.
func (t *Telemetry) observe(meter metric.Meter, m *metrics) error {
	g := &gauges{t: t, m: m}
	var errs []error
	gauge := func(name, what string) metric.Int64ObservableGauge {
		i, err := meter.Int64ObservableGauge(name, metric.WithDescription(what))
		errs = append(errs, err)
		return i
	}
	counter := func(name, what string) metric.Int64ObservableCounter {
		i, err := meter.Int64ObservableCounter(name, metric.WithDescription(what))
		errs = append(errs, err)
		return i
	}
	g.messages = gauge("parley.queue.messages", "Messages by state")
	g.conversations = gauge("parley.queue.conversations", "Conversation endpoints, open and ended; open ones that only grow are never ended")
	g.off = gauge("parley.queue.off", "1 while the queue is off")
	g.readers = gauge("parley.readers", "Slots of this host's readers")
	g.running = gauge("parley.attempts.running", "Attempts that run on this host")
	g.instances = gauge("parley.instances", "Plugin instances by state")
	g.ready = gauge("parley.queue.ready", "Messages ready at the last turn of this host")
	g.started = counter("parley.readers.started", "Readers started")
	g.limited = counter("parley.readers.limited", "Starts that max_queue_readers refused")
	g.turns = counter("parley.turns", "Calls that settled and received")
	g.dropped = counter("parley.telemetry.dropped", "Attempts and spans that were not exported")
	_, err := meter.RegisterCallback(g.read, g.messages, g.conversations, g.off, g.readers, g.running, g.instances, g.ready, g.started, g.limited, g.turns, g.dropped)
	return errors.Join(append(errs, err)...)
}

// read is called by whoever collects.
func (g *gauges) read(ctx context.Context, o metric.Observer) error {
	g.m.mu.Lock()
	monitors := g.m.monitors
	g.m.mu.Unlock()
	if monitors != nil {
		for _, i := range monitors() {
			g.readMonitor(&i, o)
		}
	}
	for _, q := range g.queues(ctx) {
		g.readQueue(&q, o)
	}
	noRoom, failed := g.t.Dropped()
	o.ObserveInt64(g.dropped, noRoom, metric.WithAttributes(attribute.String("parley.reason", "queue_full")))
	o.ObserveInt64(g.dropped, failed, metric.WithAttributes(attribute.String("parley.reason", "export_failed")))
	return nil
}

func (g *gauges) readMonitor(i *host.MonitorInfo, o metric.Observer) {
	set := metric.WithAttributeSet(attribute.NewSet(semconv.MessagingDestinationName(clean(i.Queue)), attribute.String("parley.plugin", clean(i.Plugin))))
	o.ObserveInt64(g.readers, int64(i.Slots), set)
	o.ObserveInt64(g.running, int64(i.Running), set)
	o.ObserveInt64(g.ready, i.Waiting, set)
	o.ObserveInt64(g.started, i.ReadersStarted, set)
	o.ObserveInt64(g.limited, i.LimitReached, set)
	o.ObserveInt64(g.turns, i.Turns, set)
	o.ObserveInt64(g.instances, int64(i.Idle), set, metric.WithAttributes(attribute.String("parley.state", "idle")))
	o.ObserveInt64(g.instances, int64(i.Busy), set, metric.WithAttributes(attribute.String("parley.state", "busy")))
}

func (g *gauges) readQueue(q *broker.QueueInfo, o metric.Observer) {
	name := semconv.MessagingDestinationName(clean(q.Name))
	for state, n := range states(&q.Counts) {
		o.ObserveInt64(g.messages, n, metric.WithAttributes(name, attribute.String("parley.state", state)))
	}
	o.ObserveInt64(g.conversations, q.Open, metric.WithAttributes(name, attribute.String("parley.state", "open")))
	o.ObserveInt64(g.conversations, q.Ended, metric.WithAttributes(name, attribute.String("parley.state", "ended")))
	var off int64
	if !q.Status.CanReceive() {
		off = 1
	}
	o.ObserveInt64(g.off, off, metric.WithAttributes(name))
}

// queues returns what is known of the queues, asked again when it is stale. An error leaves out the queues, not the rest.
func (g *gauges) queues(ctx context.Context) []broker.QueueInfo {
	if g.t.opt.Queues == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now(); g.known == nil || now.Sub(g.at) >= queuesFresh {
		ctx, cancel := context.WithTimeout(ctx, queuesLimit)
		defer cancel()
		infos, err := g.t.opt.Queues(ctx)
		if err != nil {
			g.t.trouble.say("the counts of the queues could not be read", err)
		}
		g.known, g.at = infos, now
	}
	return g.known
}
