package measure

import (
	"context"
	"fmt"
	"time"
)

// Until calls check every pause until it returns nil or ctx ends; then the error
// holds both the end of ctx and what check said last.
func Until(ctx context.Context, pause time.Duration, check func() error) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w while waiting: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
