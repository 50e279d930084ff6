package main

import (
	"context"
	"log/slog"

	"parley/broker/redisbroker"
)

// connect opens the broker on a Redis server.
func connect(ctx context.Context, opt connectOptions) (*client, error) {
	b, err := redisbroker.Open(ctx, redisbroker.Options{
		URL: opt.url, Namespace: opt.namespace, AllowEviction: opt.allowEviction, Log: opt.log,
	})
	if err != nil {
		return nil, err
	}
	return newClient(b, opt), nil
}

// newClient gives every role of the broker its place.
func newClient(b *redisbroker.Broker, opt connectOptions) *client {
	return &client{
		Sender: b, Receiver: b, Peeker: b, Dialogs: b, DialogVerbs: b, DialogInspector: b, dead: b, admin: b, audit: b, hosts: b, readers: b, waker: b, keeper: b, rights: b,
		opt: opt,
		close: func() {
			if err := b.Close(); err != nil {
				slog.Debug("the broker's connections did not close", slog.Any("error", err))
			}
		},
	}
}
