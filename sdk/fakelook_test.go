package sdk

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"parley/sdk/abi"
)

// TestFakeLooks: a Fake shows its queues and kept messages to a handler as the real host does.
func TestFakeLooks(t *testing.T) {
	f := dialog()
	f.Queues = map[string][]FakeMessage{"shop": {{Sequence: 1}, {Sequence: 2, Conversation: "c-7", Rollbacks: 5, Body: []byte("x")}, {Sequence: 3, Status: "locked"}}}
	f.Kept = map[string][]FakeMessage{"c-1": {{ID: "old", Status: "retained"}, {ID: "sent", Retained: 3, Status: "retained"}}}
	out := f.Run(func(u *Unit) error {
		found, err := u.Peek("shop", 2, 1)
		if err != nil || len(found) != 1 || found[0].Rollbacks() != 5 || string(found[0].Body()) != "x" || found[0].Status() != "ready" {
			t.Errorf("peek: %d, %v", len(found), err)
		}
		var kept []string
		rows, err := u.Message(0).Conversation().Retained()
		for _, r := range rows {
			kept = append(kept, fmt.Sprint(r.ID(), " ", r.Kept(), " ", r.Status()))
		}
		if want := []string{"old 0 retained", "sent 3 retained", "id-1 1 locked"}; err != nil || !reflect.DeepEqual(kept, want) {
			t.Errorf("retained: %v, %v", kept, err)
		}
		if u.Message(0).Status() != "locked" || u.Message(0).ID() != "id-1" {
			t.Error("the message of the unit has changed")
		}
		return errors.Join(u.EndConversation("shop", "c-7", 127, "gone"), u.Enable("shop", 3), u.Message(0).Conversation().Timer(time.Nanosecond))
	})
	want := []Effect{
		{Kind: EffectEndOther, Queue: "shop", Conversation: "c-7", Code: 127, Text: "gone"},
		{Kind: EffectEnable, Queue: "shop", Epoch: 3},
		{Kind: EffectTimer, Conversation: "c-1", After: time.Millisecond},
	}
	if !reflect.DeepEqual(out.Effects, want) {
		t.Errorf("staged %+v", out.Effects)
	}
}

// TestFakeRefusesLooks: with the codes of the real host.
func TestFakeRefusesLooks(t *testing.T) {
	f := dialog()
	f.Lacks = []string{"queue_peek", "conversation_end", "queue_enable"}
	granted := dialog()
	granted.Run(func(u *Unit) error {
		_, err := u.Peek("none", 0, 1)
		wantErr(t, "an unknown queue", err, abi.ErrUnknownQueue)
		_, err = u.Peek("none", 0, 101)
		wantErr(t, "too many", err, abi.ErrInvalid)
		_, err = u.Peek("none", 0, 1<<32+1)
		wantErr(t, "far too many", err, abi.ErrInvalid)
		_, err = u.Conversation("c-9").Retained()
		wantErr(t, "another conversation", err, abi.ErrUnknownConversation)
		wantErr(t, "no code", u.EndConversation("q", "c", 0, "x"), abi.ErrInvalid)
		wantErr(t, "an epoch below 0", u.Enable("q", -1), abi.ErrInvalid)
		wantErr(t, "a timer below 0", u.Message(0).Conversation().Timer(-1), abi.ErrInvalid)
		wantErr(t, "no spec", u.Message(0).Conversation().TimerCron("", ""), abi.ErrInvalid)
		return nil
	})
	f.Run(func(u *Unit) error {
		_, err := u.Peek("none", 0, 1)
		wantErr(t, "peek", err, abi.ErrDenied)
		wantErr(t, "end", u.EndConversation("q", "c", 1, "x"), abi.ErrDenied)
		wantErr(t, "enable", u.Enable("q", 1), abi.ErrDenied)
		return nil
	})
}

func wantErr(t *testing.T, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
