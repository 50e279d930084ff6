package main

import (
	"context"
	"sync/atomic"

	"parley/broker"
)

// looks is how plugins look at queues: modules are loaded before there is a connection.
type looks struct{ client atomic.Pointer[client] }

// through has every look from now on go through c.
func (l *looks) through(c *client) { l.client.Store(c) }

// Peek implements broker.Peeker.
func (l *looks) Peek(ctx context.Context, path string, from int64, limit int) ([]broker.Message, error) {
	c := l.client.Load()
	if c == nil {
		return nil, broker.ErrUnreachable.With("peek %s: not connected yet", path)
	}
	return c.Peek(ctx, path, from, limit)
}

// Retained implements broker.Retainer.
func (l *looks) Retained(ctx context.Context, handle string) ([]broker.RetainedMessage, error) {
	c := l.client.Load()
	if c == nil {
		return nil, broker.ErrUnreachable.With("look at conversation %s: not connected yet", handle)
	}
	return c.Retained(ctx, handle)
}
