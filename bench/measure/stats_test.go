package measure

import (
	"slices"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		in   []float64
		want float64
	}{
		{nil, 0},
		{[]float64{7}, 7},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		before := slices.Clone(tt.in)
		if got := Median(tt.in); got != tt.want {
			t.Errorf("Median(%v) = %v, want %v", before, got, tt.want)
		}
		if !slices.Equal(before, tt.in) {
			t.Errorf("Median reordered its argument %v to %v", before, tt.in)
		}
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[99-i] = time.Duration(i + 1)
	}
	for _, tt := range []struct {
		in   []time.Duration
		p    float64
		want time.Duration
	}{
		{nil, 50, 0},
		{hundred, 50, 50},
		{hundred, 99, 99},
		{hundred, 100, 100},
		{hundred, 0, 1},
		{hundred[:3], 50, 99},
		{[]time.Duration{5}, 99, 5},
	} {
		if got := Percentile(tt.in, tt.p); got != tt.want {
			t.Errorf("p%v of %d samples = %d, want %d", tt.p, len(tt.in), got, tt.want)
		}
	}
}

func TestRatiosArePairedByRound(t *testing.T) {
	got := Ratios([]float64{10, 30, 50, 70}, []float64{5, 10, 0})
	if want := []float64{2, 3}; !slices.Equal(got, want) {
		t.Errorf("Ratios = %v, want %v", got, want)
	}
}

func TestWorst(t *testing.T) {
	ratios := []float64{2, 0.5, 3}
	if got := Worst(ratios, false); got != 0.5 {
		t.Errorf("worst against a lower limit = %v, want 0.5", got)
	}
	if got := Worst(ratios, true); got != 3 {
		t.Errorf("worst against an upper limit = %v, want 3", got)
	}
	if got := Worst(nil, true); got != 0 {
		t.Errorf("worst of nothing = %v, want 0", got)
	}
}
