package meter_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"parley/host/guest/meter"
)

// BenchmarkStop measures how late a guest is stopped after a deadline of 50 ms. Run it with -benchtime 25x.
func BenchmarkStop(b *testing.B) {
	for _, guest := range []string{
		"spin", "tree", "fill", "copy", "division", "host_loop", "host_table_loop", "tail", "grow_loop",
	} {
		b.Run(guest, func(b *testing.B) {
			var late []time.Duration
			for b.Loop() {
				i := newInstance(b, engines["compiler"](), stopsWasm)
				_, took, err := i.call(guest, 0, 500_000, 50*time.Millisecond)
				if !errors.Is(err, meter.ErrDeadlineExceeded) {
					b.Fatal(err)
				}
				late = append(late, took-50*time.Millisecond)
			}
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2].Microseconds()), "median-µs-late")
			b.ReportMetric(float64(late[len(late)-1].Microseconds()), "max-µs-late")
		})
	}
}

// BenchmarkGuest measures what metering costs where it costs most: a loop-free call tree and a tight loop.
func BenchmarkGuest(b *testing.B) {
	for _, guest := range []string{"tree12", "thousand", "one_host_call"} {
		for _, m := range []struct {
			mode    string
			prepare func([]byte) ([]byte, error)
		}{{"plain", plain}, {"metered", metered}} {
			b.Run(guest+"/"+m.mode, func(b *testing.B) {
				i := newPrepared(b, engines["compiler"](), stopsWasm, m.prepare)
				f := i.module.ExportedFunction(guest)
				for b.Loop() {
					if i.counter != nil {
						i.counter.Set(uint64(i.meter.Begin(0, 500_000, time.Time{})))
					}
					if _, err := f.Call(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkRewrite measures the rewriter on all modules of the specification tests together.
func BenchmarkRewrite(b *testing.B) {
	size, all := 0, scripts()
	for b.Loop() {
		size = 0
		for _, s := range all {
			for _, c := range s.Commands {
				if _, err := meter.Rewrite(c.Module, meter.Options{}); err == nil {
					size += len(c.Module)
				}
			}
		}
	}
	b.SetBytes(int64(size))
}
