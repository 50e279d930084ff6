package main

import (
	"cmp"
	"slices"

	"parley/bench/measure"
)

// report is what a run found; its JSON form is the output of -o json.
type report struct {
	Machine    machine          `json:"machine"`
	Conditions []string         `json:"conditions"`
	Rows       []comparison     `json:"rows"`
	Workloads  []summary        `json:"workloads"`
	Results    []measure.Result `json:"results"`
}

type machine struct {
	Go       string `json:"go"`
	Redis    string `json:"redis"`
	Cores    int    `json:"cores"`
	Rounds   int    `json:"rounds"`
	Messages int    `json:"messages"`
}

// comparison is one row of the targets. Ours and Theirs are medians in the unit
// of Kind; ratios are ours by theirs, paired by round. Verdict is "met", "NOT MET"
// or why the row was not run.
type comparison struct {
	Work        string       `json:"work"`
	Parley      string       `json:"parley"`
	Against     string       `json:"against,omitempty"`
	Kind        measure.Kind `json:"kind,omitempty"`
	Ours        float64      `json:"ours"`
	Theirs      float64      `json:"theirs"`
	Ratios      []float64    `json:"ratios"`
	MedianRatio float64      `json:"median_ratio"`
	WorstRatio  float64      `json:"worst_ratio"`
	AtLeast     float64      `json:"at_least,omitempty"`
	AtMost      float64      `json:"at_most,omitempty"`
	Met         bool         `json:"met"`
	Verdict     string       `json:"verdict"`
}

// summary is one workload over all rounds, in the unit of Kind.
type summary struct {
	Name    string       `json:"name"`
	Does    string       `json:"does"`
	Kind    measure.Kind `json:"kind"`
	Count   int          `json:"count"`
	Median  float64      `json:"median"`
	Lowest  float64      `json:"lowest"`
	Highest float64      `json:"highest"`
	P99     float64      `json:"p99_us,omitempty"`
	RedisUS float64      `json:"redis_us_per_message"`
	HostUS  float64      `json:"host_us_per_message"`
	NotRun  string       `json:"not_run,omitempty"`
}

// compare fills in one row from the results of all rounds.
func compare(r row, results []measure.Result, missing map[string]string) comparison {
	ours, theirs := valuesOf(results, r.ours), valuesOf(results, r.theirs)
	c := comparison{
		Work: r.work, Parley: r.ours, Against: r.theirs, Kind: kindOf(results, r),
		Ours: measure.Median(ours), Theirs: measure.Median(theirs),
	}
	if r.upper {
		c.AtMost = r.limit
	} else {
		c.AtLeast = r.limit
	}
	for _, name := range []string{r.ours, r.theirs} {
		if name != "" && len(valuesOf(results, name)) == 0 {
			c.Verdict = cmp.Or(missing[name], "not run: "+name)
			return c
		}
	}
	c.Ratios = ours
	if r.theirs != "" {
		c.Ratios = measure.Ratios(ours, theirs)
	}
	c.MedianRatio = measure.Median(c.Ratios)
	c.WorstRatio = measure.Worst(c.Ratios, r.upper)
	c.Met = len(c.Ratios) > 0 && within(c.WorstRatio, r)
	c.Verdict = "NOT MET"
	if c.Met {
		c.Verdict = "met"
	}
	return c
}

func within(ratio float64, r row) bool {
	if r.upper {
		return ratio <= r.limit
	}
	return ratio >= r.limit
}

// valuesOf returns the figures of one workload in the order of the rounds.
func valuesOf(results []measure.Result, name string) []float64 {
	return column(results, name, func(r measure.Result) float64 { return r.Value })
}

func column(results []measure.Result, name string, pick func(measure.Result) float64) []float64 {
	var of []measure.Result
	for _, result := range results {
		if result.Workload == name {
			of = append(of, result)
		}
	}
	slices.SortStableFunc(of, func(a, b measure.Result) int { return cmp.Compare(a.Round, b.Round) })
	values := make([]float64, len(of))
	for i, result := range of {
		values[i] = pick(result)
	}
	return values
}

// kindOf is the kind of whichever side of a row ran.
func kindOf(results []measure.Result, r row) measure.Kind {
	for _, result := range results {
		if result.Workload == r.ours || result.Workload == r.theirs {
			return result.Kind
		}
	}
	return ""
}

// summarize describes one workload over all rounds.
func summarize(work measure.Workload, results []measure.Result, missing map[string]string) summary {
	s := summary{Name: work.Name, Does: work.Does, Kind: work.Kind, Count: work.Count, NotRun: missing[work.Name]}
	values := valuesOf(results, work.Name)
	if len(values) == 0 {
		return s
	}
	median := func(pick func(measure.Result) float64) float64 {
		return measure.Median(column(results, work.Name, pick))
	}
	s.Median, s.Lowest, s.Highest = measure.Median(values), slices.Min(values), slices.Max(values)
	s.P99 = median(func(r measure.Result) float64 { return r.P99 })
	s.RedisUS = median(func(r measure.Result) float64 { return r.RedisUS })
	s.HostUS = median(func(r measure.Result) float64 { return r.HostUS })
	return s
}
