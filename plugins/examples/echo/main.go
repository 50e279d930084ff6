// Command echo sends every message back on its dialog.
package main

import "parley/sdk"

func init() { sdk.Handle(handle) }

func main() {}

func handle(u *sdk.Unit) error {
	for m := range u.Messages() {
		if m.Kind() != sdk.Application {
			continue // the far side ended; the host ends this side when the unit commits
		}
		reply := sdk.Outgoing{Type: m.Type(), Properties: m.Properties(), Body: m.Body()}
		if err := m.Reply(reply); err != nil {
			return err
		}
	}
	return nil
}
