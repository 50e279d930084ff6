package meter_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/host/guest/meter"
)

// longest is how late a stop may be before a test fails. It is generous, for a loaded machine under the race detector; the
// measured delays are in docs/metering.md.
const longest = 2 * time.Second

func TestDeadlineStopsEveryGuest(t *testing.T) {
	for engine, config := range engines {
		for _, guest := range []string{
			"spin", "tree", "fill", "copy", "division", "host_loop", "host_table_loop", "tail", "grow_loop",
		} {
			t.Run(engine+"/"+guest, func(t *testing.T) {
				i := newInstance(t, config(), stopsWasm)
				_, took, err := i.call(guest, 0, 500_000, 50*time.Millisecond)
				if !errors.Is(err, meter.ErrDeadlineExceeded) {
					t.Fatalf("got error %v, want %v", err, meter.ErrDeadlineExceeded)
				}
				if took > longest {
					t.Errorf("got stopped after %v, want soon after 50ms", took)
				}
				t.Logf("stopped after %v", took)
			})
		}
	}
}

func TestEndlessRecursionStops(t *testing.T) {
	for engine, config := range engines {
		t.Run(engine, func(t *testing.T) {
			i := newInstance(t, config(), stopsWasm)
			_, took, err := i.call("recursion", 0, 500_000, 50*time.Millisecond)
			// Which of the two comes first depends on the size of the runtime's stack.
			if !errors.Is(err, meter.ErrDeadlineExceeded) && (err == nil || !strings.Contains(err.Error(), "stack overflow")) {
				t.Errorf("got error %v, want the deadline or a stack overflow", err)
			}
			if took > longest {
				t.Errorf("got stopped after %v, want soon after 50ms", took)
			}
		})
	}
}

func TestStopFromAnotherGoroutine(t *testing.T) {
	errShutdown := errors.New("shutdown")
	i := newInstance(t, engines["compiler"](), stopsWasm)
	entered := make(chan struct{})
	i.onHost = func() {
		if i.hostCalls == 1 {
			close(entered)
		}
	}
	go func() {
		<-entered
		i.meter.Stop(errShutdown)
	}()
	if _, _, err := i.call("host_loop", 0, 500_000, 0); !errors.Is(err, errShutdown) {
		t.Errorf("got error %v, want %v", err, errShutdown)
	}
}

func TestFuelLimitStopsAtTheSamePointWhateverTheSlice(t *testing.T) {
	for engine, config := range engines {
		for _, slice := range []int64{1, 1000, 7777, 500_000, 1 << 40} {
			i := newInstance(t, config(), stopsWasm)
			used, _, err := i.call("spin", 100_000, slice, 0)
			if !errors.Is(err, meter.ErrFuelExhausted) || used != 100_001 {
				t.Errorf("%s, slice %d: got %d units and %v, want 100001 and %v", engine, slice, used, err, meter.ErrFuelExhausted)
			}
		}
	}
}

func TestUnitsAreExactlyThoseOfTheCostTable(t *testing.T) {
	for engine, config := range engines {
		i := newInstance(t, config(), stopsWasm)
		for _, c := range []struct {
			guest string
			units int64
		}{
			{"thousand", 1 + 1000*8},     // loop; header, three operands, add, tee, less, branch
			{"one_host_call", 505},       // call and host
			{"tree12", 6 + (1<<13-1)*18}, // constant and call; 2^13-1 calls of two operands, if, and two branches' code
		} {
			for _, slice := range []int64{10, 1_000_000} {
				if used, _, err := i.call(c.guest, 0, slice, 0); err != nil || used != c.units {
					t.Errorf("%s, %s, slice %d: got %d units and %v, want %d", engine, c.guest, slice, used, err, c.units)
				}
			}
		}
	}
}

func TestStartFunctionMeetsTheCheckpoint(t *testing.T) {
	for engine, config := range engines {
		i := newInstance(t, config(), startWasm)
		if i.checkpoints == 0 || i.hostCalls != 1 {
			t.Errorf("%s: got %d checkpoints and %d host calls while starting, want some and 1", engine, i.checkpoints, i.hostCalls)
		}
	}
}

func TestHostCallThroughATableCostsAsMuchAsADirectOne(t *testing.T) {
	for guest, turn := range map[string]int{
		"host_loop":       1 + 505 + 1,          // header, call and host, branch
		"host_table_loop": 1 + 1 + 10 + 1 + 505, // header, operand, indirect call, branch, thunk
	} {
		i := newInstance(t, engines["compiler"](), stopsWasm)
		slow := 0
		i.onSlow = func() { slow++ }
		if _, _, err := i.call(guest, 500_000, 1000, 0); !errors.Is(err, meter.ErrFuelExhausted) {
			t.Errorf("%s: got %v, want %v", guest, err, meter.ErrFuelExhausted)
		}
		if got, want := i.hostCalls+slow, 500_000/turn; got < want-1 || got > want+1 {
			t.Errorf("%s: got %d host calls, want %d", guest, got, want)
		}
	}
}

