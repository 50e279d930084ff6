package host

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// quiet limits log lines: of each key at most a number a second, and the next line says how many were held back.
type quiet struct {
	log *slog.Logger

	mu   sync.Mutex // guards keys
	keys map[string]*quota
}

type quota struct {
	since   time.Time
	used    int
	skipped int
}

func newQuiet(log *slog.Logger) *quiet { return &quiet{log: log, keys: make(map[string]*quota)} }

// say logs msg unless perSecond lines of key were logged in the second before.
func (q *quiet) say(level slog.Level, key string, perSecond int, msg string, attrs ...slog.Attr) {
	ctx := context.Background()
	if !q.log.Enabled(ctx, level) {
		return
	}
	skipped, ok := q.take(key, perSecond)
	if !ok {
		return
	}
	if skipped > 0 {
		attrs = append(attrs, slog.Int("lines_held_back", skipped))
	}
	q.log.LogAttrs(ctx, level, msg, attrs...)
}

func (q *quiet) take(key string, perSecond int) (skipped int, ok bool) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	k := q.keys[key]
	if k == nil {
		k = &quota{since: now}
		q.keys[key] = k
	}
	if now.Sub(k.since) >= time.Second {
		k.since, k.used = now, 0
	}
	if k.used >= perSecond {
		k.skipped++
		return 0, false
	}
	k.used++
	skipped, k.skipped = k.skipped, 0
	return skipped, true
}
