package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"parley/bench/measure"
)

// rounds measures workloads interleaved: each once in every round, and each
// round starts one further in the list, so that none always runs first.
type rounds struct {
	server   *measure.Server
	count    int
	limit    time.Duration
	progress io.Writer
}

// run returns all results in the order they were measured, and for workloads
// that this machine cannot run the reason.
func (r rounds) run(ctx context.Context, works []measure.Workload) ([]measure.Result, map[string]string, error) {
	var results []measure.Result
	missing := map[string]string{}
	for round := range r.count {
		for i := range works {
			work := works[(round+i)%len(works)]
			if _, gone := missing[work.Name]; gone {
				continue
			}
			result, err := measure.Run(ctx, r.server, work, r.limit)
			if errors.Is(err, measure.ErrNotRun) {
				missing[work.Name] = err.Error()
				fmt.Fprintf(r.progress, "%s: %v\n", work.Name, err)
				continue
			}
			if err != nil {
				return results, missing, fmt.Errorf("round %d: %w", round+1, err)
			}
			result.Round = round + 1
			results = append(results, result)
			fmt.Fprintf(r.progress, "round %d/%d  %-28s %s\n", round+1, r.count, work.Name, figure(result.Kind, result.Value))
		}
	}
	return results, missing, nil
}
