// Command forward is a plugin for tests: it sends every message on to the queue out, in the same session.
package main

import "parley/sdk"

func init() { sdk.Handle(handle) }

func main() {}

func handle(u *sdk.Unit) error {
	for m := range u.Messages() {
		if err := u.Send("out", sdk.Outgoing{Session: m.Session(), Body: m.Body()}); err != nil {
			return err
		}
	}
	return nil
}
