package guest

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"parley/sdk/abi"
)

// function implements one import of parley_v1. It reads its parameters from args in order, pointers as offsets into mem,
// and returns the result: negative ones are abi.Errno values.
type function func(in *instance, mem api.Memory, args []uint64) int64

// functions holds the implementation of every name of abi.Functions.
var functions = map[string]function{
	"message_count":       messageCount,
	"message_field":       messageField,
	"message_number":      messageNumber,
	"message_property":    messageProperty,
	"message_properties":  messageProperties,
	"message_body":        messageBody,
	"dialog_begin":        dialogBegin,
	"dialog_send":         dialogSend,
	"dialog_end":          dialogEnd,
	"dialog_end_error":    dialogEndError,
	"dialog_move":         dialogMove,
	"dialog_retained":     dialogRetained,
	"timer_after":         timerAfter,
	"timer_cron":          timerCron,
	"timer_cancel":        timerCancel,
	"state_get":           stateGet,
	"state_put":           statePut,
	"state_delete":        stateDelete,
	"queue_send":          queueSend,
	"topic_publish":       notAvailable,
	"queue_peek":          queuePeek,
	"conversation_end":    conversationEnd,
	"queue_enable":        queueEnable,
	"dead_letter":         deadLetter,
	"message_dead_letter": messageDeadLetter,
	"message_defer":       notAvailable,
	"retry_after":         retryAfter,
	"fail":                fail,
	"log":                 logLine,
	"config":              config,
	"now":                 now,
	"random":              random,
	"traceparent":         traceparent,
	"span_start":          spanStart,
	"span_end":            spanEnd,
}

// unitless holds the functions that may be called where there is no unit of work. Of a message they say then that there is none.
var unitless = map[string]bool{
	"message_count": true, "message_field": true, "message_number": true, "message_property": true, "message_properties": true,
	"message_body": true, "fail": true, "log": true, "config": true, "now": true, "random": true, "traceparent": true,
	"span_start": true, "span_end": true,
}

// exportFunctions adds every function of version 1 to b.
func exportFunctions(b wazero.HostModuleBuilder) {
	for _, f := range abi.Functions {
		names, params, results := signature(f)
		b.NewFunctionBuilder().
			WithGoModuleFunction(adapt(functions[f.Name], f.Result == "i64", unitless[f.Name]), params, results).
			WithParameterNames(names...).
			Export(f.Name)
	}
}

func adapt(f function, wide, anywhere bool) api.GoModuleFunc {
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		in := instanceOf(ctx)
		in.hostCalls++
		if in.hostCalls > in.plugin.opts.Limits.HostCalls {
			panic(errHostCalls)
		}
		if !anywhere && !in.handling() {
			stack[0] = api.EncodeI32(int32(abi.ErrNoUnit))
			return
		}
		n := f(in, mod.Memory(), stack)
		if wide {
			stack[0] = uint64(n)
		} else {
			stack[0] = uint64(uint32(n))
		}
	}
}

func signature(f abi.Function) (names []string, params, results []api.ValueType) {
	types := map[string]api.ValueType{"i32": api.ValueTypeI32, "i64": api.ValueTypeI64}
	for _, p := range strings.Fields(f.Params) {
		name, typ, _ := strings.Cut(p, ":")
		names, params = append(names, name), append(params, types[typ])
	}
	return names, params, []api.ValueType{types[f.Result]}
}

func notAvailable(*instance, api.Memory, []uint64) int64 { return int64(abi.ErrNotAvailable) }

// args reads parameters one after the other. The first bad one decides the error, except that a bad pointer always does.
type args struct {
	in   *instance
	mem  api.Memory
	rest []uint64
	err  abi.Errno
}

func (a *args) u32() uint32 {
	v := uint32(a.rest[0])
	a.rest = a.rest[1:]
	return v
}

func (a *args) i64() int64 {
	v := int64(a.rest[0])
	a.rest = a.rest[1:]
	return v
}

// view reads a pointer and a length, and charges for the bytes. They are the guest's: copy what is kept.
func (a *args) view() []byte {
	b := a.buf()
	a.in.charge(len(b))
	return b
}

// buf reads a pointer and a length of a buffer that the host will write to.
func (a *args) buf() []byte { return a.read(a.u32(), a.u32()) }

func (a *args) read(ptr, n uint32) []byte {
	b, ok := a.mem.Read(ptr, n)
	if !ok {
		a.refuse(abi.ErrFault)
		return nil
	}
	return b
}

// name reads a text that must be UTF-8 and of a sensible length, as all names are.
func (a *args) name() string {
	b := a.view()
	if len(b) > maxText || !utf8.Valid(b) {
		a.refuse(abi.ErrInvalid)
		return ""
	}
	return string(b)
}

// text reads a text for people: at most maxText bytes are kept, and bytes that are no UTF-8 are replaced.
func (a *args) text() string {
	b := a.view()
	if len(b) > maxText {
		b = b[:maxText]
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

// maxText is how much is kept of a text for people (reasons, descriptions, errors, span names), and how long a name may be.
const maxText = 64 << 10

func (a *args) refuse(no abi.Errno) {
	if a.err == 0 || no == abi.ErrFault {
		a.err = no
	}
}

// fill answers a function that returns a value into a buffer of the guest: its whole length. The value is written only if
// the buffer can hold all of it.
func fill[T string | []byte](in *instance, buf []byte, value T) int64 {
	if len(value) <= len(buf) {
		copy(buf, value)
		in.charge(len(value))
	}
	return int64(len(value))
}
