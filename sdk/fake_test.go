package sdk

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"parley/sdk/abi"
)

var instant = time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC)

func dialog() *Fake {
	return &Fake{
		Queue: "orders", Attempt: 3, Time: instant, State: map[string][]byte{"left": []byte("10")},
		Config: map[string]string{"stock": "gear=4"},
		Messages: []FakeMessage{{
			ID: "id-1", Type: "//t/A", Conversation: "c-1", Group: "g-1", Service: "//s/A", FarService: "//s/B", Contract: "//c",
			Validation: "N", Sequence: 7, MessageSequence: 2, Priority: 8, DeliveryCount: 1, Enqueued: instant, Expires: instant,
			Properties: map[string]string{"k": "v"}, Body: []byte("body"),
		}},
	}
}

func TestFakeMessage(t *testing.T) {
	dialog().Run(func(u *Unit) error {
		m := u.Message(0)
		got := []any{
			u.Len(), m.ID(), m.Session(), m.Type(), m.Kind(), m.Group(), m.Service(), m.FarService(), m.Contract(),
			m.Validation(), m.Queue(), m.Sequence(), m.MessageSequence(), m.Priority(), m.DeliveryCount(), m.Attempt(),
			m.Enqueued().UTC(), m.Expires().UTC(), m.Property("k"), m.Property("none"), m.Properties(), string(m.Body()),
			m.Conversation().Handle(), u.Config("stock"), u.Config("none"), u.Now().UTC(),
		}
		want := []any{
			1, "id-1", "", "//t/A", Application, "g-1", "//s/A", "//s/B", "//c",
			"N", "orders", int64(7), int64(2), 8, 1, 3,
			instant, instant, "v", "",
			map[string]string{"k": "v"},
			"body", "c-1", "gear=4", "", instant,
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got\n%v, want\n%v", got, want)
		}
		if none := u.Message(1); none.ID() != "" || none.Body() != nil || none.Properties() != nil {
			t.Error("a message that is not there has content")
		}
		return nil
	})
}

// TestTransaction: effects and state of an attempt that fails never happened.
func TestTransaction(t *testing.T) {
	f := dialog()
	stage := func(u *Unit) error {
		return errors.Join(u.Put("left", []byte("9")), u.Send("q", Outgoing{Body: []byte("x")}), u.Message(0).Reply(Outgoing{}))
	}
	for name, c := range map[string]struct {
		err    error
		result int32
		pause  time.Duration
	}{
		"error":       {errors.New("no"), abi.Rollback, -1},
		"retry":       {fmt.Errorf("wrapped: %w", RetryAfter(errors.New("no"), 1500*time.Millisecond)), abi.Rollback, 1500 * time.Millisecond},
		"dead letter": {fmt.Errorf("wrapped: %w", DeadLetter("Bad", "very")), abi.DeadLetter, -1},
	} {
		out := f.Run(func(u *Unit) error { return errors.Join(stage(u), c.err) })
		if out.Result != c.result || len(out.Effects) != 0 || out.Pause != c.pause || string(f.State["left"]) != "10" {
			t.Errorf("%s: %+v, state %q", name, out, f.State)
		}
	}
	if out := f.Run(stage); out.Result != abi.Commit || len(out.Effects) != 3 || string(f.State["left"]) != "9" {
		t.Errorf("commit: %+v, state %q", out, f.State)
	}
}

// TestRegistered: Run without a handler takes the registered one, and a plugin that registered none rolls back.
func TestRegistered(t *testing.T) {
	if out := dialog().Run(nil); out.Result != abi.Rollback {
		t.Errorf("%+v", out)
	}
	defer Handle(registered)
	Handle(func(u *Unit) error { return u.Put("left", nil) })
	if out := dialog().Run(nil); out.Result != abi.Commit || len(out.Effects) != 1 {
		t.Errorf("%+v", out)
	}
}

// TestStateOfAttempt: a read sees what the attempt wrote, and a plain message has no state.
func TestStateOfAttempt(t *testing.T) {
	f := dialog()
	f.Run(func(u *Unit) error {
		read := func() string {
			v, ok, err := u.Get("left")
			return fmt.Sprintf("%s %v %v", v, ok, err)
		}
		steps := []string{read()}
		u.Put("left", []byte("9"))
		steps = append(steps, read())
		u.Delete("left")
		steps = append(steps, read())
		if want := []string{"10 true <nil>", "9 true <nil>", " false <nil>"}; !reflect.DeepEqual(steps, want) {
			t.Errorf("got %q, want %q", steps, want)
		}
		return nil
	})
	if _, left := f.State["left"]; left {
		t.Errorf("state %q", f.State)
	}
	plain := Fake{Messages: []FakeMessage{{}}}
	plain.Run(func(u *Unit) error {
		_, _, err := u.Get("left")
		if !errors.Is(err, abi.ErrNoState) || !errors.Is(u.Put("a", nil), abi.ErrNoState) || !errors.Is(u.Delete("a"), abi.ErrNoState) {
			t.Errorf("state of a plain message: %v", err)
		}
		return nil
	})
}

