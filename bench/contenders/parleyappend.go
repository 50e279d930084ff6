package contenders

import (
	"context"
	"errors"

	"parley/bench/measure"
	"parley/broker"
)

// parleyAppend sends: batches from one goroutine, or single messages from many.
type parleyAppend struct {
	*parley
	senders  int
	sessions []string
}

func openParleyAppend(sessions []string) func(context.Context, string) (measure.Side, error) {
	return func(ctx context.Context, addr string) (measure.Side, error) {
		p, err := openParley(ctx, addr)
		return &parleyAppend{parley: p, sessions: sessions}, err
	}
}

func openParleySends(ctx context.Context, addr string) (measure.Side, error) {
	p, err := openParley(ctx, addr)
	return &parleyAppend{parley: p, senders: asynqSenders}, err
}

func (a *parleyAppend) Prepare(ctx context.Context, n int) error {
	a.want = n
	return a.define(ctx, false, parleySource)
}

func (a *parleyAppend) Run(ctx context.Context) error {
	if a.senders == 0 {
		return a.send(ctx, a.want, bareBatch, a.sessions)
	}
	message := broker.Outgoing{Body: []byte(measure.Body())}
	return fromMany(ctx, a.senders, a.want, func(ctx context.Context) error {
		_, err := a.broker.Send(ctx, parleySource, message)
		return err
	})
}

func (a *parleyAppend) Verify(ctx context.Context) error {
	return errors.Join(a.holds(ctx, parleySource, a.want, 0), a.audit(ctx))
}
