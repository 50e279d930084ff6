// Command leftover is a handler whose goroutines outlive their unit of work.
package main

import (
	"errors"
	"fmt"

	"parley/sdk"
	"parley/sdk/abi"
)

func init() { sdk.Handle(handle) }

func main() {}

var (
	wake = make(chan bool)
	said = make(chan string)
)

func handle(u *sdk.Unit) error {
	switch string(u.Message(0).Body()) {
	case "leave":
		m := u.Message(0)
		go func() {
			<-wake
			said <- fmt.Sprint("left: ", code(u.Send("other", sdk.Outgoing{})), " ", code(m.DeadLetter("Mine", "")), " ", code(m.Reply(sdk.Outgoing{})),
				" ", u.Len(), " messages")
		}()
	case "look":
		wake <- true
		u.Log(sdk.Info, <-said)
		return u.Send("own", sdk.Outgoing{Body: u.Message(0).Body()})
	case "sort":
		return errors.Join(u.Message(1).DeadLetter("Bad", "it is bad"), u.Send("own", sdk.Outgoing{Body: u.Message(2).Body()}))
	}
	return nil
}

func code(err error) string {
	var no abi.Errno
	if errors.As(err, &no) {
		return no.Name()
	}
	return fmt.Sprint(err)
}
