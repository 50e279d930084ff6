//go:build !wasip1

package sdk

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"parley/sdk/abi"
)

// leftovers is what a handler may leave behind.
type leftovers struct {
	unit         *Unit
	message      Message
	conversation Conversation
	retained     Retained
}

func leave(f *Fake) (l leftovers) {
	f.Run(func(u *Unit) error {
		m := u.Message(0)
		l = leftovers{u, m, m.Conversation(), Retained{m}}
		return nil
	})
	return l
}

// TestUnitIsDoneAfterItsHandler calls every method of what a handler left behind: each error is ErrUnitDone, nothing else says
// anything, and nothing is staged in the next attempt. Now and Random belong to no unit.
func TestUnitIsDoneAfterItsHandler(t *testing.T) {
	f := dialog()
	f.Queues = map[string][]FakeMessage{"": {{}}}
	l := leave(f)
	out := f.Run(func(*Unit) error {
		for _, v := range []any{l.unit, l.message, l.conversation, l.retained} {
			tryAll(t, reflect.ValueOf(v))
		}
		for m := range l.unit.Messages() {
			t.Errorf("it has the message %v", m)
		}
		return nil
	})
	if len(out.Effects)+len(out.Logs)+len(out.Spans) > 0 || out.Result != abi.Commit {
		t.Errorf("in the next attempt: %+v", out)
	}
}

// says is the methods that answer after the end of the unit: those that ask no host, and those that are no unit's.
var says = map[string]bool{"Now": true, "Random": true, "Handle": true, "Message": true, "Messages": true, "Conversation": true, "Span": true}

// tryAll calls every method of v with zero values.
func tryAll(t *testing.T, v reflect.Value) {
	t.Helper()
	for i := range v.NumMethod() {
		name := v.Type().Method(i).Name
		method := v.Method(i)
		args := make([]reflect.Value, method.Type().NumIn())
		for k := range args {
			args[k] = reflect.Zero(method.Type().In(k))
		}
		results := method.Call(args)
		for _, r := range results {
			switch err, isError := r.Interface().(error); {
			case isError && !errors.Is(err, ErrUnitDone):
				t.Errorf("%v.%s: %v, want %v", v.Type(), name, err, ErrUnitDone)
			case isError || says[name]:
			case r.Type() == reflect.TypeFor[error]():
				t.Errorf("%v.%s: no error, want %v", v.Type(), name, ErrUnitDone)
			case v.Type() == reflect.TypeFor[*Unit]() && name == "Begin": // a conversation with no handle
			case r.Type() == reflect.TypeFor[time.Time]() && r.Interface().(time.Time).UnixMilli() == 0:
			case !r.IsZero():
				t.Errorf("%v.%s: says %v", v.Type(), name, r)
			}
		}
	}
}

// TestLeftoverGoroutines: goroutines that go on sending while their handler returns get in what was in time, whole, and nothing
// later. The race detector looks on.
func TestLeftoverGoroutines(t *testing.T) {
	f := &Fake{Messages: []FakeMessage{{Session: "s"}}}
	var left sync.WaitGroup
	for range 20 {
		var sent [4]int
		started := make(chan bool, len(sent))
		out := f.Run(func(u *Unit) error {
			for i := range sent {
				left.Go(func() {
					for u.Send("q", Outgoing{ID: u.Message(0).Session()}) == nil {
						if sent[i]++; sent[i] == 1 {
							started <- true
						}
					}
				})
			}
			for range sent {
				<-started
			}
			return nil
		})
		left.Wait()
		if n := sent[0] + sent[1] + sent[2] + sent[3]; len(out.Effects) != n {
			t.Fatalf("%d effects, %d sends said that they were staged", len(out.Effects), n)
		}
	}
}

// TestUnitIsDoneAfterAPanic: also for what a handler that panicked left behind.
func TestUnitIsDoneAfterAPanic(t *testing.T) {
	var kept *Unit
	func() {
		defer func() { _ = recover() }()
		dialog().Run(func(u *Unit) error {
			kept = u
			panic("a handler that panics")
		})
	}()
	if err := kept.Put("k", nil); !errors.Is(err, ErrUnitDone) {
		t.Errorf("got %v", err)
	}
}

// TestDeadLetterOfOne: single messages are staged with their reasons, the last one for a message counts, and only messages of the
// unit can be.
func TestDeadLetterOfOne(t *testing.T) {
	f := dialog()
	f.Messages = append(f.Messages, FakeMessage{ID: "id-2"}, FakeMessage{ID: "id-3"})
	f.Queues = map[string][]FakeMessage{"shop": {{Sequence: 1}}}
	refuse := false
	f.Refuse = func(Effect) error {
		if refuse {
			return abi.ErrTooLarge
		}
		return nil
	}
	out := f.Run(func(u *Unit) error {
		found, err := u.Peek("shop", 0, 1)
		if err != nil || !errors.Is(found[0].DeadLetter("Bad", ""), abi.ErrIndex) || !errors.Is(u.Message(3).DeadLetter("Bad", ""), abi.ErrIndex) {
			t.Errorf("a message that is not of the unit: %v", err)
		}
		err = errors.Join(u.Message(1).DeadLetter("First", "one"), u.Put("k", nil), u.Message(0).DeadLetter("Bad", "very"), u.Message(1).DeadLetter("Last", "two"))
		refuse = true
		if !errors.Is(u.Message(1).DeadLetter("Refused", ""), abi.ErrTooLarge) {
			t.Error("what is refused is staged")
		}
		return err
	})
	want := []Effect{
		{Kind: EffectPutState, Key: "k"},
		{Kind: EffectDeadLetter, Index: 0, Reason: "Bad", Text: "very"},
		{Kind: EffectDeadLetter, Index: 1, Reason: "Last", Text: "two"},
	}
	if out.Result != abi.Commit || !reflect.DeepEqual(out.Effects, want) {
		t.Errorf("%v, got\n%+v, want\n%+v", out.Err, out.Effects, want)
	}
}
