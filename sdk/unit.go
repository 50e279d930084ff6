package sdk

import (
	"iter"
	"time"

	"parley/sdk/abi"
)

// Unit is one unit of work: the messages of one conversation group, or one plain message.
type Unit struct {
	host    host
	scratch []byte // short values on their way to a string
	arena   []byte // bodies and values handed out in this attempt
}

// reset makes u ready for the next attempt. What it handed out in the last one is overwritten.
func (u *Unit) reset() {
	if u.scratch == nil {
		u.scratch = make([]byte, 256)
	}
	u.arena = u.arena[:0]
}

// Len is the number of messages, 1 or more.
func (u *Unit) Len() int { return int(u.host.messageCount()) }

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
	s, _ := u.text(func(buf []byte) int32 { return u.host.config(key, buf) })
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
	s, _ := u.text(u.host.traceparent)
	return s
}

// Span opens a span inside that of the attempt and returns what ends it.
func (u *Unit) Span(name string) (end func()) {
	id := u.host.spanStart(name)
	return func() { u.host.spanEnd(id) }
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
func (u *Unit) Log(level Level, text string) { u.host.log(int32(level), text) }

// text reads a value of any length as a string. ok is false when there is none.
func (u *Unit) text(read func(buf []byte) int32) (s string, ok bool) {
	for {
		n := read(u.scratch)
		if n < 0 {
			return "", false
		}
		if int(n) <= len(u.scratch) {
			return string(u.scratch[:n]), true
		}
		u.scratch = make([]byte, n)
	}
}

const arenaChunk = 64 << 10

// bytes reads a value of any length into the arena, where it stays until the next attempt.
func (u *Unit) bytes(read func(buf []byte) int32) ([]byte, int32) {
	for {
		free := u.arena[len(u.arena):cap(u.arena)]
		n := read(free)
		if n < 0 {
			return nil, n
		}
		if int(n) <= len(free) {
			u.arena = u.arena[:len(u.arena)+int(n)]
			return free[:n:n], n
		}
		u.arena = make([]byte, 0, max(int(n), arenaChunk))
	}
}
