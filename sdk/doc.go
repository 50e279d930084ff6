// Package sdk is what the author of a Go plugin imports. A plugin is a main package that registers a Handler:
//
//	package main
//
//	import "parley/sdk"
//
//	func init() { sdk.Handle(handle) }
//
//	func main() {}
//
//	func handle(u *sdk.Unit) error {
//		for m := range u.Messages() {
//			if err := m.Reply(sdk.Outgoing{Body: m.Body()}); err != nil {
//				return err
//			}
//		}
//		return nil
//	}
//
// `runtime plugin build DIR --out FILE.wasm` compiles it with the stock Go toolchain. main is never run; registration
// belongs into init.
//
// # One unit of work
//
// The handler gets a Unit: the messages of one conversation group, or one plain message. Whatever it asks for (sends,
// dialogs, state) is staged and happens, together with the consumption of the messages, when it returns nil; otherwise
// nothing of it ever happened. An error rolls back and is shown as the message's last error; DeadLetter and RetryAfter say
// more. Message.DeadLetter takes single messages of the unit out and commits the rest. A panic rolls back too and costs the
// instance, so package variables never keep what a failed attempt wrote.
//
// # Tests
//
// Outside WebAssembly the package runs handlers against a Fake, so a handler is tested by plain `go test`:
//
//	fake := sdk.Fake{Messages: []sdk.FakeMessage{{Type: "order", Body: []byte(`{}`)}}}
//	outcome := fake.Run(handle)
//
// A Unit and what it returned belong to one attempt, and to the handler's goroutine: keep nothing of them after the handler
// returned. A goroutine that is left behind goes on in the instance's next attempt, at whatever time that is; its Unit answers
// ErrUnitDone from then on, and bytes that it read are overwritten. What shall never go on needs `instances: per_attempt` in the
// plugin's configuration.
package sdk
