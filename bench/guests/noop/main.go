// Command noop reads its message and commits.
package main

import "parley/sdk"

func init() { sdk.Handle(handle) }

func main() {}

func handle(u *sdk.Unit) error {
	for m := range u.Messages() {
		_ = m.Type()
		_ = m.Body()
	}
	return nil
}
