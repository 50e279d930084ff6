package main

import (
	"errors"
	"testing"

	"parley/broker"
	"parley/plugins/examples/internal/exampletest"
	"parley/sdk"
	"parley/sdk/abi"
)

func TestHandle(t *testing.T) {
	fake := sdk.Fake{Messages: []sdk.FakeMessage{
		{Conversation: "c", Type: "//t/A", Body: []byte("one"), Properties: map[string]string{"k": "v"}},
		{Conversation: "c", Kind: sdk.EndDialog},
	}}
	out := fake.Run(handle)
	if out.Result != abi.Commit || len(out.Effects) != 1 {
		t.Fatalf("%+v", out)
	}
	reply := out.Effects[0]
	if reply.Conversation != "c" || reply.Outgoing.Type != "//t/A" || string(reply.Outgoing.Body) != "one" || reply.Outgoing.Properties["k"] != "v" {
		t.Errorf("%+v", reply)
	}
}

// TestPlainMessage: without a dialog there is nobody to answer.
func TestPlainMessage(t *testing.T) {
	fake := sdk.Fake{Messages: []sdk.FakeMessage{{Body: []byte("one")}}}
	if out := fake.Run(handle); out.Result != abi.Rollback || !errors.Is(out.Err, abi.ErrUnknownConversation) {
		t.Errorf("%+v", out)
	}
}

func TestModule(t *testing.T) {
	g := exampletest.Group{Plugin: exampletest.Load(t, nil), Handle: "c-1"}
	s := g.Run(t, "//t/A", []byte("one"), nil)
	if s.Verdict != broker.VerdictCommit || len(s.Effects) != 1 || string(s.Effects[0].Message.Body) != "one" {
		t.Errorf("%+v", s)
	}
}
