package redisbroker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"parley/broker"
	"parley/internal/redistest"
)

// throughProxy opens a broker with a queue q, and services A on a and B on b, through a proxy.
func throughProxy(t *testing.T, addr string) (*Broker, *redistest.Proxy) {
	t.Helper()
	p := redistest.NewProxy(t, addr)
	b, err := Open(t.Context(), Options{URL: p.URL(), Namespace: redistest.Namespace(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	defs := broker.Definitions{
		Queues: []broker.QueueSettings{broker.DefaultQueue("q", false), broker.DefaultQueue("a", true), broker.DefaultQueue("b", true)},
		Services: []broker.Service{
			{Name: "A", Queue: "a", Contracts: []string{broker.ContractDefault}}, {Name: "B", Queue: "b", Contracts: []string{broker.ContractDefault}},
		},
	}
	if _, err := b.Apply(t.Context(), defs, false); err != nil {
		t.Fatal(err)
	}
	return b, p
}

// proxied runs f against the real server and the embedded one.
func proxied(t *testing.T, f func(t *testing.T, b *Broker, p *redistest.Proxy)) {
	for name, addr := range map[string]string{"real": redistest.Shared(t).Addr(), "embedded": redistest.StartEmbedded(t).Addr()} {
		t.Run(name, func(t *testing.T) {
			b, p := throughProxy(t, addr)
			f(t, b, p)
		})
	}
}

// withID is a message with an id, which is its body too.
func withID(id string) broker.Outgoing { return broker.Outgoing{MessageID: id, Body: []byte(id)} }

// stored are the bodies that wait on a queue.
func stored(t *testing.T, b *Broker, queue string) string {
	t.Helper()
	ms, err := b.Peek(context.Background(), queue, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, m := range ms {
		bodies = append(bodies, string(m.Body))
	}
	return strings.Join(bodies, " ")
}

// TestASendEndsWithItsContextWhileItsCallIsOut holds the reply to a call: whoever gives up returns at once and is told that the outcome is
// unknown, the message that waits for the next call is stored, and the same again is the message that is there already.
func TestASendEndsWithItsContextWhileItsCallIsOut(t *testing.T) {
	proxied(t, func(t *testing.T, b *Broker, p *redistest.Proxy) {
		ctx, cancel := context.WithCancel(t.Context())
		held := p.HoldReply(redistest.Command("EVALSHA"))
		first, second := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := b.Send(ctx, "q", withID("m1"))
			first <- err
		}()
		held.Await(t)
		waiting, leave := context.WithCancel(t.Context())
		third := make(chan error, 1)
		go func() {
			_, err := b.Send(context.Background(), "q", withID("m2"))
			second <- err
		}()
		go func() {
			_, err := b.Send(waiting, "q", withID("m3"))
			third <- err
		}()
		redistest.Eventually(t, "both wait for the next call", func() bool {
			s := b.sender("q")
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.pending) == 2
		})
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) || !errors.Is(err, broker.ErrUnknownStored) || !strings.Contains(err.Error(), "m1") {
			t.Errorf("got %v, want %v and %v with the id", err, context.Canceled, broker.ErrUnknownStored)
		}
		leave()
		if err := <-third; !errors.Is(err, context.Canceled) || errors.Is(err, broker.ErrUnknownStored) {
			t.Errorf("what was not sent: got %v, want %v alone", err, context.Canceled)
		}
		held.Release()
		if err := <-second; err != nil {
			t.Errorf("the other caller: %v", err)
		}
		r, err := b.Send(t.Context(), "q", withID("m4"), withID("m1"))
		if err != nil || r[1].SequenceNumber != 1 || r[0].SequenceNumber != 3 {
			t.Errorf("the repeat: got %+v, %v; want numbers 3 and 1", r, err)
		}
		if got := stored(t, b, "q"); got != "m1 m2 m4" {
			t.Errorf("stored: %s", got)
		}
	})
}

// TestASendWithoutAnAnswerIsRepeatedBeforeAnythingNewer cuts all tries of a call: what comes later waits for its fate, so nothing is
// doubled, and the same ids again are recognised once.
func TestASendWithoutAnAnswerIsRepeatedBeforeAnythingNewer(t *testing.T) {
	for _, cut := range []string{"reply", "request"} {
		t.Run("cut "+cut, func(t *testing.T) {
			proxied(t, func(t *testing.T, b *Broker, p *redistest.Proxy) {
				for range maxCallTries {
					if cut == "reply" {
						p.CutReply(redistest.Command("EVALSHA"))
					} else {
						p.CutRequest(redistest.Command("EVALSHA"))
					}
				}
				_, err := b.Send(t.Context(), "q", withID("m1"), withID("m2"))
				if !errors.Is(err, broker.ErrUnknownStored) || errors.Is(err, broker.ErrUnreachable) || broker.ExitCode(err) != broker.ExitFailed ||
					!strings.Contains(err.Error(), "m1, m2") {
					t.Fatalf("got %v, want %v with both ids", err, broker.ErrUnknownStored)
				}
				redistest.Eventually(t, "m3 to be taken", func() bool {
					_, err := b.Send(t.Context(), "q", withID("m3"))
					if err != nil && !errors.Is(err, broker.ErrUnreachable) { // which says that nothing of it is stored
						t.Fatal(err)
					}
					return err == nil
				})
				r, err := b.Send(t.Context(), "q", withID("m1"), withID("m2"))
				if err != nil || r[0].SequenceNumber != 1 || r[1].SequenceNumber != 2 {
					t.Errorf("the repeat: got %+v, %v; want numbers 1 and 2", r, err)
				}
				if _, err := b.Send(t.Context(), "q", withID("m1")); err != nil {
					t.Fatal(err)
				}
				if got := stored(t, b, "q"); got != "m1 m2 m3 m1" {
					t.Errorf("stored: %s", got)
				}
			})
		})
	}
}

// TestNothingIsSentBeforeTheFateOfAnEarlierSendIsKnown loses all replies for a while: what comes next is refused whole.
func TestNothingIsSentBeforeTheFateOfAnEarlierSendIsKnown(t *testing.T) {
	var healthy atomic.Bool
	lose := func(script string) Fault {
		if script == "append" && !healthy.Load() {
			return LoseReply
		}
		return NoFault
	}
	eachServer(t, lose, func(t *testing.T, b *Broker) {
		healthy.Store(false)
		if _, err := b.Send(t.Context(), "q", withID("m1")); !errors.Is(err, broker.ErrUnknownStored) {
			t.Fatalf("got %v, want %v", err, broker.ErrUnknownStored)
		}
		if _, err := b.Send(t.Context(), "q", withID("m2")); !errors.Is(err, broker.ErrUnreachable) || errors.Is(err, broker.ErrUnknownStored) {
			t.Fatalf("got %v, want %v", err, broker.ErrUnreachable)
		}
		healthy.Store(true)
		if _, err := b.Send(t.Context(), "q", withID("m3")); err != nil {
			t.Fatal(err)
		}
		if got := stored(t, b, "q"); got != "m1 m3" {
			t.Errorf("stored: %s", got)
		}
	})
}

// TestAVerbWithoutAnAnswerIsRepeatedBeforeAnythingNewer does the same to the verbs of conversations.
func TestAVerbWithoutAnAnswerIsRepeatedBeforeAnythingNewer(t *testing.T) {
	proxied(t, func(t *testing.T, b *Broker, p *redistest.Proxy) {
		e, err := b.Begin(t.Context(), broker.Dialog{From: "A", To: "B"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		held := p.HoldReply(redistest.Command("EVALSHA"))
		first := make(chan error, 1)
		go func() {
			_, err := b.SendOn(ctx, e.Handle, withID("m1"))
			first <- err
		}()
		held.Await(t)
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) || !errors.Is(err, broker.ErrUnknownStored) || !strings.Contains(err.Error(), "m1") {
			t.Errorf("got %v, want %v and %v with the id", err, context.Canceled, broker.ErrUnknownStored)
		}
		held.Release()
		if r, err := b.SendOn(t.Context(), e.Handle, withID("m1")); err != nil || r.SequenceNumber != 0 {
			t.Errorf("the repeat: got %+v, %v; want number 0", r, err)
		}
		for range maxCallTries {
			p.CutReply(redistest.Command("EVALSHA"))
		}
		if _, err := b.SendOn(t.Context(), e.Handle, withID("m2")); !errors.Is(err, broker.ErrUnknownStored) || errors.Is(err, broker.ErrUnreachable) {
			t.Errorf("got %v, want %v", err, broker.ErrUnknownStored)
		}
		if _, err := b.SendOn(t.Context(), e.Handle, withID("m3")); err != nil {
			t.Fatal(err)
		}
		if r, err := b.SendOn(t.Context(), e.Handle, withID("m2")); err != nil || r.SequenceNumber != 1 {
			t.Errorf("the repeat: got %+v, %v; want number 1", r, err)
		}
		if got := stored(t, b, "b"); got != "m1 m2 m3" {
			t.Errorf("stored: %s", got)
		}
		for range maxCallTries {
			p.CutReply(redistest.Command("EVALSHA"))
		}
		if err := b.End(t.Context(), e.Handle, broker.Ending{}, 0); !errors.Is(err, broker.ErrUnknownStored) {
			t.Errorf("got %v, want %v", err, broker.ErrUnknownStored)
		}
		if err := b.End(t.Context(), e.Handle, broker.Ending{}, 0); err != nil {
			t.Errorf("the repeat of END: %v", err)
		}
		for range maxCallTries {
			p.CutReply(redistest.Command("EVALSHA"))
		}
		if _, err := b.Begin(t.Context(), broker.Dialog{From: "A", To: "B"}); !errors.Is(err, broker.ErrUnknownStored) || !strings.Contains(err.Error(), "ids 0000000") {
			t.Errorf("got %v, want %v with the handle", err, broker.ErrUnknownStored)
		}
	})
}
