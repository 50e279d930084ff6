package meter_test

import (
	"errors"
	"testing"
	"time"

	"parley/host/guest/meter"
)

func TestAccount(t *testing.T) {
	now := time.Unix(1000, 0)
	errShutdown := errors.New("shutdown")
	cases := []struct {
		name         string
		limit, slice int64
		deadline     time.Time
		cause        error
		begin        int64   // first counter
		used         []int64 // at each checkpoint
		refills      []int64 // counter after each checkpoint
		stop         error   // at the last checkpoint
	}{
		{name: "without limits each checkpoint gives a slice", slice: 100, begin: 100, used: []int64{101, 205}, refills: []int64{100, 100}},
		{name: "one charge may take several slices", slice: 100, begin: 100, used: []int64{1000}, refills: []int64{100}},
		{name: "a limit below the slice is given at once", limit: 30, slice: 100, begin: 30, used: []int64{31}, refills: []int64{-1}, stop: meter.ErrFuelExhausted},
		{name: "the last slice ends at the limit", limit: 150, slice: 100, begin: 100, used: []int64{101, 151}, refills: []int64{49, -1}, stop: meter.ErrFuelExhausted},
		{name: "using exactly the limit is allowed", limit: 150, slice: 100, begin: 100, used: []int64{150}, refills: []int64{0}},
		{name: "one charge beyond the limit stops", limit: 150, slice: 100, begin: 100, used: []int64{10_000}, refills: []int64{-9900}, stop: meter.ErrFuelExhausted},
		{name: "before the deadline it goes on", slice: 100, deadline: now.Add(1), begin: 100, used: []int64{101}, refills: []int64{100}},
		{name: "at the deadline it stops", slice: 100, deadline: now, begin: 100, used: []int64{101}, refills: []int64{-1}, stop: meter.ErrDeadlineExceeded},
		{name: "fuel is named before time, as it is the same on every run", limit: 100, slice: 100, deadline: now, begin: 100, used: []int64{101}, refills: []int64{-1}, stop: meter.ErrFuelExhausted},
		{name: "a cause given to Stop comes first", limit: 100, slice: 100, cause: errShutdown, begin: 100, used: []int64{101}, refills: []int64{-1}, stop: errShutdown},
		{name: "a slice of nothing is one unit", slice: 0, begin: 1, used: []int64{2}, refills: []int64{1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var m meter.Meter
			m.Stop(errors.New("of an earlier call"))
			counter := m.Begin(c.limit, c.slice, c.deadline)
			if counter != c.begin {
				t.Errorf("got %d to begin with, want %d", counter, c.begin)
			}
			if c.cause != nil {
				m.Stop(c.cause)
				m.Stop(errors.New("too late: the first cause counts"))
			}
			var err error
			for i, used := range c.used {
				counter -= used - m.Used(counter)
				if counter, err = m.Checkpoint(counter, now); counter != c.refills[i] {
					t.Errorf("checkpoint %d: got %d, want %d", i, counter, c.refills[i])
				}
				if m.Used(counter) != used {
					t.Errorf("checkpoint %d: got %d used, want %d", i, m.Used(counter), used)
				}
				if last := i == len(c.used)-1; !last && err != nil || last && !errors.Is(err, c.stop) {
					t.Errorf("checkpoint %d: got error %v, want %v at the last", i, err, c.stop)
				}
			}
		})
	}
}
