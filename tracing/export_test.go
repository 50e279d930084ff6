package tracing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"parley/broker"
	"parley/host"
)

func TestOneBadStringCostsNoOtherSpan(t *testing.T) { // field case 39 trace-utf8-batch
	for _, over := range []string{"http", "grpc"} {
		t.Run(over, func(t *testing.T) {
			r := &receiver{}
			url := ""
			if over == "http" {
				url = r.serveHTTP(t)
			} else {
				url = r.serveGRPC(t)
			}
			b := setup(t, func(o *Options) { o.OTLP, o.Exporter = url, nil })
			for i := range 511 {
				b.deliver([]broker.Message{message(fmt.Sprint("m", i), 0, nil)}, host.Result{}, broker.Committed)
			}
			bad := message("bad", 0, nil)
			bad.Type = "type \xff\xfe"
			cutText := "你好"[:5]
			span := b.Attempt(&host.Attempt{Queue: "q\xff\xfe", Plugin: "p\xff", Number: 1, Unit: &broker.Unit{Messages: []broker.Message{bad}}, Start: epoch})
			res := failed(broker.ReasonHandlerError, "text \xff\xfe "+cutText)
			res.Trap, res.Logs = "trap \xff", []host.LogLine{{Text: "line \xff", Stream: "\xfe"}}
			res.Spans = []host.GuestSpan{{Name: "own \xff", Start: epoch, End: epoch}}
			span.Ran(&res)
			span.Settled(host.Settled{Consequence: broker.DeadLettered, Start: epoch, End: epoch})
			if err := b.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			attempts, marked := 0, false
			for _, s := range r.all() {
				if strings.HasPrefix(s.Name, "process ") {
					attempts++
				}
				text := fmt.Sprint(s)
				if !utf8.ValidString(text) {
					t.Errorf("span %q is not UTF-8", s.Name)
				}
				if strings.Contains(text, "secret") {
					t.Errorf("span %q carries a body", s.Name)
				}
				marked = marked || s.Name == "process q\uFFFD" && strings.Contains(s.Status.Message, "\uFFFD")
			}
			if attempts != 512 || !marked {
				t.Errorf("got %d attempts, the bad one marked: %v; want 512, true", attempts, marked)
			}
			if _, failed := b.Dropped(); failed != 0 {
				t.Errorf("dropped: got %d, want 0", failed)
			}
		})
	}
}

func TestCleanCutsBetweenCharacters(t *testing.T) {
	for name, in := range map[string]string{
		"two bytes": strings.Repeat("é", maxText), "three bytes": "a" + strings.Repeat("好", maxText), "four bytes": "ab" + strings.Repeat("🙂", maxText),
		"no UTF-8 at all": strings.Repeat("\x80", 2*maxText), "exactly at the limit": strings.Repeat("x", maxText),
	} {
		got := clean(in)
		if !utf8.ValidString(got) {
			t.Errorf("%s: not valid UTF-8", name)
		}
		if name != "no UTF-8 at all" && (len(got) > maxText || strings.Contains(got, "\uFFFD")) {
			t.Errorf("%s: got %d bytes, a character cut: %v", name, len(got), strings.Contains(got, "\uFFFD"))
		}
		if name == "exactly at the limit" && got != in {
			t.Errorf("%s: it was changed", name)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("你好", "\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		got := clean(strings.Repeat(a+b, 1+maxText/(len(a+b)+1)))
		if !utf8.ValidString(got) {
			t.Errorf("clean made %q", got)
		}
	})
}

func TestABrokenExporterCostsDeliveryNothing(t *testing.T) {
	r := &receiver{block: make(chan struct{})}
	b := setup(t, func(o *Options) { o.OTLP, o.Exporter, o.Queue = r.serveHTTP(t), nil, 64 })
	began := time.Now()
	const attempts = 20_000
	for i := range attempts {
		b.deliver([]broker.Message{message(fmt.Sprint("m", i), 0, nil)}, host.Result{}, broker.Committed)
	}
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("%d attempts took %v while the exporter hangs", attempts, d)
	}
	if full, _ := b.Dropped(); full == 0 || full > attempts {
		t.Errorf("dropped for lack of room: got %d, want some", full)
	}
	close(r.block)
	r.mu.Lock()
	r.block = nil
	r.mu.Unlock()
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	full, _ := b.Dropped()
	if got := count(r.all(), "process orders"); int64(got)+full != attempts {
		t.Errorf("exported %d and dropped %d, want %d together", got, full, attempts)
	}
}

