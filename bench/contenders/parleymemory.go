package contenders

import (
	"context"
	"errors"
	"time"

	"parley/bench/measure"
	"parley/broker"
)

// parleyWaiting only lets messages wait, for the memory they take.
type parleyWaiting struct {
	*parley
	fill fillFunc
}

func openParleyWaiting(fill fillFunc) func(context.Context, string) (measure.Side, error) {
	return func(ctx context.Context, addr string) (measure.Side, error) {
		p, err := openParley(ctx, addr)
		return &parleyWaiting{parley: p, fill: fill}, err
	}
}

func (w *parleyWaiting) Prepare(ctx context.Context, n int) error {
	w.want = n
	return w.fill(ctx, w.parley, n)
}

func (w *parleyWaiting) Run(context.Context) error { return nil }

func (w *parleyWaiting) Verify(ctx context.Context) error {
	return errors.Join(w.holds(ctx, parleySource, w.want, 0), w.audit(ctx))
}

// parleyFiled holds the first message of a session while all behind it are filed.
type parleyFiled struct {
	*parley
	reader broker.Reader
}

func openParleyFiled(ctx context.Context, addr string) (measure.Side, error) {
	p, err := openParley(ctx, addr)
	return &parleyFiled{parley: p}, err
}

// filedLease is longer than a measurement takes: nobody renews it.
const filedLease = 10 * time.Minute

// Prepare sends one message more than it counts: the one that is held.
func (f *parleyFiled) Prepare(ctx context.Context, n int) error {
	f.want = n
	if err := f.define(ctx, false, parleySource); err != nil {
		return err
	}
	if err := f.send(ctx, n+1, parleyFill, sessionNames()[:1]); err != nil {
		return err
	}
	reader, err := f.broker.OpenReader(ctx, parleySource, broker.ReaderOptions{Slots: 64, Lease: filedLease})
	if err != nil {
		return err
	}
	f.reader = reader
	return fileAll(ctx, reader)
}

// fileAll turns until nothing is unread.
func fileAll(ctx context.Context, reader broker.Reader) error {
	free := make([]int, reader.Slots())
	for i := range free {
		free[i] = i
	}
	for {
		reply, err := reader.Turn(ctx, broker.TurnRequest{Free: free, Empty: len(free), Top: 1})
		if err != nil {
			return err
		}
		free = free[len(reply.Units):]
		if !reply.Again {
			return nil
		}
	}
}

func (f *parleyFiled) Run(context.Context) error { return nil }

// Verify gives the held message back first: then all wait.
func (f *parleyFiled) Verify(ctx context.Context) error {
	if err := f.holds(ctx, parleySource, f.want, 1); err != nil {
		return err
	}
	err := f.reader.Close(ctx)
	return errors.Join(err, f.holds(ctx, parleySource, f.want+1, 0), f.audit(ctx))
}
