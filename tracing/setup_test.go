package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"parley/broker"
	"parley/host"
)

// lines is a log for tests. Safe for concurrent use.
type lines struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.buf.String(), part)
}

// bundle is a Telemetry that keeps its spans in memory.
type bundle struct {
	*Telemetry
	t    *testing.T
	kept *tracetest.InMemoryExporter
	log  *lines
}

func setup(t *testing.T, edit func(*Options)) *bundle {
	t.Helper()
	b := &bundle{t: t, kept: tracetest.NewInMemoryExporter(), log: &lines{}}
	o := Options{Namespace: "shop", Exporter: b.kept, Log: slog.New(slog.NewTextHandler(b.log, nil))}
	if edit != nil {
		edit(&o)
	}
	var err error
	if b.Telemetry, err = Setup(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = b.Shutdown(ctx) // what a broken exporter says at its end is its own
	})
	return b
}

func (b *bundle) spans() tracetest.SpanStubs {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	if err := b.Flush(ctx); err != nil {
		b.t.Fatal(err)
	}
	return b.kept.GetSpans()
}

// named returns the only span with that name.
func (b *bundle) named(name string) tracetest.SpanStub {
	b.t.Helper()
	var found []tracetest.SpanStub
	for _, s := range b.spans() {
		if s.Name == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		b.t.Fatalf("spans named %q: got %d, want 1 of %v", name, len(found), names(b.spans()))
	}
	return found[0]
}

func names(spans tracetest.SpanStubs) (n []string) {
	for _, s := range spans {
		n = append(n, s.Name)
	}
	return n
}

func value(s tracetest.SpanStub, key string) string {
	for _, a := range s.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// message is a message that has failed n times.
func message(id string, n int, props map[string]string) broker.Message {
	return broker.Message{SequenceNumber: 7, MessageID: id, DeliveryCount: n, Properties: props, Body: []byte("secret body")}
}

// deliver goes through one attempt at messages and returns its traceparent and what was staged.
func (b *bundle) deliver(messages []broker.Message, res host.Result, c broker.Consequence) (string, []broker.Effect) {
	b.t.Helper()
	n := 0
	for _, m := range messages {
		n = max(n, m.DeliveryCount)
	}
	o := b.Observer()
	span := o.Attempt(&host.Attempt{
		Queue: "orders", Plugin: "stock", Digest: "d1", Reader: "h:1:1", Number: n + 1,
		Unit: &broker.Unit{Messages: messages}, Start: epoch,
	})
	tp := span.Traceparent()
	span.Ran(&res)
	effects := res.Settlement.Effects
	span.Settled(host.Settled{Consequence: c, Start: time.Now(), End: time.Now()})
	return tp, effects
}

func failed(reason, text string) host.Result {
	return host.Result{Settlement: broker.Settlement{Verdict: broker.VerdictRollback, FailReason: reason, FailText: text}}
}

// receiver is an OTLP collector of traces, over HTTP and gRPC.
type receiver struct {
	collector.UnimplementedTraceServiceServer

	mu     sync.Mutex // guards the rest
	spans  []*otlp.Span
	refuse bool
	block  chan struct{} // non-nil: requests wait for it
}

// Export implements the gRPC service.
func (r *receiver) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	block := r.block
	r.mu.Unlock()
	if block != nil {
		<-block
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse {
		return nil, fmt.Errorf("the disk is full")
	}
	for _, rs := range req.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			r.spans = append(r.spans, ss.Spans...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// ServeHTTP implements the HTTP service.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.URL.Path != "/v1/traces" {
		w.WriteHeader(http.StatusOK) // metrics
		return
	}
	in := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if in, err = gzip.NewReader(req.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	body, err := io.ReadAll(in)
	var msg collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &msg) // refuses strings that are not UTF-8, as a collector does
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, err := r.Export(req.Context(), &msg); err != nil {
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
	}
}

func (r *receiver) all() []*otlp.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*otlp.Span(nil), r.spans...)
}

// serveHTTP and serveGRPC return the endpoint of r.
func (r *receiver) serveHTTP(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	return s.URL
}

func (r *receiver) serveGRPC(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	collector.RegisterTraceServiceServer(s, r)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return "grpc://" + l.Addr().String()
}

var _ sdktrace.SpanExporter = (*TreePrinter)(nil)
