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

// BenchmarkStops measures when guests are stopped that would never end, and how long a garbage collection of the host
// waits for them, and prints a table. Run it with -benchtime 25x: one round an iteration.
func BenchmarkStops(b *testing.B) {
	const limit, crowdLimit, crowdMost, pauseMost = 50 * time.Millisecond, 200 * time.Millisecond, 300 * time.Millisecond, 10 * time.Millisecond
	plugins := make(map[string]*Plugin)
	crowds, spins := make(map[string]*Plugin), make(map[string]*Plugin)
	for _, language := range []string{"c", "go"} {
		plugins[language] = load(b, benchGuest(b, language), Options{Limits: endlessLimits(limit)})
		crowds[language] = load(b, benchGuest(b, language), Options{Limits: endlessLimits(crowdLimit)})
		spins[language] = load(b, benchGuest(b, language), Options{})
	}
	stops := make([][]float64, len(endless))
	crowd := make(map[string][]float64)
	pauses := make(map[string][]float64)
	for b.Loop() {
		for i, e := range endless {
			stops[i] = append(stops[i], stopped(b, plugins[e.language], e.body))
		}
		for language, p := range crowds {
			crowd[language] = append(crowd[language], crowdStopped(b, p, 16))
			pauses[language] = append(pauses[language], collected(b, spins[language], 2)...)
		}
	}
	b.ReportMetric(0, "ns/op")
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nstop (%d interleaved rounds)\tmedian\tleast\tgreatest\tmedian at most\tverdict\n", len(stops[0]))
	for i, e := range endless {
		printStops(table, e.name+", limit 50 ms", stops[i], e.most)
	}
	for _, c := range []struct{ language, name string }{{"c", "C"}, {"go", "Go"}} {
		printStops(table, fmt.Sprintf("last of 16 %s spins at once, limit 200 ms", c.name), crowd[c.language], crowdMost)
		printStops(table, fmt.Sprintf("runtime.GC() beside 2 %s spins", c.name), pauses[c.language], pauseMost)
	}
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
}

func printStops(table *tabwriter.Writer, name string, took []float64, most time.Duration) {
	m := median(took)
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%v\t%s\n", name, duration(m), duration(slices.Min(took)), duration(slices.Max(took)),
		most, judge(m <= float64(most)))
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

// crowdStopped is the time of the slowest of n spinning attempts that start together.
func crowdStopped(t testing.TB, p *Plugin, n int) float64 {
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