func TestAFullDiskAtTheCollectorIsCounted(t *testing.T) {
	r := &receiver{refuse: true}
	b := setup(t, func(o *Options) { o.OTLP, o.Exporter = r.serveHTTP(t), nil })
	for i := range 100 {
		b.deliver([]broker.Message{message(fmt.Sprint("m", i), 0, nil)}, host.Result{}, broker.Committed)
	}
	if err := b.Flush(t.Context()); err != nil {
		t.Errorf("Flush: %v", err)
	}
	if _, failed := b.Dropped(); failed != 300 { // attempt, guest and settle
		t.Errorf("not exported: got %d, want 300", failed)
	}
	if got := b.log.count("spans could not be exported"); got != 1 {
		t.Errorf("lines: got %d, want 1", got)
	}
}

func count(spans []*otlp.Span, name string) (n int) {
	for _, s := range spans {
		if s.Name == name {
			n++
		}
	}
	return n
}

func page(t *testing.T, b *bundle) string {
	t.Helper()
	resp, err := http.Get("http://" + b.MetricsAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestMetricsPage(t *testing.T) {
	b := setup(t, func(o *Options) {
		o.Exporter, o.Prometheus = nil, "127.0.0.1:0"
		o.Queues = func(context.Context) ([]broker.QueueInfo, error) {
			return []broker.QueueInfo{{
				QueueSettings: broker.QueueSettings{Name: "orders"}, Status: broker.QueueOff,
				Counts: broker.Counts{Ready: 3, DeadLetter: 2},
			}}, nil
		}
	})
	b.Watch(func() []host.MonitorInfo {
		return []host.MonitorInfo{{Queue: "orders", Plugin: "stock", Slots: 4, Running: 1, Idle: 2, Busy: 1, ReadersStarted: 9}}
	})
	b.deliver([]broker.Message{message("m1", 0, nil)}, host.Result{Fuel: 10}, broker.Committed)
	b.deliver([]broker.Message{message("m2", 0, nil)}, failed(broker.ReasonTrap, "x"), broker.RolledBack)
	b.Observer().LeaseLost("orders", "r", 3)
	got := page(t, b)
	for _, want := range []string{
		`parley_attempts_total{error_type="Trap",messaging_destination_name="orders",messaging_system="parley",`, `parley_outcome="committed"`,
		`parley_fuel_total{`, `parley_lease_losses_total{`, `messaging_process_duration_seconds_count{`,
		`parley_state="dead_letter"} 2`, `parley_queue_off{`, `parley_queue_conversations{`, `parley_readers{`, `parley_readers_started_total{`,
		`parley_state="busy"} 1`, `parley_telemetry_dropped_total{`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not show %s\n%s", want, got)
		}
	}
}

func TestATakenMetricsPortIsOneWarning(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := setup(t, func(o *Options) { o.Prometheus = l.Addr().String() })
	if got := b.log.count("there is no metrics page"); got != 1 {
		t.Errorf("warnings: got %d, want 1", got)
	}
	b.deliver([]broker.Message{message("m1", 0, nil)}, host.Result{}, broker.Committed)
	b.named("process orders")
}

func TestReasonsMakeALimitedNumberOfSeries(t *testing.T) {
	b := setup(t, func(o *Options) { o.Exporter, o.Prometheus = nil, "127.0.0.1:0" })
	for i := range 3 * maxSeries {
		b.deliver([]broker.Message{message("m", 0, nil)}, failed(fmt.Sprint("reason ", i), "x"), broker.RolledBack)
	}
	if got := b.metrics.count.Load(); got > maxSeries+10 {
		t.Errorf("series: got %d, want about %d", got, maxSeries)
	}
}

func TestEndpointsAreChecked(t *testing.T) {
	for _, url := range []string{"localhost:4317", "ftp://x", "http://", "http://a b"} {
		if _, err := Setup(t.Context(), Options{OTLP: url}); !errors.Is(err, ErrEndpoint) {
			t.Errorf("%s: got %v, want ErrEndpoint", url, err)
		}
	}
}

func TestTreePrinter(t *testing.T) {
	tree := &TreePrinter{Attributes: []string{"parley.attempt", "parley.outcome", "error.type"}}
	b := setup(t, func(o *Options) { o.Exporter = tree })
	m := broker.Outgoing{MessageID: "m1"}
	b.Produce("orders", &m).End(broker.Receipt{MessageID: "m1"}, nil)
	res := failed(broker.ReasonTrap, "unreachable")
	res.Logs = []host.LogLine{{Time: epoch, Text: "about to fail", Stream: "log"}}
	b.deliver([]broker.Message{message("m1", 0, m.Properties)}, res, broker.RolledBack)
	b.deliver([]broker.Message{message("m1", 1, m.Properties)}, host.Result{}, broker.Committed)
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids := tree.Traces("m1")
	if len(ids) != 2 {
		t.Fatalf("traces of m1: got %d, want 2", len(ids))
	}
	var out strings.Builder
	for _, id := range ids {
		if err := tree.Print(&out, id); err != nil {
			t.Fatal(err)
		}
	}
	shape := make([]string, 0, 16)
	for _, l := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		l, _, _ = strings.Cut(l, "  attempt=")
		shape = append(shape, strings.TrimRight(strings.NewReplacer("µs", "", "ms", "", "ns", "").Replace(l), "0123456789. "))
	}
	t.Log(out.String())
	for _, want := range []string{"send orders", "└─ process orders", "about to fail", "├─ guest stock", "└─ settle orders", "link to producer", "link to previous attempt"} {
		if !strings.Contains(strings.Join(shape, "\n"), want) {
			t.Errorf("the tree does not show %q", want)
		}
	}
}

