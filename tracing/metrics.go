package tracing

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"parley/broker"
	"parley/host"
)

// maxSeries limits how many reasons an application can make series of; what is more is counted as "other".
const maxSeries = 1000

// metrics is the instruments of delivery. A nil metrics does nothing.
type metrics struct {
	attempts metric.Int64Counter
	fuel     metric.Int64Counter
	losses   metric.Int64Counter
	duration metric.Float64Histogram

	series sync.Map // seriesKey → metric.MeasurementOption
	count  atomic.Int64

	mu       sync.Mutex // guards monitors
	monitors func() []host.MonitorInfo
}

type seriesKey struct{ queue, plugin, outcome, reason string }

func (t *Telemetry) setupMetrics(ctx context.Context, e *endpoint, res *resource.Resource) error {
	var readers []sdkmetric.Option
	if e != nil {
		exp, err := e.metricExporter(ctx)
		if err != nil {
			return err
		}
		readers = append(readers, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exp,
			sdkmetric.WithInterval(t.opt.Interval), sdkmetric.WithTimeout(exportTimeout))))
	}
	if r := t.servePage(); r != nil {
		readers = append(readers, sdkmetric.WithReader(r))
	}
	if len(readers) == 0 {
		return nil
	}
	t.meters = sdkmetric.NewMeterProvider(append(readers, sdkmetric.WithResource(res))...)
	meter := t.meters.Meter(scope)
	m := &metrics{}
	var errs [5]error
	m.attempts, errs[0] = meter.Int64Counter("parley.attempts", metric.WithDescription("Delivery attempts by outcome and reason"))
	m.fuel, errs[1] = meter.Int64Counter("parley.fuel", metric.WithDescription("Work units used by guests"))
	m.losses, errs[2] = meter.Int64Counter("parley.lease.losses", metric.WithDescription("Attempts that lost their lock"))
	m.duration, errs[3] = meter.Float64Histogram("messaging.process.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of the handler"),
		metric.WithExplicitBucketBoundaries(.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30))
	errs[4] = t.observe(meter, m)
	t.metrics = m
	return errors.Join(errs[:]...)
}

// attempt counts an attempt that has been settled.
func (m *metrics) attempt(at *attempt) {
	if m == nil {
		return
	}
	ctx := context.Background()
	opt := m.option(seriesKey{at.queue, at.plugin, at.outcome(), at.reason()})
	m.attempts.Add(ctx, 1, opt)
	if at.result.Fuel > 0 {
		m.fuel.Add(ctx, int64(at.result.Fuel), m.option(seriesKey{queue: at.queue, plugin: at.plugin}))
	}
	if !at.ended.IsZero() {
		if at.traced { // an exemplar leads from the histogram to the trace
			ctx = trace.ContextWithSpanContext(ctx, at.context)
		}
		m.duration.Record(ctx, at.ended.Sub(at.start).Seconds(), opt)
	}
}

func (m *metrics) leaseLost(queue string, units int) {
	if m == nil {
		return
	}
	m.losses.Add(context.Background(), int64(units), m.option(seriesKey{queue: queue}))
}

// option returns the attributes of k, made once.
func (m *metrics) option(k seriesKey) metric.MeasurementOption {
	if o, ok := m.series.Load(k); ok {
		return o.(metric.MeasurementOption)
	}
	if k.reason != "" && m.count.Load() >= maxSeries {
		k.reason = "other"
	}
	a := []attribute.KeyValue{system, semconv.MessagingDestinationName(clean(k.queue))}
	add := func(key attribute.Key, v string) {
		if v != "" {
			a = append(a, key.String(clean(v)))
		}
	}
	add("parley.plugin", k.plugin)
	add("parley.outcome", k.outcome)
	add(semconv.ErrorTypeKey, k.reason)
	o, loaded := m.series.LoadOrStore(k, metric.WithAttributeSet(attribute.NewSet(a...)))
	if !loaded {
		m.count.Add(1)
	}
	return o.(metric.MeasurementOption)
}

// Watch has the queue monitors of a host become metrics: pass host.Host.Monitors.
func (t *Telemetry) Watch(monitors func() []host.MonitorInfo) {
	if t.metrics == nil {
		return
	}
	t.metrics.mu.Lock()
	defer t.metrics.mu.Unlock()
	t.metrics.monitors = monitors
}

// states names the counters of a queue for the attribute parley.state.
func states(c *broker.Counts) map[string]int64 {
	return map[string]int64{
		"ready": c.Ready, "locked": c.Locked, "deferred": c.Deferred, "scheduled": c.Scheduled, "retrying": c.Retrying,
		"dead_letter": c.DeadLetter, "transmission": c.Transmission, "transfer_dead_letter": c.TransferDeadLetter, "retained": c.Retained,
	}
}
