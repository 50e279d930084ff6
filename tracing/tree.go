package tracing

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TreePrinter keeps spans in memory and prints them as trees of text. Safe for concurrent use.
type TreePrinter struct {
	// Attributes are those printed beside a span, in this order, where it has them. Defaults to DefaultTreeAttributes.
	Attributes []string
	// Max is how many spans are kept, the oldest going first. Defaults to 10,000.
	Max int

	mu    sync.Mutex // guards spans
	spans []sdktrace.ReadOnlySpan
}

// DefaultTreeAttributes are what a TreePrinter prints beside a span.
var DefaultTreeAttributes = []string{"parley.attempt", "parley.outcome", "error.type", "parley.error", "parley.trap", "parley.fuel"}

// ExportSpans implements sdktrace.SpanExporter.
func (p *TreePrinter) ExportSpans(_ context.Context, spans []sdktrace.ReadOnlySpan) error {
	most := p.Max
	if most == 0 {
		most = 10_000
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spans = append(p.spans, spans...)
	if n := len(p.spans) - most; n > 0 {
		p.spans = slices.Delete(p.spans, 0, n)
	}
	return nil
}

// Shutdown implements sdktrace.SpanExporter. What is kept stays.
func (p *TreePrinter) Shutdown(context.Context) error { return nil }

// Traces returns the ids of the kept traces in which a span of a message with that id is, oldest first; "" : all.
func (p *TreePrinter) Traces(messageID string) []trace.TraceID {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []trace.TraceID
	for _, s := range p.sorted() {
		id := s.SpanContext().TraceID()
		if slices.Contains(found, id) || messageID != "" && valueOf(s, "messaging.message.id") != messageID {
			continue
		}
		found = append(found, id)
	}
	return found
}

// Print writes the tree of one trace to w: a line a span with its duration and attributes, links and log lines below it.
func (p *TreePrinter) Print(w io.Writer, id trace.TraceID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var spans []sdktrace.ReadOnlySpan
	known := make(map[trace.SpanID]bool)
	for _, s := range p.sorted() {
		if s.SpanContext().TraceID() == id {
			spans = append(spans, s)
			known[s.SpanContext().SpanID()] = true
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "trace %s\n", id)
	for _, s := range spans {
		if !known[s.Parent().SpanID()] {
			p.branch(&b, spans, s, "", "")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sorted returns the kept spans by their start, parents before what they enclose. The caller holds mu.
func (p *TreePrinter) sorted() []sdktrace.ReadOnlySpan {
	s := slices.Clone(p.spans)
	slices.SortStableFunc(s, func(a, b sdktrace.ReadOnlySpan) int {
		if c := a.StartTime().Compare(b.StartTime()); c != 0 {
			return c
		}
		return b.EndTime().Compare(a.EndTime())
	})
	return s
}

// branch prints s, with first before its own line and rest before those below.
func (p *TreePrinter) branch(b *strings.Builder, all []sdktrace.ReadOnlySpan, s sdktrace.ReadOnlySpan, first, rest string) {
	fmt.Fprintf(b, "%s%s  %s%s\n", first, s.Name(), roundDuration(s.EndTime().Sub(s.StartTime())), p.details(s))
	var below []sdktrace.ReadOnlySpan
	for _, c := range all {
		if c.Parent().SpanID() == s.SpanContext().SpanID() {
			below = append(below, c)
		}
	}
	bar := rest
	if len(below) > 0 {
		bar += "│ "
	} else {
		bar += "  "
	}
	for _, l := range s.Links() {
		fmt.Fprintf(b, "%s  link to %s span %s in trace %s\n", bar, linkName(l), l.SpanContext.SpanID(), l.SpanContext.TraceID())
	}
	for _, e := range s.Events() {
		fmt.Fprintf(b, "%s  %s: %s\n", bar, e.Name, eventText(e))
	}
	for i, c := range below {
		if i == len(below)-1 {
			p.branch(b, all, c, rest+"└─ ", rest+"   ")
		} else {
			p.branch(b, all, c, rest+"├─ ", rest+"│  ")
		}
	}
}

func (p *TreePrinter) details(s sdktrace.ReadOnlySpan) string {
	keys := p.Attributes
	if keys == nil {
		keys = DefaultTreeAttributes
	}
	var b strings.Builder
	for _, k := range keys {
		if v := valueOf(s, k); v != "" {
			fmt.Fprintf(&b, "  %s=%s", strings.TrimPrefix(k, "parley."), v)
		}
	}
	if s.Status().Code == codes.Error {
		b.WriteString("  ERROR")
	}
	return b.String()
}

func valueOf(s sdktrace.ReadOnlySpan, key string) string {
	for _, a := range s.Attributes() {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

func linkName(l sdktrace.Link) string {
	for _, a := range l.Attributes {
		if a.Key == "parley.link" {
			return strings.ReplaceAll(a.Value.String(), "_", " ")
		}
	}
	return "another"
}

func eventText(e sdktrace.Event) string {
	texts := make([]string, 0, 1)
	for _, a := range e.Attributes {
		if a.Key == attribute.Key("log.message") {
			texts = append(texts, a.Value.String())
		}
	}
	return strings.Join(texts, " ")
}

// roundDuration keeps three digits or so, for people.
func roundDuration(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(100 * time.Nanosecond)
}
