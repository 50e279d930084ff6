package main

import (
	"reflect"
	"strings"
	"testing"

	"parley/broker"
	"parley/host/guest"
	"parley/plugins/examples/internal/exampletest"
	"parley/sdk"
	"parley/sdk/abi"
)

const disabled = `{"type":"queue_disabled","queue":"inventory","reason":"poison","rollbacks":5,"sequence_number":7,` +
	`"conversation_handle":"c-7","last_error":"HandlerError: obsolete","epoch":3}`

func TestHandle(t *testing.T) {
	poison := sdk.FakeMessage{Sequence: 7, Conversation: "c-7", Rollbacks: 5, Validation: "N", Body: []byte(`{"part":"shaft-2"}`)}
	end := sdk.Effect{Kind: sdk.EffectEndOther, Queue: "inventory", Conversation: "c-7", Code: 127, Text: "Unable to process message."}
	enable := sdk.Effect{Kind: sdk.EffectEnable, Queue: "inventory", Epoch: 3}
	other, plain, again, empty, xml := poison, poison, poison, poison, poison
	other.Sequence, plain.Conversation, again.Rollbacks, empty.Validation, empty.Body = 8, "", 4, "E", nil
	xml.Validation, xml.Body = "X", []byte("<a/>")
	for _, c := range []struct {
		name, body string
		on         []sdk.FakeMessage
		lacks      []string
		result     int32
		effects    []sdk.Effect
		says       string // in a log line or the error
	}{
		{"the poison is there", disabled, []sdk.FakeMessage{poison, other}, nil, abi.Commit, []sdk.Effect{end, enable}, `binary message: "{\"part\":\"shaft-2\"}"`},
		{"it is empty", disabled, []sdk.FakeMessage{empty}, nil, abi.Commit, []sdk.Effect{end, enable}, "Empty message."},
		{"it is XML", disabled, []sdk.FakeMessage{xml}, nil, abi.Commit, []sdk.Effect{end, enable}, "<a/>"},
		{"it is gone", disabled, []sdk.FakeMessage{other}, nil, abi.Commit, []sdk.Effect{enable}, "gone already"},
		{"the queue is empty", disabled, []sdk.FakeMessage{}, nil, abi.Commit, []sdk.Effect{enable}, "gone already"},
		{"the queue was repaired meanwhile", disabled, []sdk.FakeMessage{again}, nil, abi.Commit, []sdk.Effect{enable}, "gone already"},
		{"no conversation", disabled, []sdk.FakeMessage{plain}, nil, abi.DeadLetter, nil, "NoConversation"},
		{"no event", `{`, nil, nil, abi.DeadLetter, nil, "NotAnEvent"},
		{"another event", `{"type":"queue_activation","queue":"inventory"}`, nil, nil, abi.Commit, nil, "nothing to do"},
		{"it may not look", disabled, nil, []string{"queue_peek"}, abi.Rollback, nil, "ERR_DENIED"},
		{"it may not end", disabled, []sdk.FakeMessage{poison}, []string{"conversation_end"}, abi.Rollback, nil, "ERR_DENIED"},
		{"it may not turn on", disabled, []sdk.FakeMessage{poison}, []string{"queue_enable"}, abi.Rollback, nil, "ERR_DENIED"},
	} {
		fake := sdk.Fake{
			Queue: "repairs", Lacks: c.lacks, Queues: map[string][]sdk.FakeMessage{"inventory": c.on},
			Messages: []sdk.FakeMessage{{Type: "parley/EventNotification", Body: []byte(c.body)}},
		}
		out := fake.Run(handle)
		if out.Result != c.result || !reflect.DeepEqual(out.Effects, c.effects) {
			t.Errorf("%s: %+v", c.name, out)
		}
		said := strings.Join(out.Logs, "\n")
		if out.Err != nil {
			said += out.Err.Error()
		}
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: it said %q, want %q in it", c.name, said, c.says)
		}
	}
}

// TestCompiled: the module asks for exactly the capabilities its README grants, and works with them.
func TestCompiled(t *testing.T) {
	look := exampletest.Look{Queues: map[string][]broker.Message{"inventory": {{SequenceNumber: 7, Conversation: "c-7", PoisonCount: 5}}}}
	p := exampletest.LoadWith(t, guest.Options{Capabilities: guest.Capabilities(), Peeker: look, Config: map[string]string{"error_code": "500", "error_text": "sorry"}})
	s := (&exampletest.Group{Plugin: p}).Run(t, "parley/EventNotification", []byte(disabled), nil)
	want := []broker.Effect{
		{Kind: broker.EffectCommandEnd, Queue: "inventory", Conversation: "c-7", Code: 500, Text: "sorry"},
		{Kind: broker.EffectCommandEnable, Queue: "inventory", Epoch: 3},
	}
	if s.Verdict != broker.VerdictCommit || !reflect.DeepEqual(s.Effects, want) {
		t.Errorf("%+v", s)
	}
	p = exampletest.LoadWith(t, guest.Options{Peeker: look})
	if s := (&exampletest.Group{Plugin: p}).Run(t, "parley/EventNotification", []byte(disabled), nil); s.FailReason != broker.ReasonCapabilityDenied {
		t.Errorf("without capabilities: %+v", s)
	}
}
