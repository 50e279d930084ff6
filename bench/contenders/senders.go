package contenders

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// fromMany calls send n times in all from the given number of goroutines, each
// with one call at a time, and returns the first error.
func fromMany(ctx context.Context, goroutines, n int, send func(context.Context) error) error {
	var taken atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range goroutines {
		group.Go(func() error {
			for taken.Add(1) <= int64(n) {
				if err := send(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
