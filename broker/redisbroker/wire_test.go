package redisbroker

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Fault is what a test makes happen to one call.
type Fault uint8

// The faults.
const (
	NoFault   Fault = iota
	LoseCall        // the call never reaches the server
	LoseReply       // the server executes it, the reply is lost
)

// wire stands between one client and its server and lets chosen script calls get lost.
type wire struct {
	mu      sync.Mutex // guards the fields below
	skip, n int        // calls that go through first; calls that are struck then
	fault   Fault
	held    *heldCall // takes the next call that would be struck
	struck  bool
	choose  func(script string) Fault // says it for every call instead, by the script's name
	scripts map[string]*script        // of the client
	plain   *atomic.Int64             // counts transactions of which a script is a part: turns of plain messages
}

// heldCall is a call that was taken off the wire.
type heldCall struct {
	w    *wire
	send func()
}

func (w *wire) set(skip, n int, f Fault, h *heldCall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.skip, w.n, w.fault, w.held, w.struck = skip, n, f, h, false
}

func (w *wire) loseReply(skip, n int) { w.set(skip, n, LoseReply, nil) }

func (w *wire) loseCall(skip, n int) { w.set(skip, n, LoseCall, nil) }

func (w *wire) hold(skip int) (deliver func() bool) {
	h := &heldCall{w: w}
	w.set(skip, 1, LoseCall, h)
	return h.deliver
}

func (w *wire) calm() (untouched bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	untouched = w.n > 0 && !w.struck
	w.skip, w.n, w.fault, w.held = 0, 0, NoFault, nil
	return untouched
}

func (h *heldCall) deliver() bool {
	h.w.mu.Lock()
	send := h.send
	h.send = nil
	h.w.mu.Unlock()
	if send == nil {
		return false
	}
	send()
	return true
}

// next says what happens to the next script call, which again makes anew.
func (w *wire) next(cmd redis.Cmder, again func()) Fault {
	if w.choose != nil {
		return w.choose(w.nameOf(cmd))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.skip > 0 {
		w.skip--
		return NoFault
	}
	if w.n == 0 {
		return NoFault
	}
	w.n--
	w.struck = true
	if w.held != nil {
		w.held.send, w.held = again, nil
	}
	return w.fault
}

// nameOf is the name of the script that an EVALSHA calls, "" for another command.
func (w *wire) nameOf(cmd redis.Cmder) string {
	for name, s := range w.scripts {
		if cmd.Args()[1] == s.sha {
			return name
		}
	}
	return ""
}

// DialHook is none.
func (w *wire) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook strikes single commands.
func (w *wire) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !isScript(cmd) {
			return next(ctx, cmd)
		}
		switch w.next(cmd, func() { _ = w.send(context.Background(), next, again(cmd)) }) {
		case LoseCall:
			cmd.SetErr(io.EOF)
			return io.EOF
		case LoseReply:
			_ = w.send(ctx, next, cmd)
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return w.send(ctx, next, cmd)
	}
}

// send makes a call, with the script's text when the server does not know it yet: to a test that is one call, not two.
func (w *wire) send(ctx context.Context, next redis.ProcessHook, cmd redis.Cmder) error {
	err := next(ctx, cmd)
	s := w.scripts[w.nameOf(cmd)]
	if s == nil || !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return err
	}
	cmd.Args()[0], cmd.Args()[1] = "eval", s.source
	cmd.SetErr(nil)
	return next(ctx, cmd)
}

// ProcessPipelineHook strikes transactions of which a script is a part, whole.
func (w *wire) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		i := slices.IndexFunc(cmds, isScript)
		if i < 0 || cmds[0].Name() != "multi" {
			return next(ctx, cmds)
		}
		if w.plain != nil {
			w.plain.Add(1)
		}
		late := slices.Clone(cmds) // MULTI and EXEC as the client made them
		for i := 1; i < len(cmds)-1; i++ {
			late[i] = again(cmds[i])
		}
		fault := w.next(cmds[i], func() { _ = next(context.Background(), late) })
		if fault == NoFault {
			return next(ctx, cmds)
		}
		if fault == LoseReply {
			_ = next(ctx, cmds)
		}
		for _, c := range cmds {
			c.SetErr(io.EOF)
		}
		return io.EOF
	}
}

func isScript(cmd redis.Cmder) bool { return strings.HasPrefix(strings.ToLower(cmd.Name()), "eval") }

// again is the same command, to be sent later.
func again(cmd redis.Cmder) redis.Cmder { return redis.NewCmd(context.Background(), cmd.Args()...) }
