package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"parley/bench/measure"
)

// writeText prints the report as tables for people.
func writeText(out io.Writer, r report) error {
	fmt.Fprintf(out, "%s, Redis %s, %d cores, %d interleaved rounds\n", r.Machine.Go, r.Machine.Redis, r.Machine.Cores, r.Machine.Rounds)
	for _, condition := range r.Conditions {
		fmt.Fprintf(out, "- %s\n", condition)
	}
	fmt.Fprintln(out, "\nTargets (ratios are paired by round; the target is for the worst round)")
	if err := writeRows(out, r.Rows); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nWorkloads (median [lowest .. highest] of the rounds; CPU is microseconds a message)")
	if err := writeWorkloads(out, r.Workloads); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nWhat each one does")
	for _, work := range r.Workloads {
		fmt.Fprintf(out, "- %s (%s): %s\n", work.Name, thousands(float64(work.Count)), work.Does)
	}
	return nil
}

func writeRows(out io.Writer, rows []comparison) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "work\tParley\tagainst\tthe other\tmedian\tworst\ttarget\tverdict")
	for _, row := range rows {
		if row.Ratios == nil {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t-\t-\t%s\t%s\n", row.Work, orDash(row.Kind, row.Ours), against(row),
				orDash(row.Kind, row.Theirs), target(row), row.Verdict)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row.Work, figure(row.Kind, row.Ours), against(row),
			orDash(row.Kind, row.Theirs), ratio(row, row.MedianRatio), ratio(row, row.WorstRatio), target(row), row.Verdict)
	}
	return table.Flush()
}

func writeWorkloads(out io.Writer, works []summary) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "workload\tfigure\tRedis CPU\thost CPU")
	for _, work := range works {
		switch {
		case work.Median == 0 && work.NotRun != "":
			fmt.Fprintf(table, "%s\t%s\t\t\n", work.Name, work.NotRun)
		case work.Kind == measure.Memory:
			fmt.Fprintf(table, "%s\t%s\t-\t-\n", work.Name, spread(work))
		default:
			fmt.Fprintf(table, "%s\t%s\t%.1f\t%.1f\n", work.Name, spread(work), work.RedisUS, work.HostUS)
		}
	}
	return table.Flush()
}

func spread(s summary) string {
	text := fmt.Sprintf("%s [%s .. %s]", figure(s.Kind, s.Median), figure(s.Kind, s.Lowest), figure(s.Kind, s.Highest))
	if s.Kind == measure.Latency {
		text += fmt.Sprintf(", p99 %.0f us", s.P99)
	}
	return text
}

// figure prints a value in the unit of its kind.
func figure(kind measure.Kind, value float64) string {
	switch kind {
	case measure.Rate:
		return thousands(value) + "/s"
	case measure.Latency:
		return fmt.Sprintf("%.0f us", value)
	case measure.Memory:
		return fmt.Sprintf("%.0f B", value)
	case measure.Idle:
		return fmt.Sprintf("%.2f %%", value)
	default:
		return strconv.FormatFloat(value, 'f', -1, 64)
	}
}

// thousands prints a whole number with commas.
func thousands(value float64) string {
	digits := strconv.FormatInt(int64(value+0.5), 10)
	for cut := len(digits) - 3; cut > 0; cut -= 3 {
		digits = digits[:cut] + "," + digits[cut:]
	}
	return digits
}

func ratio(row comparison, value float64) string {
	if row.Against == "" {
		return figure(row.Kind, value)
	}
	return fmt.Sprintf("%.2f x", value)
}

func target(row comparison) string {
	unit := " x"
	switch {
	case row.Against != "":
	case row.Kind == measure.Idle:
		unit = " %"
	case row.Kind == measure.Latency:
		unit = " us"
	}
	if row.AtMost != 0 {
		return "<= " + strconv.FormatFloat(row.AtMost, 'f', -1, 64) + unit
	}
	return ">= " + strconv.FormatFloat(row.AtLeast, 'f', -1, 64) + unit
}

func orDash(kind measure.Kind, value float64) string {
	if value == 0 {
		return "-"
	}
	return figure(kind, value)
}

// against names what a figure is a share of, where no contender stands beside it.
func against(row comparison) string {
	switch {
	case row.Against != "":
		return row.Against
	case row.Kind == measure.Idle:
		return "one core"
	}
	return "-"
}
