package guest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/broker"
)

var command = sync.OnceValues(func() ([]byte, error) {
	out := filepath.Join(built.dir, "command.wasm")
	cmd := exec.Command("go", "build", "-o", out, "./testdata/command")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if said, err := cmd.CombinedOutput(); err != nil {
		return said, err
	}
	return os.ReadFile(out)
})

func loadCommand(t *testing.T, opts Options) *Plugin {
	t.Helper()
	wasm, err := command()
	if err != nil {
		t.Fatalf("%v\n%s", err, wasm)
	}
	return load(t, wasm, opts)
}

func dialogMessage(body string) broker.Message {
	m := plain(body)
	m.Conversation, m.Group, m.MessageSeq = newHandle, "g-1", 0
	return m
}

// TestCommandReplies: a WASI command needs no SDK: stdin is the body, stdout the reply.
func TestCommandReplies(t *testing.T) {
	p := loadCommand(t, Options{Config: map[string]string{"reply_type": "//t/Answer"}})
	r := p.Run(t.Context(), invocation(dialogMessage("hello"), dialogMessage("exit0")))
	wantCommit(t, r)
	wantEffects(t, r.Settlement.Effects, []broker.Effect{
		{Kind: broker.EffectSend, Conversation: newHandle, Message: broker.Outgoing{Type: "//t/Answer", Body: []byte("HELLO")}},
		{Kind: broker.EffectSend, Conversation: newHandle, Message: broker.Outgoing{Type: "//t/Answer", Body: []byte("done")}},
	})
	if lines := of(r.Logs, "stderr"); len(lines) != 1 || lines[0] != "note" {
		t.Errorf("stderr: %q", lines)
	}
	if len(of(r.Logs, "stdout")) != 0 || r.Fuel == 0 {
		t.Errorf("logs %+v, fuel %d", r.Logs, r.Fuel)
	}
	if info := p.Info(); !info.Command {
		t.Errorf("%+v", info)
	}
}

// TestCommandWithoutConversation: what a command prints for a plain message or for the end of a dialog is a diagnostic.
func TestCommandWithoutConversation(t *testing.T) {
	p := loadCommand(t, Options{})
	end := dialogMessage("end")
	end.Kind = broker.KindEndDialog
	for _, m := range []broker.Message{plain("end"), end} {
		r := p.Run(t.Context(), invocation(m))
		wantCommit(t, r)
		if lines := of(r.Logs, "stdout"); len(lines) != 1 || lines[0] != "END" || len(r.Settlement.Effects) != 0 {
			t.Errorf("stdout %q, effects %+v", lines, r.Settlement.Effects)
		}
	}
}

func TestCommandEnvironment(t *testing.T) {
	p := loadCommand(t, Options{Config: map[string]string{"stock": "gear=4"}})
	inv := dialogInvocation()
	inv.Unit.Messages = inv.Unit.Messages[:1]
	inv.Unit.Messages[0].Body = []byte("environment")
	inv.Unit.Messages[0].Properties = map[string]string{"content-type": "text/plain", "nul": "\x00"}
	r := p.Run(t.Context(), inv)
	wantCommit(t, r)
	const want = `PARLEY_ATTEMPT=3
PARLEY_CONFIG_STOCK=gear=4
PARLEY_CONTRACT=//shop/Stock
PARLEY_CONVERSATION=c-1
PARLEY_DELIVERY_COUNT=2
PARLEY_FAR_SERVICE=//shop/Line
PARLEY_GROUP=g-1
PARLEY_MESSAGE_ID=id-1
PARLEY_MESSAGE_KIND=S
PARLEY_MESSAGE_TYPE=//shop/StockRequest
PARLEY_PROPERTY_CONTENT_TYPE=text/plain
PARLEY_QUEUE=orders
PARLEY_SEQUENCE_NUMBER=4711
PARLEY_SERVICE=//shop/Inventory
PARLEY_SESSION_ID=s-1
TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`
	if got := string(r.Settlement.Effects[0].Message.Body); got != want {
		t.Errorf("the environment is\n%s", got)
	}
}

// TestCommandFails: any exit but 0 rolls the whole unit back, with the end of stderr as the error.
func TestCommandFails(t *testing.T) {
	p := loadCommand(t, Options{Limits: Limits{Time: 500 * time.Millisecond}})
	for _, c := range []struct{ body, reason, text string }{
		{"exit", broker.ReasonHandlerError, "exit code 3: the stock is gone"},
		{"panic", broker.ReasonHandlerError, "exit code 2: panic: boom"},
		{"flood", broker.ReasonOutputLimit, "262144 bytes"},
		{"sleep", broker.ReasonDeadlineExceeded, "500ms"},
		{"spin", broker.ReasonDeadlineExceeded, "500ms"},
	} {
		r := p.Run(t.Context(), invocation(dialogMessage("fine"), dialogMessage(c.body), dialogMessage("never")))
		wantRollback(t, r, c.reason, c.text)
		if lines := of(r.Logs, "stderr"); len(lines) == 0 || lines[0] != "note" {
			t.Errorf("%s: stderr is %q", c.body, lines)
		}
	}
}

// TestCommandReplyRefused: a reply the broker refuses is a rollback with the broker's words.
func TestCommandReplyRefused(t *testing.T) {
	p := loadCommand(t, Options{})
	inv := invocation(dialogMessage("hello"))
	inv.Effects = effects{check: func(context.Context, *broker.Effect) error { return broker.ErrTypeNotInContract }}
	r := p.Run(t.Context(), inv)
	wantRollback(t, r, broker.ReasonHandlerError, "8431")
	if !strings.Contains(r.Settlement.FailText, "the reply is refused") {
		t.Errorf("%q", r.Settlement.FailText)
	}
}
