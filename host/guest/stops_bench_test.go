package guest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"parley/broker"
)

// endless are guests that never end by themselves, by the body that has the guest of a language do it.
var endless = []struct {
	name     string
	language string
	body     string
	most     time.Duration // for a stop with a deadline of 50 ms
}{
	{"C spin", "c", "l", 60 * time.Millisecond},
	{"C call tree of depth 34", "c", "t", 60 * time.Millisecond},
	{"C fills of 1 MiB", "c", "f", 60 * time.Millisecond},
	{"C chain of divisions", "c", "d", 60 * time.Millisecond},
	{"C cheap host calls", "c", "h", 60 * time.Millisecond},
	{"C recursion", "c", "r", 110 * time.Millisecond},
	{"C recursion without a shadow stack", "c", "p", 110 * time.Millisecond},
	{"Go spin", "go", "l", 60 * time.Millisecond},
	{"Go call tree of depth 34", "go", "t", 60 * time.Millisecond},
	{"Go cheap host calls", "go", "h", 60 * time.Millisecond},
	{"Go recursion", "go", "r", 110 * time.Millisecond},
}

// endlessLimits lets a guest make host calls until its deadline.
func endlessLimits(d time.Duration) Limits { return Limits{Time: d, HostCalls: 1 << 40} }

// stopRow is one row of the table: times in nanoseconds, and what their median may be; 0: it is there for comparison.
type stopRow struct {
	name string
	took []float64
	most time.Duration
}

// BenchmarkStops measures when guests are stopped that would never end, and how long a garbage collection of the host
// takes beside them, and prints a table. Run it with -benchtime 25x: one round an iteration.
func BenchmarkStops(b *testing.B) {
	const rounds = 5 // of garbage collections with a small heap, before the Go guest is there
	rows := []*stopRow{
		{"runtime.GC() alone, for comparison", nil, 0},
		{"runtime.GC() beside 2 C spins", nil, 10 * time.Millisecond},
		{"native Go until 50 ms have passed, for comparison", nil, 0},
	}
	alone, beside, native := rows[0], rows[1], rows[2]
	spins := load(b, benchGuest(b, "c"), Options{})
	for range rounds {
		alone.took = append(alone.took, collected(b, spins, 0)...)
		beside.took = append(beside.took, collected(b, spins, 2)...)
	}
	single, singles := singleStops(b)
	crowd, crowds := crowdStops(b)
	for b.Loop() {
		native.took = append(native.took, nativeSpin(50*time.Millisecond))
		single()
		crowd()
	}
	b.ReportMetric(0, "ns/op")
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nstop (%d interleaved rounds)\tmedian\tleast\tgreatest\tmedian at most\tverdict\n", len(native.took))
	for _, r := range slices.Concat(rows, singles, crowds) {
		r.print(table)
	}
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
}

// singleStops measures each endless guest alone, with a limit of 50 ms.
func singleStops(b *testing.B) (round func(), rows []*stopRow) {
	plugins := make(map[string]*Plugin)
	for _, e := range endless {
		if plugins[e.language] == nil {
			plugins[e.language] = load(b, benchGuest(b, e.language), Options{Limits: endlessLimits(50 * time.Millisecond)})
		}
		rows = append(rows, &stopRow{name: e.name + ", limit 50 ms", most: e.most})
	}
	return func() {
		for i, e := range endless {
			rows[i].took = append(rows[i].took, stopped(b, plugins[e.language], e.body))
		}
	}, rows
}

// crowdStops measures 16 guests at once, with a limit of 200 ms.
func crowdStops(b *testing.B) (round func(), rows []*stopRow) {
	var plugins []*Plugin
	for _, language := range []string{"c", "go"} {
		plugins = append(plugins, load(b, benchGuest(b, language), Options{Limits: endlessLimits(200 * time.Millisecond)}))
		rows = append(rows, &stopRow{name: "last of 16 spins at once, " + language + ", limit 200 ms", most: 300 * time.Millisecond})
	}
	return func() {
		for i, p := range plugins {
			rows[i].took = append(rows[i].took, crowdStopped(b, p, 16))
		}
	}, rows
}

func (r *stopRow) print(table *tabwriter.Writer) {
	m := median(r.took)
	limit, verdict := "-", "-"
	if r.most > 0 {
		limit, verdict = r.most.String(), judge(m <= float64(r.most), slices.Min(r.took) <= float64(r.most))
	}
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.name, duration(m), duration(slices.Min(r.took)), duration(slices.Max(r.took)), limit, verdict)
}

// nativeSpin is how long a loop runs that looks at the clock until d has passed: it says how much the machine takes away.
func nativeSpin(d time.Duration) float64 {
	start := time.Now()
	for time.Since(start) < d {
	}
	return float64(time.Since(start))
}

// stopped runs an attempt that must be stopped, and returns how long it ran.
func stopped(t testing.TB, p *Plugin, body string) float64 {
	inv := invocation(plain(body))
	start := time.Now()
	r := p.Run(context.Background(), inv)
	took := time.Since(start)
	if s := r.Settlement; s.Verdict != broker.VerdictRollback {
		t.Errorf("%q ended with verdict %d (%s)", body, s.Verdict, s.FailText)
	}
	return float64(took)
}

// crowdStopped is the time of the slowest of n spinning attempts that start together, with instances that are there
// already: starting many at once is no matter of stopping.
func crowdStopped(t testing.TB, p *Plugin, n int) float64 {
	for range n {
		in, err := p.instantiate(context.Background(), nil, mono()+int64(leastStart), nil)
		if err != nil {
			t.Fatal(err)
		}
		p.pool.put(in)
	}
	took := make([]float64, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { took[i] = stopped(t, p, "l") })
	}
	wg.Wait()
	return slices.Max(took)
}

// collected is the times of garbage collections of the host while n guests spin.
func collected(t testing.TB, p *Plugin, n int) (took []float64) {
	ctx, cancel := context.WithCancel(context.Background())
	end := spinning(t, ctx, p, n)
	for range 4 {
		time.Sleep(time.Millisecond) // the guests are at it again
		start := time.Now()
		runtime.GC()
		took = append(took, float64(time.Since(start)))
	}
	cancel()
	end()
	return took[1:] // the first one may have found a guest that had not begun
}

// spinning has n guests spin until ctx ends; end waits for them.
func spinning(t testing.TB, ctx context.Context, p *Plugin, n int) (end func()) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if r := p.Run(ctx, invocation(plain("l"))); r.Settlement.Verdict != broker.VerdictRelease {
				t.Errorf("a guest that spins ended with %+v", r.Settlement)
			}
		})
	}
	for p.running.Load() < int64(n) {
		runtime.Gosched()
	}
	return wg.Wait
}