func TestIDsAreTheSameOnEveryHostAndDifferOtherwise(t *testing.T) {
	m := message("m1", 0, nil)
	other := m
	other.SequenceNumber++
	seen := map[trace.SpanID]string{}
	for name, i := range map[string]ids{
		"attempt 1": attemptIDs("n", "q", &m, 1), "attempt 2": attemptIDs("n", "q", &m, 2), "another queue": attemptIDs("n", "r", &m, 1),
		"another namespace": attemptIDs("o", "q", &m, 1), "another message": attemptIDs("n", "q", &other, 1),
	} {
		if o, ok := seen[i.span]; ok {
			t.Errorf("%s and %s share a span id", name, o)
		}
		seen[i.span] = name
	}
	elsewhere := message("m1", 5, map[string]string{"event": "push"}) // the counts of the next host, other properties
	if a, b := attemptIDs("n", "q", &m, 1), attemptIDs("n", "q", &elsewhere, 1); a != b {
		t.Errorf("the same attempt has two identities: %v and %v", a, b)
	}
}

func BenchmarkObservedAttempt(b *testing.B) {
	tel, err := Setup(b.Context(), Options{Exporter: tracetest.NewNoopExporter()})
	if err != nil {
		b.Fatal(err)
	}
	m := []broker.Message{message("m1", 0, map[string]string{Traceparent: producer})}
	u := &broker.Unit{Messages: m}
	b.ReportAllocs()
	for b.Loop() {
		s := tel.Attempt(&host.Attempt{Queue: "q", Plugin: "p", Number: 1, Unit: u, Start: epoch})
		_ = s.Traceparent()
		s.Ran(&host.Result{})
		s.Settled(host.Settled{})
	}
}

func TestHistogramsLeadToTraces(t *testing.T) {
	b := setup(t, func(o *Options) { o.Prometheus = "127.0.0.1:0" })
	tp, _ := b.deliver([]broker.Message{message("m1", 0, nil)}, host.Result{}, broker.Committed)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.MetricsAddr()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/openmetrics-text")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := parse(t, tp).TraceID().String(); !strings.Contains(string(body), want) {
		t.Errorf("the page shows no exemplar of trace %s:\n%s", want, body)
	}
}
