package guest

import (
	"slices"

	"github.com/tetratelabs/wazero/api"

	"parley/broker"
	"parley/sdk/abi"
)

// seen is a message that a guest may read: one of its unit, or one that it looked at.
type seen struct {
	*broker.Message
	queue    string
	status   broker.Status
	retained int // as in broker.RetainedMessage
}

// retainedReady is the retained status of a message that was not consumed yet.
const retainedReady = 1

// maxPeek bounds the messages of one queue_peek: with the largest bodies they are 25 MiB.
const maxPeek = 100

// queuePeek blocks until the broker has answered, or the guest's time is over.
func queuePeek(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	queue, from, most := a.name(), a.i64(), a.u32()
	if queue == "" || from < 0 || most == 0 || most > maxPeek {
		a.refuse(abi.ErrInvalid)
	}
	switch {
	case a.err != 0:
		return int64(a.err)
	case in.deny(QueuePeek):
		return int64(abi.ErrDenied)
	case in.plugin.opts.Peeker == nil:
		return int64(abi.ErrNotAvailable)
	}
	asked := mono()
	messages, err := in.plugin.opts.Peeker.Peek(&in.lazy, queue, from, int(most))
	in.answered(asked)
	if err != nil {
		return in.refuse(err)
	}
	found := make([]seen, len(messages))
	for i := range messages {
		found[i] = seen{Message: &messages[i], queue: queue, status: messages[i].Status, retained: retainedReady}
	}
	return in.see(found)
}

// dialogRetained is for conversations of the unit only: their group is locked, so what is kept of them stands still.
func dialogRetained(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	handle := in.conversation(&a)
	own := func(m broker.Message) bool { return m.Conversation == handle }
	if a.err == 0 && !slices.ContainsFunc(in.messages(), own) {
		a.refuse(abi.ErrUnknownConversation)
	}
	switch {
	case a.err != 0:
		return int64(a.err)
	case in.plugin.opts.Retainer == nil:
		return int64(abi.ErrNotAvailable)
	}
	asked := mono()
	rows, err := in.plugin.opts.Retainer.Retained(&in.lazy, handle)
	in.answered(asked)
	if err != nil {
		return in.refuse(err)
	}
	found := make([]seen, len(rows))
	for i := range rows {
		found[i] = seen{Message: &rows[i].Message, queue: in.inv.Queue, status: rows[i].Status, retained: rows[i].RetainedStatus}
	}
	return in.see(found)
}

// see keeps what was found in place of what was found before, and charges for it. The host holds at most as much of it as the
// guest may hold of memory.
func (in *instance) see(found []seen) int64 {
	size := 0
	for i := range found {
		size += len(found[i].Body) + rowSize
	}
	in.charge(size)
	if int64(size) > in.plugin.opts.Limits.Memory {
		return int64(abi.ErrTooLarge)
	}
	in.seen = found
	return int64(len(found))
}

// rowSize is what a message without a body counts: its names, ids and properties.
const rowSize = 1024
