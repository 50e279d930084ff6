package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"parley/broker"
)

// Defaults of Options: the one place they are stated.
const (
	DefaultService  = "parley"
	DefaultQueue    = 8192             // ended attempts that wait to become spans
	DefaultInterval = 15 * time.Second // between two exports of metrics by OTLP
)

// exportTimeout limits one export.
const exportTimeout = 10 * time.Second

// ErrEndpoint is returned by Setup for an OTLP endpoint that is no URL of http, https, grpc or grpcs.
var ErrEndpoint = errors.New("tracing: the OTLP endpoint is not usable")

// Options says what is exported and where to. The zero value exports nothing.
type Options struct {
	// OTLP is where spans and metrics go: http://host:4318, https://…, grpc://host:4317 or grpcs://…. "": nowhere.
	OTLP string
	// Prometheus is the address of the metrics page, such as :9464; the path is /metrics. "": none.
	Prometheus string
	// Exporter gets every span too, such as a TreePrinter. nil: none.
	Exporter sdktrace.SpanExporter
	// Service is service.name. Defaults to "parley".
	Service string
	// Namespace is the namespace of the broker; it goes into ids and attributes.
	Namespace string
	// Ratio is the share of new traces that is kept; a producer's decision is followed. Defaults to 1; <0: none.
	Ratio float64
	// Queue is how many ended attempts may wait to become spans; what is more is dropped and counted. Defaults to 8192.
	Queue int
	// Interval between two exports of metrics by OTLP. Defaults to 15 s.
	Interval time.Duration
	// Queues returns the queues whose counts become metrics, at most once in 5 s. nil: none are.
	Queues func(context.Context) ([]broker.QueueInfo, error)
	// Log gets trouble of exporters, at most a line in 10 s. Defaults to slog.Default().
	Log *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Service == "" {
		o.Service = DefaultService
	}
	if o.Ratio == 0 {
		o.Ratio = 1
	}
	if o.Queue <= 0 {
		o.Queue = DefaultQueue
	}
	if o.Interval <= 0 {
		o.Interval = DefaultInterval
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o
}

// endpoint is Options.OTLP taken apart.
type endpoint struct {
	url  *url.URL
	grpc bool
	tls  bool
}

func (o *Options) endpoint() (*endpoint, error) {
	if o.OTLP == "" {
		return nil, nil
	}
	u, err := url.Parse(o.OTLP)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEndpoint, err)
	}
	e := &endpoint{url: u}
	switch u.Scheme {
	case "http":
	case "https":
		e.tls = true
	case "grpc":
		e.grpc = true
	case "grpcs":
		e.grpc, e.tls = true, true
	default:
		return nil, fmt.Errorf("%w: %q must begin with http://, https://, grpc:// or grpcs://", ErrEndpoint, o.OTLP)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("%w: %q names no host", ErrEndpoint, o.OTLP)
	}
	return e, nil
}
