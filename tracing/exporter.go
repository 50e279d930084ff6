package tracing

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// countingExporter counts the spans that could not be exported, and says so once in a while. It never fails, so that the
// SDK has nothing to print.
type countingExporter struct {
	t     *Telemetry
	inner sdktrace.SpanExporter
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *countingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.inner.ExportSpans(ctx, spans); err != nil {
		e.t.failed.Add(int64(len(spans)))
		e.t.trouble.say("spans could not be exported and are dropped", err)
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter.
func (e *countingExporter) Shutdown(ctx context.Context) error { return e.inner.Shutdown(ctx) }

// spanExporter makes the OTLP exporter of spans. It connects later, and again and again, by itself.
func (e *endpoint) spanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if e.grpc {
		opts := []otlptracegrpc.Option{otlptracegrpc.WithEndpoint(e.url.Host), otlptracegrpc.WithTimeout(exportTimeout)}
		if !e.tls {
			opts = append(opts, otlptracegrpc.WithInsecure())
		}
		return otlptracegrpc.New(ctx, opts...)
	}
	opts := []otlptracehttp.Option{otlptracehttp.WithEndpoint(e.url.Host), otlptracehttp.WithURLPath(e.path("traces")), otlptracehttp.WithTimeout(exportTimeout)}
	if !e.tls {
		opts = append(opts, otlptracehttp.WithInsecure())
	}
	return otlptracehttp.New(ctx, opts...)
}

// metricExporter makes the OTLP exporter of metrics.
func (e *endpoint) metricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	if e.grpc {
		opts := []otlpmetricgrpc.Option{otlpmetricgrpc.WithEndpoint(e.url.Host), otlpmetricgrpc.WithTimeout(exportTimeout)}
		if !e.tls {
			opts = append(opts, otlpmetricgrpc.WithInsecure())
		}
		return otlpmetricgrpc.New(ctx, opts...)
	}
	opts := []otlpmetrichttp.Option{otlpmetrichttp.WithEndpoint(e.url.Host), otlpmetrichttp.WithURLPath(e.path("metrics")), otlpmetrichttp.WithTimeout(exportTimeout)}
	if !e.tls {
		opts = append(opts, otlpmetrichttp.WithInsecure())
	}
	return otlpmetrichttp.New(ctx, opts...)
}

// path returns the URL path of a signal below the endpoint, as the OTLP specification builds it.
func (e *endpoint) path(signal string) string {
	return e.url.JoinPath("v1", signal).EscapedPath()
}
