package guest

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"

	"parley/broker"
	"parley/sdk/abi"
)

func messageCount(in *instance, _ api.Memory, _ []uint64) int64 { return int64(len(in.messages())) }

// message reads the number of a message. When there is none it refuses, and what it returns holds no message.
func (in *instance) message(a *args) seen {
	messages, i := in.messages(), a.u32()
	switch {
	case uint64(i) < uint64(len(messages)):
		return seen{Message: &messages[i], queue: in.inv.Queue, status: broker.StatusLocked, retained: retainedReady}
	case i >= abi.FirstSeen && uint64(i-abi.FirstSeen) < uint64(len(in.seen)):
		return in.seen[i-abi.FirstSeen]
	}
	a.refuse(abi.ErrIndex)
	return seen{}
}

func messageField(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	m, field, buf := in.message(&a), a.u32(), a.buf()
	if a.err != 0 {
		return int64(a.err)
	}
	switch field {
	case abi.FieldMessageID:
		return fill(in, buf, m.MessageID)
	case abi.FieldSessionID:
		return fill(in, buf, m.SessionID)
	case abi.FieldType:
		return fill(in, buf, m.Type)
	case abi.FieldConversation:
		return fill(in, buf, m.Conversation)
	case abi.FieldGroup:
		return fill(in, buf, m.Group)
	case abi.FieldService:
		return fill(in, buf, m.Service)
	case abi.FieldFarService:
		return fill(in, buf, m.FarService)
	case abi.FieldContract:
		return fill(in, buf, m.Contract)
	case abi.FieldValidation:
		return fill(in, buf, m.Validation)
	case abi.FieldKind:
		return fill(in, buf, kindName(m.Kind))
	case abi.FieldQueue:
		return fill(in, buf, m.queue)
	case abi.FieldStatus:
		return fill(in, buf, string(m.status))
	}
	return int64(abi.ErrField)
}

// kindName is the letter of a kind; a message without one is an application message.
func kindName(k broker.Kind) string {
	switch k {
	case broker.KindEndDialog:
		return "D"
	case broker.KindError:
		return "E"
	case broker.KindDialogTimer:
		return "T"
	}
	return "S"
}

func messageNumber(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	m, number, out := in.message(&a), a.u32(), a.read(a.u32(), 8)
	if a.err != 0 {
		return int64(a.err)
	}
	var v int64
	switch number {
	case abi.NumberSequence:
		v = m.SequenceNumber
	case abi.NumberMessageSequence:
		v = m.MessageSeq
	case abi.NumberPriority:
		v = int64(m.Priority)
	case abi.NumberEnqueued:
		v = unixMilli(m.EnqueuedAt)
	case abi.NumberExpires:
		v = unixMilli(m.ExpiresAt)
	case abi.NumberDeliveryCount:
		v = int64(m.DeliveryCount)
	case abi.NumberAttempt:
		v = int64(in.inv.Attempt)
	case abi.NumberRollbacks:
		v = int64(m.PoisonCount)
	case abi.NumberRetained:
		v = int64(m.retained)
	default:
		return int64(abi.ErrField)
	}
	binary.LittleEndian.PutUint64(out, uint64(v))
	return 0
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func messageProperty(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	m, name, buf := in.message(&a), a.view(), a.buf()
	if a.err != 0 {
		return int64(a.err)
	}
	value, ok := m.Properties[string(name)]
	if !ok {
		return int64(abi.ErrNotFound)
	}
	return fill(in, buf, value)
}

func messageProperties(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	m, buf := in.message(&a), a.buf()
	if a.err != 0 {
		return int64(a.err)
	}
	var list []byte
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		list = abi.AppendProperty(list, name, m.Properties[name])
	}
	in.charge(len(list) * bytesPerUnit) // they are many small pieces
	return fill(in, buf, list)
}

func messageBody(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	m, buf := in.message(&a), a.buf()
	if a.err != 0 {
		return int64(a.err)
	}
	return fill(in, buf, m.Body)
}
