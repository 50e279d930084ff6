package guest

import (
	"github.com/tetratelabs/wazero/api"

	"parley/broker"
	"parley/sdk/abi"
)

func conversationEnd(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectCommandEnd, Queue: a.name(), Conversation: a.name()}
	e.Code = int(int32(a.u32()))
	e.Text = a.name()
	if e.Queue == "" || e.Conversation == "" || e.Code <= 0 || e.Text == "" {
		a.refuse(abi.ErrInvalid)
	}
	switch {
	case a.err != 0:
		return int64(a.err)
	case in.deny(ConversationEnd):
		return int64(abi.ErrDenied)
	}
	return in.stage(e)
}

func queueEnable(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectCommandEnable, Queue: a.name(), Epoch: a.i64()}
	if e.Queue == "" || e.Epoch < 0 {
		a.refuse(abi.ErrInvalid)
	}
	switch {
	case a.err != 0:
		return int64(a.err)
	case in.deny(QueueEnable):
		return int64(abi.ErrDenied)
	}
	return in.stage(e)
}
