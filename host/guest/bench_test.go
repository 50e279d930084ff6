package guest

import (
	"math"
	"strings"
	"testing"
	"time"
)

// BenchmarkCallOverhead reports what an attempt adds to the shortest possible guest call, and to the Go no-op, of which an
// attempt is to cost at most 1.5 times a bare call (design, section 8). The fastest of many short interleaved rounds counts,
// so a busy machine does not decide; no test asks for it, for a race detector or a slow machine would.
func BenchmarkCallOverhead(b *testing.B) {
	for name, wasm := range map[string][]byte{"empty": wat(b, "empty"), "go_noop": goGuest(b, "testdata/noop")} {
		b.Run(name, func(b *testing.B) {
			run, bare := callCost(b, wasm)
			b.ReportMetric(run, "ns/attempt")
			b.ReportMetric(bare, "ns/bare")
			b.ReportMetric(run/bare, "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// callCost is the time in nanoseconds of an attempt, and of a bare wazero call in the same instance with the same host
// functions behind it.
func callCost(t testing.TB, wasm []byte) (run, bare float64) {
	const rounds, calls = 200, 500
	p := load(t, wasm, Options{})
	inv := invocation(plain(strings.Repeat("x", 256)))
	in, err := p.instantiate(t.Context(), inv, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.close()
	run, bare = math.MaxFloat64, math.MaxFloat64
	for range rounds {
		start := time.Now()
		for range calls {
			if r := p.Run(t.Context(), inv); r.Settlement.Verdict != 0 {
				t.Fatal(r)
			}
		}
		run = min(run, float64(time.Since(start))/calls)
		start = time.Now()
		in.begin(t.Context(), 0, 0)
		in.inv = inv
		for range calls {
			in.hostCalls = 0
			if err := in.handle.CallWithStack(&in.call, in.stack[:]); err != nil {
				t.Fatal(err)
			}
		}
		bare = min(bare, float64(time.Since(start))/calls)
		in.end()
	}
	return run, bare
}
