// Command verbs does what the body of its message says. It uses every verb of the SDK.
package main

import (
	"errors"
	"fmt"
	"time"

	"parley/sdk"
	"parley/sdk/abi"
)

func init() { sdk.Handle(handle) }

func main() {}

var count int

func handle(u *sdk.Unit) error {
	m := u.Message(0)
	switch string(m.Body()) {
	case "panic":
		count = 100
		panic("a verb that panics")
	case "count 1":
		if count++; count != 1 {
			return fmt.Errorf("the count is %d: an instance was kept", count)
		}
		count = 0
	case "allocate":
		var all [][]byte
		for {
			all = append(all, make([]byte, 1<<20))
			_ = len(all)
		}
	case "recurse":
		fmt.Println(recurse(1))
	case "peek":
		_, err := u.Peek("shop", 0, 10)
		return err
	case "peek quietly":
		_, _ = u.Peek("shop", 0, 10)
	case "peek for ever":
		for {
			_, _ = u.Peek("shop", 0, 10)
		}
	case "enable":
		return u.Enable("shop", 1)
	case "look":
		return look(u, m)
	case "later":
		return sdk.RetryAfter(errors.New("not now"), 3*time.Second)
	case "dead":
		return fmt.Errorf("wrapped: %w", sdk.DeadLetter("Bad", "very"))
	case "everything":
		return everything(u, m)
	}
	return nil
}

func recurse(n int) int {
	var pad [64]int
	pad[n%64] = n
	return recurse(n+1) + pad[(n+1)%64]
}

func everything(u *sdk.Unit, m sdk.Message) error {
	defer u.Span("work")()
	left, ok, err := u.Get("left")
	if err != nil || !ok {
		return fmt.Errorf("state: %q, %v, %v", left, ok, err)
	}
	if err := errors.Join(u.Put("left", append(left, '!')), u.Delete("gone")); err != nil {
		return err
	}
	if again, _, err := u.Get("left"); err != nil || string(again) != "10!" {
		return fmt.Errorf("state after a write: %q, %v", again, err)
	}
	audit, err := u.Begin(sdk.Dialog{From: m.Service(), To: "//shop/Audit", Lifetime: sdk.Forever})
	if err != nil {
		return err
	}
	err = errors.Join(
		audit.Send(sdk.Outgoing{Type: "//shop/Note", Properties: m.Properties(), Body: []byte("first")}),
		audit.End(),
		m.Conversation().EndWithError(127, "enough"),
		u.Send("triaged", sdk.Outgoing{ID: "m", Session: "s", Delay: time.Second, TTL: 2 * time.Second}),
	)
	if err != nil {
		return err
	}
	u.Log(sdk.Info, describe(u, m))
	return nil
}

// look uses everything that looks and commands.
func look(u *sdk.Unit, m sdk.Message) error {
	found, err := u.Peek("shop", 100, 10)
	if err != nil {
		return err
	}
	said := fmt.Sprint(len(found), " ", found[0].Sequence(), " ", found[0].Rollbacks(), " ", found[1].Status(), " ", string(found[0].Body()))
	handle := found[0].Conversation().Handle()
	rows, err := m.Conversation().Retained()
	if err != nil {
		return err
	}
	for _, r := range rows {
		said += fmt.Sprint(" ", r.ID(), "=", r.Kept())
	}
	u.Log(sdk.Info, said)
	c := m.Conversation()
	return errors.Join(
		u.EndConversation("shop", handle, 127, "gone"), u.Enable("shop", 3),
		c.Timer(1500*time.Microsecond), c.TimerCron("@daily", "Europe/Stockholm"), c.CancelTimer(), c.MoveTo("g-9"),
	)
}

func describe(u *sdk.Unit, m sdk.Message) string {
	var no abi.Errno
	errors.As(m.Conversation().Timer(-time.Second), &no)
	return fmt.Sprint(m.ID(), " ", m.Session(), " ", m.Type(), " ", m.Kind(), " ", m.Conversation().Handle(), " ", m.Group(), " ",
		m.Service(), " ", m.FarService(), " ", m.Contract(), " ", m.Validation(), " ", m.Queue(), " ",
		m.Sequence(), " ", m.MessageSequence(), " ", m.Priority(), " ", m.DeliveryCount(), " ", m.Attempt(), " ",
		len(u.Config("long")), " ", no.Name(), " ", u.Now().UTC().Format(time.RFC3339), " ", len(u.Traceparent()))
}
