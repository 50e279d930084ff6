package sdk

import (
	"iter"
	"time"

	"parley/sdk/abi"
)

// Unit is one unit of work: the messages of one conversation group, or one plain message.
//
// It is over once its handler has returned. Whatever still holds it then, a goroutine that the handler left behind for instance,
// can do nothing with it, nor with its messages and conversations: what returns an error returns ErrUnitDone and everything else
// the zero value. So nothing acts in a unit that somebody else's messages are in. Now and Random belong to no unit and go on.
type Unit struct {
	host host
	life life
	buf  *buffers
}

// ErrUnitDone is what the methods of a unit, and of what came of it, return once its handler has returned.
var ErrUnitDone error = abi.ErrNoUnit

// buffers holds what was read from the host. Units that follow one another in an instance share one.
type buffers struct {
	scratch []byte // short values on their way to a string
	arena   []byte // bodies and values handed out in this attempt
}

// reset makes b ready for the next attempt. What was handed out in the last one is overwritten.
func (b *buffers) reset() {
	if b.scratch == nil {
		b.scratch = make([]byte, 256)
	}
	b.arena = b.arena[:0]
}

// call calls the host, unless the unit is over.
func (u *Unit) call(f func(h host) int32) int32 {
	if !u.life.enter() {
		return int32(abi.ErrNoUnit)
	}
	n := f(u.host)
	u.life.leave()
	return n
}

// do is call for what answers with success or an error.
func (u *Unit) do(f func(h host) int32) error { return result(u.call(f)) }

// Len is the number of messages, 1 or more.
func (u *Unit) Len() int { return int(max(u.call(host.messageCount), 0)) }

// Message returns message i, from 0, in receive order. An i that is not below Len gives a message without content.
func (u *Unit) Message(i int) Message { return Message{u, uint32(i)} }

// Messages is all messages in receive order: timers, then errors, then the rest by their place in the conversation.
func (u *Unit) Messages() iter.Seq[Message] {
	return func(yield func(Message) bool) {
		for i := range u.Len() {
			if !yield(u.Message(i)) {
				return
			}
		}
	}
}

// Config returns the value that the plugin's configuration has for key; "" when it has none.
func (u *Unit) Config(key string) string {
	s, _ := u.text(func(h host, buf []byte) int32 { return h.config(key, buf) })
	return s
}

// Now is the host's clock.
func (u *Unit) Now() time.Time { return time.Unix(0, u.host.now()) }

// Random fills b with random bytes.
func (u *Unit) Random(b []byte) {
	for len(b) > 0 {
		n := min(len(b), maxRandom)
		u.host.random(b[:n])
		b = b[n:]
	}
}

// maxRandom keeps one request within what the host gives at a time.
const maxRandom = 64 << 10

// Traceparent is the W3C context of this attempt's span; "" when tracing is off. Sends carry it by themselves.
func (u *Unit) Traceparent() string {
	s, _ := u.text(host.traceparent)
	return s
}

// Span opens a span inside that of the attempt and returns what ends it.
func (u *Unit) Span(name string) (end func()) {
	id := u.call(func(h host) int32 { return h.spanStart(name) })
	return func() { u.call(func(h host) int32 { return h.spanEnd(id) }) }
}

// Level is how important a log line is.
type Level int32

// The levels.
const (
	Debug = Level(abi.LevelDebug)
	Info  = Level(abi.LevelInfo)
	Warn  = Level(abi.LevelWarn)
	Error = Level(abi.LevelError)
)

// Log writes a line to the attempt's log. It is kept even if the attempt rolls back.
func (u *Unit) Log(level Level, text string) {
	u.call(func(h host) int32 { return h.log(int32(level), text) })
}

// text reads a value of any length as a string. n is below 0 when there is none.
func (u *Unit) text(read func(h host, buf []byte) int32) (s string, n int32) {
	n = u.call(func(h host) int32 {
		for {
			n := read(h, u.buf.scratch)
			if int(n) <= len(u.buf.scratch) {
				if n > 0 {
					s = string(u.buf.scratch[:n])
				}
				return n
			}
			u.buf.scratch = make([]byte, n)
		}
	})
	return s, n
}

const arenaChunk = 64 << 10

// bytes reads a value of any length into the arena, where it stays until the next attempt.
func (u *Unit) bytes(read func(h host, buf []byte) int32) (value []byte, n int32) {
	n = u.call(func(h host) int32 {
		for {
			b := u.buf
			free := b.arena[len(b.arena):cap(b.arena)]
			n := read(h, free)
			if n < 0 {
				return n
			}
			if int(n) <= len(free) {
				b.arena = b.arena[:len(b.arena)+int(n)]
				value = free[:n:n]
				return n
			}
			b.arena = make([]byte, 0, max(int(n), arenaChunk))
		}
	})
	return value, n
}
