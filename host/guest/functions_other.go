package guest

import (
	"io"
	"time"

	"github.com/tetratelabs/wazero/api"

	"parley/broker"
	"parley/host"
	"parley/sdk/abi"
)

func deadLetter(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	reason, description := a.text(), a.text()
	if a.err != 0 {
		return int64(a.err)
	}
	in.reason, in.description = reason, description
	return 0
}

// messageDeadLetter stages that a message of the unit becomes a dead letter. The last call for a message counts.
func messageDeadLetter(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	index := a.u32()
	e := broker.Effect{Kind: broker.EffectDeadLetter, Index: int(index), Reason: a.text(), Text: a.text()}
	if uint64(index) >= uint64(len(in.messages())) {
		a.refuse(abi.ErrIndex)
	}
	if a.err != 0 {
		return int64(a.err)
	}
	if i, again := in.buried[index]; again {
		return in.restage(i, e)
	}
	n := in.stage(e)
	if n == 0 {
		if in.buried == nil {
			in.buried = make(map[uint32]int)
		}
		in.buried[index] = len(in.effects) - 1
	}
	return n
}

func retryAfter(in *instance, _ api.Memory, stack []uint64) int64 {
	a := args{in: in, rest: stack}
	pause := a.span()
	if a.err != 0 {
		return int64(a.err)
	}
	in.pause = pause
	return 0
}

func fail(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	text := a.text()
	if a.err != 0 {
		return int64(a.err)
	}
	in.failText = text
	return 0
}

func logLine(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	level := int(int32(a.u32()))
	text := a.text()
	if a.err != 0 {
		return int64(a.err)
	}
	in.logs.add(host.LogLine{Time: in.now(), Level: level, Stream: "log", Text: text})
	return 0
}

func config(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	key, buf := a.view(), a.buf()
	if a.err != 0 {
		return int64(a.err)
	}
	value, ok := in.plugin.opts.Config[string(key)]
	if !ok {
		return int64(abi.ErrNotFound)
	}
	return fill(in, buf, value)
}

func now(in *instance, _ api.Memory, _ []uint64) int64 { return in.now().UnixNano() }

func random(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	buf := a.view()
	switch {
	case a.err != 0:
		return int64(a.err)
	case len(buf) > maxRandom:
		return int64(abi.ErrInvalid)
	}
	if _, err := in.random(buf); err != nil {
		return int64(abi.ErrRefused)
	}
	return 0
}

// maxRandom bounds one request for random bytes.
const maxRandom = 64 << 10

// random fills b from the instance's source.
func (in *instance) random(b []byte) (int, error) { return io.ReadFull(in.source, b) }

func traceparent(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	buf := a.buf()
	switch {
	case a.err != 0:
		return int64(a.err)
	case in.inv == nil:
		return 0
	}
	return fill(in, buf, in.inv.Traceparent)
}

// maxSpans bounds the custom spans of an attempt; further ones are not kept.
const maxSpans = 128

func spanStart(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	name := a.text()
	if a.err != 0 {
		return int64(a.err)
	}
	if len(in.spans) < maxSpans {
		in.spans = append(in.spans, host.GuestSpan{Name: name, Start: in.now()})
		return int64(len(in.spans))
	}
	return maxSpans + 1
}

func spanEnd(in *instance, _ api.Memory, stack []uint64) int64 {
	id := uint32(stack[0])
	switch {
	case id == maxSpans+1 && len(in.spans) == maxSpans:
		return 0
	case id == 0 || uint64(id) > uint64(len(in.spans)):
		return int64(abi.ErrIndex)
	}
	if s := &in.spans[id-1]; s.End.IsZero() {
		s.End = in.now()
	}
	return 0
}

// closeSpans returns the custom spans; those still open end with the attempt.
func (in *instance) closeSpans() []host.GuestSpan {
	var end time.Time
	for i := range in.spans {
		if in.spans[i].End.IsZero() {
			if end.IsZero() {
				end = in.now()
			}
			in.spans[i].End = end
		}
	}
	return in.spans
}
