package host

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"parley/broker"
)

// endless is a broker that always has work, for the cost of the host alone.
type endless struct {
	left  atomic.Int64
	turns atomic.Int64
	done  chan struct{}
}

func (e *endless) OpenReader(_ context.Context, _ string, opt broker.ReaderOptions) (broker.Reader, error) {
	r := &endlessReader{e: e, slots: opt.Slots}
	r.units = make([]broker.Unit, opt.Slots*windowMax*2)
	r.messages = make([]broker.Message, 1)
	return r, nil
}

func (e *endless) NewHandle(string) (string, error) { return "", nil }

func (e *endless) CheckEffect(context.Context, *broker.Unit, *broker.Effect) error { return nil }

func (e *endless) Wakes(ctx context.Context, _ func(string)) error { <-ctx.Done(); return ctx.Err() }

type endlessReader struct {
	e        *endless
	slots    int
	units    []broker.Unit
	next     int
	messages []broker.Message
	results  []broker.SettleResult
	handed   []*broker.Unit
}

func (r *endlessReader) Name() string                { return "r" }
func (r *endlessReader) Slots() int                  { return r.slots }
func (r *endlessReader) Renew(context.Context) error { return nil }
func (r *endlessReader) Close(context.Context) error { return nil }

func (r *endlessReader) Turn(_ context.Context, req broker.TurnRequest) (broker.TurnReply, error) {
	r.e.turns.Add(1)
	r.results, r.handed = r.results[:0], r.handed[:0]
	for i := range req.Settle {
		r.results = append(r.results, broker.SettleResult{Unit: req.Settle[i].Unit})
	}
	if n := int64(len(req.Settle)); n > 0 && r.e.left.Add(-n) <= 0 {
		select {
		case r.e.done <- struct{}{}:
		default:
		}
		return broker.TurnReply{Results: r.results}, nil
	}
	for _, slot := range req.Free {
		u := &r.units[r.next%len(r.units)]
		r.next++
		*u = broker.Unit{Slot: slot, Messages: r.messages}
		r.handed = append(r.handed, u)
	}
	return broker.TurnReply{Results: r.results, Units: r.handed, Waiting: 1}, nil
}

type noop struct{}

func (noop) Run(context.Context, *Invocation) Result { return Result{} }
func (noop) Digest() string                          { return "" }
func (noop) Close(context.Context) error             { return nil }

// BenchmarkUnit is what the host itself costs for a unit of work, without broker and guest.
func BenchmarkUnit(b *testing.B) {
	e := &endless{done: make(chan struct{}, 1)}
	e.left.Store(int64(b.N))
	h, err := New(Config{
		Readers: e, Waker: e, Log: slog.New(slog.DiscardHandler),
		Plugins: []PluginConfig{{Name: "p", Queue: "q", Runner: noop{}, MaxReaders: 64}},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	b.ReportAllocs()
	b.ResetTimer()
	go func() { ended <- h.Run(ctx) }()
	<-e.done
	b.StopTimer()
	b.ReportMetric(float64(b.N)/float64(e.turns.Load()), "units/turn")
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}
