package guest

import (
	"bytes"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/api"

	"parley/broker"
	"parley/sdk/abi"
)

// stage keeps e for the commit, unless the broker can tell already that it would refuse it.
func (in *instance) stage(e broker.Effect) int64 {
	if !in.handling() {
		return int64(abi.ErrNoUnit)
	}
	limits := &in.plugin.opts.Limits
	size := effectSize(&e)
	in.effectBytes += size
	if len(in.effects) >= limits.Effects || in.effectBytes > limits.EffectBytes {
		panic(errEffectLimit)
	}
	if in.inv.Effects != nil {
		asked := mono()
		err := in.inv.Effects.CheckEffect(&in.lazy, in.inv.Unit, &e)
		in.answered(asked)
		if err != nil {
			in.effectBytes -= size
			return in.refuse(err)
		}
	}
	in.effects = append(in.effects, e)
	return 0
}

// restage puts e in the place of effect i, which it replaces.
func (in *instance) restage(i int, e broker.Effect) int64 {
	in.effectBytes += effectSize(&e) - effectSize(&in.effects[i])
	if in.effectBytes > in.plugin.opts.Limits.EffectBytes {
		panic(errEffectLimit)
	}
	in.effects[i] = e
	return 0
}

func effectSize(e *broker.Effect) int {
	return e.Message.Size() + len(e.Key) + len(e.Value) + len(e.Text) + len(e.Cron) + len(e.Reason)
}

// refuse turns what the broker said into a code. Where it said nothing the guest is stopped: it must not be able to make anything of
// that, neither a failure of its own nor a commit without what it wanted.
func (in *instance) refuse(err error) int64 {
	if stop := in.check(); stop != nil {
		panic(stop)
	}
	if broker.Unanswered(err) {
		in.silence = err.Error()
		panic(errNoAnswer)
	}
	in.refusal = err.Error()
	return int64(errnoOf(err))
}

// outgoing reads what a send of either kind has in common: type, properties, body. Bodies and properties are copied.
func (a *args) outgoing(m *broker.Outgoing) {
	list := a.view()
	a.properties(m, list)
	m.Body = a.clone()
}

// clone reads bytes that are staged. More than could ever be staged are not even copied.
func (a *args) clone() []byte {
	b := a.view()
	if len(b) > a.in.plugin.opts.Limits.EffectBytes {
		panic(errEffectLimit)
	}
	return bytes.Clone(b)
}

func (a *args) properties(m *broker.Outgoing, list []byte) {
	if len(list) == 0 {
		return
	}
	if len(list) > a.in.plugin.opts.Limits.EffectBytes {
		panic(errEffectLimit)
	}
	a.in.charge(len(list) * bytesPerUnit) // they are many small pieces
	m.Properties = make(map[string]string)
	ok := abi.ParseProperties(list, func(name, value []byte) { m.Properties[string(name)] = string(value) })
	if !ok {
		a.refuse(abi.ErrInvalid)
	}
}

// conversation reads a conversation handle. An empty one means the conversation of the unit's first message.
func (in *instance) conversation(a *args) string {
	handle := a.name()
	if handle == "" && a.err == 0 {
		if messages := in.messages(); len(messages) > 0 {
			handle = messages[0].Conversation
		}
		if handle == "" {
			a.refuse(abi.ErrUnknownConversation)
		}
	}
	return handle
}

func dialogSend(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectSend, Conversation: in.conversation(&a)}
	e.Message.Type = a.name()
	a.outgoing(&e.Message)
	if a.err != 0 {
		return int64(a.err)
	}
	return in.stage(e)
}

func queueSend(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectSendTo, Queue: a.name()}
	e.Message.Type, e.Message.MessageID, e.Message.SessionID = a.name(), a.name(), a.name()
	a.outgoing(&e.Message)
	e.Message.Delay, e.Message.TTL = a.span(), a.span()
	if a.err != 0 {
		return int64(a.err)
	}
	return in.stage(e)
}

// span reads a time span in milliseconds, 0 or more.
func (a *args) span() time.Duration {
	ms := a.i64()
	if ms < 0 || ms > maxMillis {
		a.refuse(abi.ErrInvalid)
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

// lifetime reads a lifetime in milliseconds: 0 is the default, −1 is for ever.
func (a *args) lifetime() time.Duration {
	if int64(a.rest[0]) == -1 {
		a.rest = a.rest[1:]
		return broker.Forever
	}
	return a.span()
}

const maxMillis = int64(1<<63-1) / int64(time.Millisecond)

func dialogBegin(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectBegin}
	e.From, e.To, e.Contract, e.Group = a.name(), a.name(), a.name(), a.name()
	e.Lifetime = a.lifetime()
	buf := a.buf()
	if a.err != 0 {
		return int64(a.err)
	}
	if len(buf) < handleSize {
		return handleSize
	}
	handle, err := in.newHandle()
	if err != nil {
		return in.refuse(err)
	}
	e.Conversation = handle
	if n := in.stage(e); n < 0 {
		return n
	}
	return fill(in, buf, handle)
}

// handleSize is the length of a conversation handle, a UUID.
const handleSize = 36

func (in *instance) newHandle() (string, error) {
	if in.inv == nil || in.inv.Effects == nil {
		return "", fmt.Errorf("no dialog can begin here: %w", broker.ErrNotAvailable)
	}
	return in.inv.Effects.NewHandle(in.inv.Queue)
}

func dialogEnd(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectEnd, Conversation: in.conversation(&a)}
	if a.err != 0 {
		return int64(a.err)
	}
	return in.stage(e)
}

func dialogEndError(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectEnd, Conversation: in.conversation(&a)}
	e.Code = int(int32(a.u32()))
	e.Text = a.name()
	if e.Code <= 0 || e.Text == "" {
		a.refuse(abi.ErrInvalid)
	}
	if a.err != 0 {
		return int64(a.err)
	}
	return in.stage(e)
}

func dialogMove(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectMove, Conversation: in.conversation(&a), Group: a.name()}
	if a.err != 0 {
		return int64(a.err)
	}
	return in.stage(e)
}

func timerAfter(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectTimer, Conversation: in.conversation(&a), After: a.span()}
	if a.err != 0 {
		return int64(a.err)
	}
	return in.stage(e)
}

func timerCron(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectTimer, Conversation: in.conversation(&a), Cron: a.name(), Zone: a.name()}
	if e.Cron == "" {
		a.refuse(abi.ErrInvalid)
	}
	if a.err != 0 {
		return int64(a.err)
	}
	return in.stage(e)
}

func timerCancel(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectCancelTimer, Conversation: in.conversation(&a)}
	if a.err != 0 {
		return int64(a.err)
	}
	return in.stage(e)
}
