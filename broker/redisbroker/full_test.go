package redisbroker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"parley/broker"
	"parley/broker/redisbroker"
	"parley/internal/redistest"
)

// fullHouse is a private server that refuses to take more, with something of everything in it.
type fullHouse struct {
	t      *testing.T
	b      *redisbroker.Broker // connected when it was full already
	dialog string
	reader broker.Reader // one that was there before
}

// defsOfFull are the definitions of the house: a queue of plain messages, two that talk, one that is deleted, one that is idle.
func defsOfFull() broker.Definitions {
	d := broker.Definitions{}
	for _, q := range []string{"plain", "web", "stock", "old", "idle"} {
		d.Queues = append(d.Queues, broker.DefaultQueue(q, false))
	}
	for s, q := range map[string]string{"//web": "web", "//stock": "stock"} {
		d.Services = append(d.Services, broker.Service{Name: s, Queue: q, Contracts: []string{broker.ContractDefault}})
	}
	return d
}

func newFullHouse(t *testing.T) *fullHouse {
	ctx := context.Background()
	s := redistest.Start(t)
	opt := redisbroker.Options{URL: s.URL(), Namespace: "full"}
	b := connectTo(t, opt)
	if _, err := b.Apply(ctx, defsOfFull(), false); err != nil {
		t.Fatal(err)
	}
	h := &fullHouse{t: t}
	for i := range 6 {
		for _, q := range []string{"plain", "old"} {
			if _, err := b.Send(ctx, q, broker.Outgoing{Body: []byte(fmt.Sprint("m", i))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 2 { // two dead letters
		got, err := b.Receive(ctx, "plain", broker.ReceiveOptions{Max: 1, Top: 1})
		if err != nil || len(got) != 1 {
			t.Fatalf("received %v, %v", got, err)
		}
		if _, err := b.Settle(ctx, "plain", got[0].Token, broker.Settlement{Unit: got[0].Unit, Verdict: broker.VerdictDeadLetter, Reason: "Test"}); err != nil {
			t.Fatal(err)
		}
	}
	e, err := b.Begin(ctx, broker.Dialog{From: "//web", To: "//stock"})
	if err == nil {
		_, err = b.SendOn(ctx, e.Handle, broker.Outgoing{Body: []byte("hello")})
	}
	if err != nil {
		t.Fatal(err)
	}
	h.dialog = e.Handle
	h.reader = open(t, b, "stock", 1)
	if err := s.Client(t).ConfigSet(ctx, "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Send(ctx, "plain", broker.Outgoing{Body: []byte("more")}); !errors.Is(err, broker.ErrQuota) {
		t.Fatalf("the server is not full: a send led to %v", err)
	}
	h.b = connectTo(t, opt)
	return h
}

func connectTo(t *testing.T, opt redisbroker.Options) *redisbroker.Broker {
	t.Helper()
	b, err := redisbroker.Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// TestAFullRedisCanBeDrained: whatever looks, or makes room, works while the server refuses to take more.
func TestAFullRedisCanBeDrained(t *testing.T) {
	h := newFullHouse(t)
	ctx := context.Background()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"peek", func() error { return wantLen(h.b.Peek(ctx, "plain", 0, 10))(4) }},
		{"queue list", func() error { return wantLen(h.b.Queues(ctx))(5) }},
		{"queue show", func() error { _, err := h.b.Queue(ctx, "plain"); return err }},
		{"dead letters", func() error { return wantLen(h.b.List(ctx, "plain", 0, 10))(2) }},
		{"audit", func() error { _, err := h.b.Audit(ctx); return err }},
		{"apply what is there", func() error { _, err := h.b.Apply(ctx, defsOfFull(), false); return err }},
		{"housekeeping", func() error { _, err := h.b.Keep(ctx); return err }},
		{"a look at idle queues", func() error { _, err := h.b.Sweep(ctx, []string{"idle", "web"}); return err }},
		{"receive and complete", h.receive},
		{"resubmit", func() error { _, err := h.b.Resubmit(ctx, "plain", 1); return err }},
		{"purge dead letters", func() error { _, err := h.b.Purge(ctx, "plain/$DeadLetterQueue"); return err }},
		{"a reader that is new", h.newReader},
		{"a reader that was there", h.oldReader},
		{"turn a queue off", func() error { return h.b.SetStatus(ctx, "web", broker.QueueDisabled) }},
		{"turn it on", func() error { return h.b.SetStatus(ctx, "web", broker.QueueActive) }},
		{"end a dialog", func() error { return h.b.End(ctx, h.dialog, broker.Ending{Code: 1, Text: "full"}, 0) }},
		{"purge", func() error { _, err := h.b.Purge(ctx, "plain"); return err }},
		{"delete a queue", func() error { return h.b.DeleteQueue(ctx, "old") }},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	for q, want := range map[string]int64{"plain": 0, "stock": 1} { // the Error that END sent
		if i, err := h.b.Queue(ctx, q); err != nil || i.Counts.Total != want {
			t.Errorf("queue %s holds %+v, %v; want %d", q, i.Counts, err, want)
		}
	}
	if _, err := h.b.Queue(ctx, "old"); !errors.Is(err, broker.ErrUnknownEntity) {
		t.Errorf("the deleted queue: %v", err)
	}
	clean(t, h.b)
}

// wantLen fails unless a list has n entries.
func wantLen[T any](list []T, err error) func(n int) error {
	return func(n int) error {
		if err == nil && len(list) != n {
			err = fmt.Errorf("got %d, want %d", len(list), n)
		}
		return err
	}
}

// receive takes one message with a lock, prolongs it and completes it.
func (h *fullHouse) receive() error {
	ctx := context.Background()
	got, err := h.b.Receive(ctx, "plain", broker.ReceiveOptions{Max: 1, Top: 1})
	if err != nil || len(got) != 1 {
		return fmt.Errorf("received %v, %w", got, err)
	}
	if _, err := h.b.Renew(ctx, "plain", got[0].Token); err != nil {
		return err
	}
	_, err = h.b.Settle(ctx, "plain", got[0].Token, broker.Settlement{Unit: got[0].Unit})
	return err
}

// newReader registers, takes two messages, lives on for a while and goes.
func (h *fullHouse) newReader() error {
	ctx := context.Background()
	r, err := h.b.OpenReader(ctx, "plain", broker.ReaderOptions{Slots: 2, Limit: 4, Lease: 5 * time.Second})
	if err != nil {
		return err
	}
	units := take(h.t, r, 2, 1).Units
	if len(units) != 2 {
		return fmt.Errorf("got %d units", len(units))
	}
	if err := r.Renew(ctx); err != nil {
		return err
	}
	take(h.t, r, 0, 1, broker.Settlement{Unit: units[0]}, broker.Settlement{Unit: units[1], Verdict: broker.VerdictRollback, FailReason: broker.ReasonHandlerError})
	return r.Close(ctx)
}

// oldReader handles the dialog's message and goes.
func (h *fullHouse) oldReader() error {
	units := take(h.t, h.reader, 1, 1).Units
	if len(units) != 1 {
		return fmt.Errorf("got %d units", len(units))
	}
	take(h.t, h.reader, 0, 1, broker.Settlement{Unit: units[0]})
	return h.reader.Close(context.Background())
}
