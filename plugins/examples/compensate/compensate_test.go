package main

import (
	"reflect"
	"testing"

	"parley/broker"
	"parley/host/guest"
	"parley/plugins/examples/internal/exampletest"
	"parley/sdk"
	"parley/sdk/abi"
)

// books is what a run booked in the ledger, in order.
func books(effects []sdk.Effect) (lines []string) {
	for _, e := range effects {
		if e.Kind == sdk.EffectSend {
			lines = append(lines, e.Queue+" "+string(e.Outgoing.Body))
		}
	}
	return lines
}

func fake(m sdk.FakeMessage) *sdk.Fake {
	m.Conversation = "c-1"
	return &sdk.Fake{Queue: "stock", Config: map[string]string{"ledger": "ledger"}, Messages: []sdk.FakeMessage{m}}
}

func TestWithdraw(t *testing.T) {
	out := fake(sdk.FakeMessage{Body: []byte(`{"part":"gear-7","quantity":2}`)}).Run(handle)
	if want := []string{`ledger {"entry":"withdrawn","part":"gear-7","quantity":2}`}; out.Result != abi.Commit || !reflect.DeepEqual(books(out.Effects), want) {
		t.Errorf("%+v", out)
	}
	if out := fake(sdk.FakeMessage{Body: []byte(`{`)}).Run(handle); out.Result != abi.DeadLetter || out.Reason != "InvalidRequest" {
		t.Errorf("%+v", out)
	}
}

// TestBackwards: received rows are undone, the last first; waiting and sent ones are not.
func TestBackwards(t *testing.T) {
	f := fake(sdk.FakeMessage{Kind: sdk.ErrorKind})
	row := func(status int, body string) sdk.FakeMessage {
		return sdk.FakeMessage{Retained: status, Body: []byte(body)}
	}
	f.Kept = map[string][]sdk.FakeMessage{"c-1": {
		row(0, `{"part":"a","quantity":1}`), row(3, `{"part":"a","quantity":1}`), row(0, `{"part":"b","quantity":2}`),
		row(1, `{"part":"never","quantity":9}`), row(0, `{"part":"c","quantity":3}`),
	}}
	out := f.Run(handle)
	want := []string{
		`ledger {"entry":"returned","part":"c","quantity":3}`,
		`ledger {"entry":"returned","part":"b","quantity":2}`,
		`ledger {"entry":"returned","part":"a","quantity":1}`,
	}
	if out.Result != abi.Commit || !reflect.DeepEqual(books(out.Effects), want) || out.Effects[3].Kind != sdk.EffectEnd {
		t.Errorf("%+v", out)
	}
}

func TestContent(t *testing.T) {
	out := fake(sdk.FakeMessage{Kind: sdk.EndDialog}).Run(handle)
	if out.Result != abi.Commit || len(out.Effects) != 1 || out.Effects[0].Kind != sdk.EffectEnd {
		t.Errorf("%+v", out)
	}
}

// TestCompiled: the same in the sandbox.
func TestCompiled(t *testing.T) {
	kept := func(status int, body string) broker.RetainedMessage {
		return broker.RetainedMessage{Message: broker.Message{Kind: broker.KindApp, Body: []byte(body)}, RetainedStatus: status}
	}
	look := exampletest.Look{Kept: []broker.RetainedMessage{kept(0, `{"part":"a","quantity":1}`), kept(3, `{}`), kept(0, `{"part":"b","quantity":2}`)}}
	g := exampletest.Group{
		Plugin: exampletest.LoadWith(t, guest.Options{Retainer: look, Config: map[string]string{"ledger": "ledger"}}),
		Handle: "c-1", Kind: broker.KindError,
	}
	s := g.Run(t, broker.TypeError, nil, nil)
	sent := exampletest.Sent(s.Effects)
	if s.Verdict != broker.VerdictCommit || len(sent) != 2 || string(sent[0].Message.Body) != `{"entry":"returned","part":"b","quantity":2}` ||
		sent[0].Message.SessionID != "c-1" {
		t.Errorf("%+v", s)
	}
}
