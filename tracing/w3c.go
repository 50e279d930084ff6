package tracing

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Names of the message properties that carry the context, as W3C Trace Context spells them.
const (
	Traceparent = "traceparent"
	Tracestate  = "tracestate"
)

var w3c propagation.TraceContext

// extract returns the context in props, which is not valid when there is none. The names are found in any case, since
// producers of other languages write Traceparent too.
func extract(props map[string]string) trace.SpanContext {
	if len(props) == 0 {
		return trace.SpanContext{}
	}
	parent, ok := lookup(props, Traceparent)
	if !ok {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{Traceparent: parent}
	if state, ok := lookup(props, Tracestate); ok {
		carrier[Tracestate] = state
	}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), carrier))
}

func lookup(props map[string]string, name string) (string, bool) {
	if v, ok := props[name]; ok {
		return v, true
	}
	for k, v := range props {
		if strings.EqualFold(k, name) {
			return v, true
		}
	}
	return "", false
}

// inject returns a copy of props that carries sc in place of any context they had.
func inject(props map[string]string, sc trace.SpanContext) map[string]string {
	out := make(map[string]string, len(props)+2)
	for k, v := range props {
		if !strings.EqualFold(k, Traceparent) && !strings.EqualFold(k, Tracestate) {
			out[k] = v
		}
	}
	out[Traceparent] = traceparent(sc)
	if s := sc.TraceState().String(); s != "" {
		out[Tracestate] = s
	}
	return out
}

// traceparent formats sc, which must be valid.
func traceparent(sc trace.SpanContext) string {
	flags := "-00"
	if sc.IsSampled() {
		flags = "-01"
	}
	return "00-" + sc.TraceID().String() + "-" + sc.SpanID().String() + flags
}
