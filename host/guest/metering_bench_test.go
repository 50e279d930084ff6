package guest

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
)

// work is one row of the comparison: what a guest does, and how much slower metering may make it.
type work struct {
	language string // of testdata/bench
	name     string
	export   string
	arg      uint64
	most     float64 // metered over bare; 0: no target
}

// works are the rows of the design's table, with what is instructive beside them.
var works = []work{
	{"c", "C tight loop", "hot", 1_000_000, 1.1},
	{"c", "C sum of 10.8 KB", "sum", 0, 0},
	{"c", "C call tree", "tree", 16, 0},
	{"c", "C no-op", "noop", 0, 0},
	{"zig", "Zig tight loop", "hot", 1_000_000, 1.1},
	{"zig", "Zig JSON struct", "jsonStruct", 0, 1.25},
	{"zig", "Zig JSON map", "jsonMap", 0, 1.25},
	{"zig", "Zig no-op", "noop", 0, 0},
	{"as", "AssemblyScript tight loop", "hot", 1_000_000, 1.1},
	{"as", "AssemblyScript sum of 10.8 KB", "sum", 0, 0},
	{"as", "AssemblyScript no-op", "noop", 0, 0},
	{"go", "Go tight loop", "hot", 1_000_000, 2.6},
	{"go", "Go sum of 10.8 KB", "sum", 0, 0},
	{"go", "Go call tree", "tree", 16, 0},
	{"go", "Go JSON struct", "jsonStruct", 0, 1.5},
	{"go", "Go JSON map", "jsonMap", 0, 0},
	{"go", "Go no-op", "noop", 0, 0},
}

// payload is a webhook of 10.8 KB.
const payload = "../../plugins/examples/github-triage/testdata/check_suite__completed.payload.json"

// BenchmarkMetering compares guests bare, metered and with wazero's interruption, in interleaved rounds, and prints a
// table. Run it with -benchtime 25x: one round an iteration.
func BenchmarkMetering(b *testing.B) {
	text, err := os.ReadFile(payload)
	if err != nil {
		b.Fatal(err)
	}
	guests := make(map[string]*[modes]*caller)
	all := make([]*samples, len(works))
	for i, w := range works {
		if guests[w.language] == nil {
			guests[w.language] = newCallers(b, benchGuest(b, w.language), text)
		}
		all[i] = newSamples(b, w, guests[w.language])
	}
	for b.Loop() {
		for _, s := range all {
			s.round()
		}
	}
	b.ReportMetric(0, "ns/op")
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nwork (medians of %d interleaved rounds)\tbare\tmetered\tCloseOnContextDone\tmetered (by minima)\tat most\tverdict\n", len(all[0].took[bare]))
	for _, s := range all {
		s.row(table)
	}
	attempt, call := callCost(b, goGuest(b, "testdata/noop"))
	fmt.Fprintf(table, "Go handler, whole attempt\t%s\t-\t-\t%.2f x\t1.50 x\t%s\n", duration(call), attempt/call, judge(attempt <= 1.5*call, false))
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
}

// samples are the measured times of one row.
type samples struct {
	work
	callers *[modes]*caller
	calls   int // at once, so that bare ones take some milliseconds
	took    [modes][]float64
}

// chunk is how many nanoseconds the calls of one sample take about.
const chunk = 2e6

// newCallers makes an instance of a guest in each mode, with a text to work on.
func newCallers(b *testing.B, wasm, text []byte) *[modes]*caller {
	b.Helper()
	var callers [modes]*caller
	for m := range modes {
		callers[m] = newCaller(b, m, wasm)
		callers[m].input(text)
	}
	return &callers
}

func newSamples(b *testing.B, w work, callers *[modes]*caller) *samples {
	b.Helper()
	s := &samples{work: w, callers: callers}
	for m := range modes {
		s.callers[m].took(w.export, 20, w.arg) // warms up
	}
	once := s.callers[bare].took(w.export, 20, w.arg)
	s.calls = max(1, int(chunk/once))
	s.same(b)
	return s
}

// same fails unless all modes answer the same.
func (s *samples) same(b *testing.B) {
	b.Helper()
	want := s.callers[bare].call(s.export, 1, s.arg)
	for m := range modes {
		if got := s.callers[m].call(s.export, 1, s.arg); got != want || (got == 0 && s.export != "noop") {
			b.Fatalf("%s, %s: got %d, want %d and not 0", s.name, m, got, want)
		}
	}
}

func (s *samples) round() {
	for m := range modes {
		s.took[m] = append(s.took[m], s.callers[m].took(s.export, s.calls, s.arg))
	}
}

// ratio is the median of the ratios to the bare time of the same round.
func (s *samples) ratio(m mode) float64 {
	ratios := make([]float64, len(s.took[m]))
	for i, t := range s.took[m] {
		ratios[i] = t / s.took[bare][i]
	}
	return median(ratios)
}

func (s *samples) row(out io.Writer) {
	ratio := s.ratio(metered)
	least := slices.Min(s.took[metered]) / slices.Min(s.took[bare])
	limit, verdict := "-", "-"
	if s.most > 0 {
		limit = fmt.Sprintf("%.2f x", s.most)
		verdict = judge(ratio <= s.most, least <= s.most)
	}
	fmt.Fprintf(out, "%s\t%s\t%s %.2f x\t%s %.2f x\t%.2f x\t%s\t%s\n", s.name, duration(median(s.took[bare])),
		duration(median(s.took[metered])), ratio, duration(median(s.took[closing])), s.ratio(closing), least, limit, verdict)
}

// judge words a verdict. Minima are the better witness on a busy machine, medians the stricter one.
func judge(byMedian, byMinimum bool) string {
	switch {
	case byMedian:
		return "met"
	case byMinimum:
		return "met by minima only"
	}
	return "MISSED"
}

func median(of []float64) float64 {
	if len(of) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// duration prints nanoseconds with three digits or so.
func duration(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	}
	return fmt.Sprintf("%.2f ms", ns/1e6)
}
