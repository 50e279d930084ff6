// Package exampletest builds an example plugin and runs it as its users do, compiled and inside a sandbox, with a broker
// that agrees to everything.
package exampletest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/broker"
	"parley/host"
	"parley/host/guest"
	"parley/sdk/build"
)

// Load builds the plugin in the test's own folder and loads it.
func Load(t testing.TB, config map[string]string) *guest.Plugin {
	t.Helper()
	return LoadWith(t, guest.Options{Config: config})
}

// LoadWith is Load with more than a configuration.
func LoadWith(t testing.TB, opts guest.Options) *guest.Plugin {
	t.Helper()
	opts.Name = t.Name()
	out := filepath.Join(t.TempDir(), "plugin.wasm")
	if err := build.Build(t.Context(), ".", out); err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	p, err := guest.Load(t.Context(), wasm, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Group is a conversation group with its state, as the broker keeps it between units of work.
type Group struct {
	Plugin *guest.Plugin
	State  map[string][]byte
	Handle string      // conversation of its messages; "" for plain messages of a session
	Kind   broker.Kind // of its messages; 0: application messages

	sequence int64
}

// Run makes one attempt at a message of the group and applies the state it commits.
func (g *Group) Run(t testing.TB, typ string, body []byte, properties map[string]string) broker.Settlement {
	t.Helper()
	g.sequence++
	kind := g.Kind
	if kind == 0 {
		kind = broker.KindApp
	}
	unit := &broker.Unit{ID: uint64(g.sequence), Group: "g:1", State: g.State, Messages: []broker.Message{{
		SequenceNumber: g.sequence, MessageID: "m", Kind: kind, Type: typ, Conversation: g.Handle, Group: "g-1",
		Body: body, Properties: properties, Priority: 5,
	}}}
	r := g.Plugin.Run(t.Context(), &host.Invocation{Queue: "q", Unit: unit, Attempt: 1, Now: time.Now, Effects: agree{}})
	if r.Settlement.Verdict == broker.VerdictCommit {
		g.commit(r.Settlement.Effects)
	}
	return r.Settlement
}

func (g *Group) commit(effects []broker.Effect) {
	if g.State == nil {
		g.State = make(map[string][]byte)
	}
	for _, e := range effects {
		switch e.Kind {
		case broker.EffectPutState:
			g.State[e.Key] = e.Value
		case broker.EffectDeleteState:
			delete(g.State, e.Key)
		}
	}
}

// Sent is the messages among effects, in order.
func Sent(effects []broker.Effect) (sent []broker.Effect) {
	for _, e := range effects {
		if e.Kind == broker.EffectSend || e.Kind == broker.EffectSendTo {
			sent = append(sent, e)
		}
	}
	return sent
}

// Look answers looks with what it holds.
type Look struct {
	Queues map[string][]broker.Message
	Kept   []broker.RetainedMessage // of any conversation
}

// Peek implements broker.Peeker.
func (l Look) Peek(_ context.Context, path string, from int64, limit int) (found []broker.Message, err error) {
	messages, known := l.Queues[path]
	if !known {
		return nil, broker.ErrUnknownEntity
	}
	for _, m := range messages {
		if m.SequenceNumber >= from && len(found) < limit {
			found = append(found, m)
		}
	}
	return found, nil
}

// Retained implements broker.Retainer.
func (l Look) Retained(context.Context, string) ([]broker.RetainedMessage, error) { return l.Kept, nil }

type agree struct{}

func (agree) NewHandle(string) (string, error)                                { return "", broker.ErrNotAvailable }
func (agree) CheckEffect(context.Context, *broker.Unit, *broker.Effect) error { return nil }
