package tracing

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"parley/host"
)

// scope names what makes the spans and metrics.
const scope = "parley"

// Telemetry exports spans and metrics. It is a host.Observer. All methods are safe for concurrent use; those of a
// Telemetry that exports nothing do nothing.
type Telemetry struct {
	opt      Options
	tracer   trace.Tracer // nil: no spans
	spans    *sdktrace.TracerProvider
	meters   *sdkmetric.MeterProvider // nil: no metrics
	metrics  *metrics
	page     *http.Server
	pageAddr string
	trouble  trouble
	limit    uint64 // a trace is kept when the first 63 bits of its id's second half are below; see keeps

	jobs    chan job
	stop    chan struct{} // closed by Shutdown
	stopped chan struct{} // closed when the last span has been made
	once    sync.Once

	full   atomic.Int64 // attempts dropped because jobs was full
	failed atomic.Int64 // spans dropped because they could not be exported
}

// Setup starts what o asks for. Errors: ErrEndpoint. A metrics address that is taken is one warning, no error: a host
// works without its page.
func Setup(ctx context.Context, o Options) (*Telemetry, error) {
	o = o.withDefaults()
	e, err := o.endpoint()
	if err != nil {
		return nil, err
	}
	t := &Telemetry{opt: o, trouble: trouble{log: o.Log}, limit: limitOf(o.Ratio)}
	res := resource.NewSchemaless(semconv.ServiceName(clean(o.Service)), semconv.ServiceNamespace(clean(o.Namespace)))
	if err := t.setupSpans(ctx, e, res); err != nil {
		return nil, err
	}
	if err := t.setupMetrics(ctx, e, res); err != nil {
		return nil, errors.Join(err, t.Shutdown(ctx))
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { t.trouble.say("telemetry trouble", err) }))
	return t, nil
}

// Observer returns t for host.Config, or nil when nothing is exported, so that the host does not even ask.
func (t *Telemetry) Observer() host.Observer {
	if t.tracer == nil && t.metrics == nil {
		return nil
	}
	return t
}

// MetricsAddr returns the address that the metrics page listens on, "" without one.
func (t *Telemetry) MetricsAddr() string { return t.pageAddr }

// Dropped returns how many attempts had no room and how many spans could not be exported.
func (t *Telemetry) Dropped() (noRoom, notExported int64) { return t.full.Load(), t.failed.Load() }

func (t *Telemetry) setupSpans(ctx context.Context, e *endpoint, res *resource.Resource) error {
	var processors []sdktrace.TracerProviderOption
	if e != nil {
		exp, err := e.spanExporter(ctx)
		if err != nil {
			return err
		}
		// It blocks when it is full: then attempts pile up in jobs, where they are dropped and counted.
		processors = append(processors, sdktrace.WithBatcher(&countingExporter{t: t, inner: exp},
			sdktrace.WithBlocking(), sdktrace.WithBatchTimeout(time.Second), sdktrace.WithExportTimeout(exportTimeout)))
	}
	if t.opt.Exporter != nil {
		processors = append(processors, sdktrace.WithSyncer(&countingExporter{t: t, inner: t.opt.Exporter}))
	}
	if len(processors) == 0 {
		return nil
	}
	t.spans = sdktrace.NewTracerProvider(append(processors,
		sdktrace.WithResource(res), sdktrace.WithIDGenerator(idGenerator{}), sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithRawSpanLimits(sdktrace.SpanLimits{
			AttributeValueLengthLimit: -1, // clean has cut them already
			AttributeValueDepthLimit:  sdktrace.DefaultAttributeValueDepthLimit,
			AttributeCountLimit:       128, EventCountLimit: maxEvents, LinkCountLimit: 128,
			AttributePerEventCountLimit: 16, AttributePerLinkCountLimit: 16,
		}))...)
	t.tracer = t.spans.Tracer(scope)
	t.jobs, t.stop, t.stopped = make(chan job, t.opt.Queue), make(chan struct{}), make(chan struct{})
	go t.run()
	return nil
}

// limitOf turns a share into a bound for keeps.
func limitOf(ratio float64) uint64 {
	switch {
	case ratio >= 1:
		return 1 << 63
	case ratio <= 0:
		return 0
	}
	return uint64(ratio * (1 << 63))
}

// keeps decides whether a new trace is kept, from its id alone as OpenTelemetry's own ratio sampler does, so that every
// host decides the same.
func (t *Telemetry) keeps(id trace.TraceID) bool { return binary.BigEndian.Uint64(id[8:])>>1 < t.limit }

// Flush returns when everything that ended before has been exported, or ctx has ended.
func (t *Telemetry) Flush(ctx context.Context) error {
	if t.spans == nil {
		return nil
	}
	done := make(chan struct{})
	select {
	case t.jobs <- job{flushed: done}:
	case <-t.stop:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
	case <-t.stopped:
	case <-ctx.Done():
		return ctx.Err()
	}
	return t.spans.ForceFlush(ctx)
}

// Shutdown exports what has ended and frees everything. It takes no longer than ctx; what is left then is dropped.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errs []error
	t.once.Do(func() {
		if t.page != nil {
			errs = append(errs, t.page.Close())
		}
		if t.spans != nil {
			close(t.stop)
			select {
			case <-t.stopped:
			case <-ctx.Done():
			}
			errs = append(errs, t.spans.Shutdown(ctx))
		}
		if t.meters != nil {
			errs = append(errs, t.meters.Shutdown(ctx))
		}
	})
	return errors.Join(errs...)
}

// trouble logs what goes wrong with exporters, at most a line in troublePause.
type trouble struct {
	log *slog.Logger

	mu   sync.Mutex // guards last and held
	last time.Time
	held int
}

const troublePause = 10 * time.Second

func (t *trouble) say(msg string, err error) {
	t.mu.Lock()
	now := time.Now()
	if !t.last.IsZero() && now.Sub(t.last) < troublePause {
		t.held++
		t.mu.Unlock()
		return
	}
	held := t.held
	t.last, t.held = now, 0
	t.mu.Unlock()
	t.log.Warn(msg, slog.Any("error", err), slog.Int("lines_held_back", held))
}
