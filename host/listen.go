package host

import (
	"context"
	"log/slog"
)

// listen is the loop that takes wake-ups. When the subscription ends it is made again, and everything is looked at, since
// anything may have been missed.
func (h *Host) listen(ctx context.Context) {
	var pauses backoff
	for {
		err := h.cfg.Waker.Wakes(ctx, h.wake)
		if ctx.Err() != nil {
			return
		}
		h.quiet.say(slog.LevelError, "wakes", 1, "wake-ups were interrupted", slog.Any("error", err))
		if !sleep(ctx, pauses.pause()) {
			return
		}
		h.sweeper.now()
	}
}
