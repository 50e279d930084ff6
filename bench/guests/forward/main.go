// Command forward sends the body of its message on to the queue "target".
package main

import "parley/sdk"

func init() { sdk.Handle(handle) }

func main() {}

func handle(u *sdk.Unit) error {
	for m := range u.Messages() {
		if err := u.Send("target", sdk.Outgoing{Body: m.Body()}); err != nil {
			return err
		}
	}
	return nil
}
