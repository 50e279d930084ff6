package guest

import (
	"maps"
	"slices"
	"time"

	"github.com/tetratelabs/wazero/api"

	"parley/broker"
	"parley/sdk/abi"
)

func messageCount(in *instance, _ api.Memory, _ []uint64) int64 { return int64(len(in.messages())) }

// message is the message that the first argument names, nil when there is none.
func (in *instance) message(args []uint64) *broker.Message {
	messages := in.messages()
	if i := uint32(args[0]); uint64(i) < uint64(len(messages)) {
		return &messages[i]
	}
	return nil
}

func messageField(in *instance, mem api.Memory, args []uint64) int64 {
	m := in.message(args)
	if m == nil {
		return int64(abi.ErrIndex)
	}
	switch uint32(args[1]) {
	case abi.FieldMessageID:
		return fill(mem, args[2:], m.MessageID)
	case abi.FieldSessionID:
		return fill(mem, args[2:], m.SessionID)
	case abi.FieldType:
		return fill(mem, args[2:], m.Type)
	case abi.FieldConversation:
		return fill(mem, args[2:], m.Conversation)
	case abi.FieldGroup:
		return fill(mem, args[2:], m.Group)
	case abi.FieldService:
		return fill(mem, args[2:], m.Service)
	case abi.FieldFarService:
		return fill(mem, args[2:], m.FarService)
	case abi.FieldContract:
		return fill(mem, args[2:], m.Contract)
	case abi.FieldValidation:
		return fill(mem, args[2:], m.Validation)
	case abi.FieldKind:
		return fill(mem, args[2:], kindName(m.Kind))
	case abi.FieldQueue:
		return fill(mem, args[2:], in.inv.Queue)
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

func messageNumber(in *instance, mem api.Memory, args []uint64) int64 {
	m := in.message(args)
	if m == nil {
		return int64(abi.ErrIndex)
	}
	var v int64
	switch uint32(args[1]) {
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
	default:
		return int64(abi.ErrField)
	}
	if !mem.WriteUint64Le(uint32(args[2]), uint64(v)) {
		return int64(abi.ErrFault)
	}
	return 0
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func messageProperty(in *instance, mem api.Memory, stack []uint64) int64 {
	m := in.message(stack)
	if m == nil {
		return int64(abi.ErrIndex)
	}
	a := args{mem: mem, rest: stack[1:]}
	name := a.view()
	if a.err != 0 {
		return int64(a.err)
	}
	value, ok := m.Properties[string(name)]
	if !ok {
		return int64(abi.ErrNotFound)
	}
	return fill(mem, a.rest, value)
}

func messageProperties(in *instance, mem api.Memory, stack []uint64) int64 {
	m := in.message(stack)
	if m == nil {
		return int64(abi.ErrIndex)
	}
	var list []byte
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		list = abi.AppendProperty(list, name, m.Properties[name])
	}
	return fill(mem, stack[1:], list)
}

func messageBody(in *instance, mem api.Memory, args []uint64) int64 {
	m := in.message(args)
	if m == nil {
		return int64(abi.ErrIndex)
	}
	return fill(mem, args[1:], m.Body)
}
