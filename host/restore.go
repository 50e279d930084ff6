package host

import (
	"context"
	"log/slog"
	"time"
)

// RestoreFunc defines the entities of a namespace again, after the broker has lost them.
type RestoreFunc func(ctx context.Context) error

// restorer calls Config.Restore when something found that an entity is gone.
type restorer struct {
	h    *Host
	asks chan struct{} // holds one
}

func (r *restorer) init(h *Host) { r.h, r.asks = h, make(chan struct{}, 1) }

// ask has the entities defined again. It never blocks.
func (r *restorer) ask() {
	select {
	case r.asks <- struct{}{}:
	default:
	}
}

// run is the loop of r.
func (r *restorer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.asks:
		}
		if r.h.cfg.Restore == nil {
			continue
		}
		r.once(ctx)
		if !sleep(ctx, time.Second) {
			return
		}
	}
}

// once restores and has every queue looked at.
func (r *restorer) once(ctx context.Context) {
	err := r.h.cfg.Restore(ctx)
	switch {
	case err == nil:
		r.h.cfg.Log.Warn("entities were missing in the broker and have been defined again")
		r.h.sweeper.now()
	case ctx.Err() == nil:
		r.h.quiet.say(slog.LevelError, "restore", 1, "entities are missing in the broker and could not be defined again", slog.Any("error", err))
	}
}
