package measure

import (
	"slices"
	"time"
)

// Median returns the middle value, or the mean of the two middle ones; 0 for none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Percentile returns the smallest sample that at least p percent of all samples
// do not exceed (nearest rank); 0 for none.
func Percentile(samples []time.Duration, p float64) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(p / 100 * float64(len(sorted)))
	if float64(rank)*100 < p*float64(len(sorted)) {
		rank++
	}
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Ratios divides ours by theirs round by round. A round that either side lacks,
// or in which theirs is 0, is left out.
func Ratios(ours, theirs []float64) []float64 {
	var ratios []float64
	for round := range min(len(ours), len(theirs)) {
		if theirs[round] != 0 {
			ratios = append(ratios, ours[round]/theirs[round])
		}
	}
	return ratios
}

// Worst returns the ratio furthest on the wrong side of a limit: the largest
// when the limit is an upper one, else the smallest; 0 for none.
func Worst(ratios []float64, upper bool) float64 {
	switch {
	case len(ratios) == 0:
		return 0
	case upper:
		return slices.Max(ratios)
	default:
		return slices.Min(ratios)
	}
}