func TestHostMayChargeMore(t *testing.T) {
	i := newInstance(t, engines["compiler"](), stopsWasm)
	i.onHost = func() { i.counter.Set(i.counter.Get() - 1_000_000) }
	if used, _, err := i.call("one_host_call", 0, 1000, 0); err != nil || used != 1_000_505 {
		t.Errorf("got %d units and %v, want 1000505", used, err)
	}
	if used, _, err := i.call("host_loop", 10_000_000, 1000, 0); !errors.Is(err, meter.ErrFuelExhausted) || i.hostCalls != 11 {
		t.Errorf("got %d units, %d host calls and %v, want 10 more host calls and %v", used, i.hostCalls, err, meter.ErrFuelExhausted)
	}
}

// TestOneBulkChargeMayExceedTheSlice: the checkpoint must refill as often as needed, not once.
func TestOneBulkChargeMayExceedTheSlice(t *testing.T) {
	i := newInstance(t, engines["compiler"](), stopsWasm)
	if used, _, err := i.call("fill", 1_000_000, 10, 0); !errors.Is(err, meter.ErrFuelExhausted) || used < 1_000_001 || used > 1_000_001+1<<16 {
		t.Errorf("got %d units and %v, want one fill of 65,536 beyond the limit at most", used, err)
	}
}

// TestStraightLineIsCheckedWithin: 40,000 divisions without a loop or call meet a check every 50,000 units, and together cost
// what they cost. (On the interpreter: the compiler takes seconds for so long a function.)
func TestStraightLineIsCheckedWithin(t *testing.T) {
	line := bytes.Repeat([]byte{0x41, 7, 0x41, 3, 0x6d, 0x1a}, 40_000)
	i := newInstance(t, engines["interpreter"](), oneFunction(line...))
	used, _, err := i.call("f", 0, 10_000, 0)
	if err != nil || used != 40_000*12 {
		t.Errorf("got %d units and %v, want 480000", used, err)
	}
	if i.checkpoints < 9 || i.checkpoints > 11 {
		t.Errorf("got %d checkpoints, want 10", i.checkpoints)
	}
	i = newInstance(t, engines["interpreter"](), oneFunction(line...))
	if used, _, err = i.call("f", 200_000, 10_000, 0); !errors.Is(err, meter.ErrFuelExhausted) || used > 250_000 {
		t.Errorf("got %d units and %v, want at most 50,000 beyond the limit", used, err)
	}
}

// TestLeavingALongBlockEarly: the code behind a block is paid for even when a check within the block was never passed.
func TestLeavingALongBlockEarly(t *testing.T) {
	line := bytes.Repeat([]byte{0x41, 7, 0x41, 3, 0x6d, 0x1a}, 10_000) // 120,000 units, two checks
	code := cat([]byte{0x02, 0x40, 0x41, 1, 0x0d, 0}, line, []byte{0x0b}, line)
	i := newInstance(t, engines["interpreter"](), oneFunction(code...))
	used, _, err := i.call("f", 0, 1_000_000, 0)
	if err != nil || used < 120_000 || used > 175_000 {
		t.Errorf("got %d units and %v, want those of the second line and at most 50,000 of the first", used, err)
	}
	// The condition and the branch not taken fill the first stretch; all of the branch taken comes on top.
	branches := cat([]byte{0x41, 0, 0x04, 0x40}, line, []byte{0x05}, line, []byte{0x0b})
	i = newInstance(t, engines["interpreter"](), oneFunction(branches...))
	if used, _, err = i.call("f", 0, 1_000_000, 0); err != nil || used < 169_000 || used > 170_000 {
		t.Errorf("got %d units and %v for the branch of else, want 120,000 for it and 50,000 for what comes before", used, err)
	}
}

// TestOwnTableCannotGrowBeyondTheLimit: table.grow(1 << 20) of a table of 1 fails, of the rest it succeeds.
func TestOwnTableCannotGrowBeyondTheLimit(t *testing.T) {
	grow := func(n uint64) []byte { // trap unless table.grow answers 1
		return cat([]byte{0xd0, 0x70, 0x41}, leb(n), []byte{0xfc, 0x0f, 0, 0x41, 1, 0x47, 0x04, 0x40, 0x00, 0x0b})
	}
	i := newInstance(t, engines["compiler"](), oneFunction(grow(1<<20)...))
	if _, _, err := i.call("f", 0, 500_000, 0); err == nil {
		t.Error("got growth beyond the limit, want refusal")
	}
	i = newInstance(t, engines["compiler"](), oneFunction(grow(1<<20-1)...))
	if used, _, err := i.call("f", 0, 500_000, 0); err != nil || used < 1<<16-1 {
		t.Errorf("got %v and %d units, want growth for 65,535 units and more", err, used)
	}
}