// TestRefuse: a handler sees the code of a refusal, and what was refused is not staged.
func TestRefuse(t *testing.T) {
	f := dialog()
	f.Refuse = func(e Effect) error {
		if e.Kind == EffectSend {
			return abi.ErrUnknownQueue
		}
		return errors.New("other")
	}
	out := f.Run(func(u *Unit) error {
		if err := u.Send("q", Outgoing{}); !errors.Is(err, abi.ErrUnknownQueue) {
			t.Errorf("send: %v", err)
		}
		if _, err := u.Begin(Dialog{From: "a", To: "b"}); !errors.Is(err, abi.ErrRefused) {
			t.Errorf("begin: %v", err)
		}
		return nil
	})
	if len(out.Effects) != 0 {
		t.Errorf("staged %+v", out.Effects)
	}
}

// TestConversation: each verb of a conversation, the wrong ones too.
func TestConversation(t *testing.T) {
	out := dialog().Run(func(u *Unit) error {
		c, err := u.Begin(Dialog{From: "a", To: "b", Lifetime: Forever})
		if err != nil || len(c.Handle()) != 36 {
			t.Errorf("begin: %q, %v", c.Handle(), err)
		}
		if err := errors.Join(c.Send(Outgoing{Type: "t"}), c.End(), u.Conversation("c-9").EndWithError(5, "x")); err != nil {
			t.Error(err)
		}
		if err := errors.Join(c.Timer(time.Second), c.TimerCron("@hourly", "UTC"), c.CancelTimer(), c.MoveTo("g")); err != nil {
			t.Error(err)
		}
		none := u.Conversation("")
		_, kept := none.Retained()
		for i, err := range []error{
			none.Send(Outgoing{}), none.End(), none.EndWithError(1, "x"), none.Timer(1), none.TimerCron("@hourly", ""), none.CancelTimer(),
			none.MoveTo("g"), kept,
		} {
			if !errors.Is(err, abi.ErrUnknownConversation) {
				t.Errorf("verb %d of no conversation: %v", i, err)
			}
		}
		if err := c.EndWithError(math.MaxInt64, "x"); !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("code: %v", err)
		}
		return nil
	})
	kinds := make([]EffectKind, 0, len(out.Effects))
	for _, e := range out.Effects {
		kinds = append(kinds, e.Kind)
	}
	if want := []EffectKind{
		EffectBegin, EffectDialogSend, EffectEnd, EffectEnd, EffectTimer, EffectTimer, EffectTimer, EffectMove,
	}; !reflect.DeepEqual(kinds, want) {
		t.Errorf("staged %v, want %v", kinds, want)
	}
}

func TestObservability(t *testing.T) {
	out := dialog().Run(func(u *Unit) error {
		end := u.Span("work")
		u.Log(Warn, "hello")
		end()
		b := make([]byte, 200_000)
		u.Random(b)
		if reflect.DeepEqual(b[:100], make([]byte, 100)) || reflect.DeepEqual(b[199_900:], make([]byte, 100)) {
			t.Error("random bytes are zeroes")
		}
		return errors.New("rolled back all the same")
	})
	if !reflect.DeepEqual(out.Logs, []string{"hello"}) || !reflect.DeepEqual(out.Spans, []string{"work"}) {
		t.Errorf("%+v", out)
	}
}

// TestLongValues: values longer than any buffer arrive whole.
func TestLongValues(t *testing.T) {
	long := make([]byte, 300_000)
	long[299_999] = 7
	f := Fake{Messages: []FakeMessage{
		{Type: string(long), Body: long, Properties: map[string]string{"k": string(long)}},
		{Body: []byte("second")},
	}}
	f.Run(func(u *Unit) error {
		first, second := u.Message(0).Body(), u.Message(1).Body()
		if string(first) != string(long) || string(second) != "second" {
			t.Errorf("bodies of %d and %d bytes", len(first), len(second))
		}
		m := u.Message(0)
		if m.Type() != string(long) || m.Property("k") != string(long) || m.Properties()["k"] != string(long) {
			t.Error("a long value was cut")
		}
		return nil
	})
}
