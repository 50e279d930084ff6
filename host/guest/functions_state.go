package guest

import (
	"github.com/tetratelabs/wazero/api"

	"parley/broker"
	"parley/sdk/abi"
)

// stateful reports whether the unit belongs to a conversation group and therefore has state.
func (in *instance) stateful() bool { return in.handling() && in.inv.Unit.Group != "" }

func stateGet(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	key, buf := a.view(), a.buf()
	switch {
	case a.err != 0:
		return int64(a.err)
	case !in.stateful():
		return int64(abi.ErrNoState)
	}
	value, ok := in.inv.Unit.State[string(key)]
	if i, wrote := in.written[string(key)]; wrote {
		e := &in.effects[i]
		value, ok = e.Value, e.Kind == broker.EffectPutState
	}
	if !ok {
		return int64(abi.ErrNotFound)
	}
	return fill(in, buf, value)
}

func statePut(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	e := broker.Effect{Kind: broker.EffectPutState, Key: a.name(), Value: a.clone()}
	return in.write(&a, e)
}

func stateDelete(in *instance, mem api.Memory, stack []uint64) int64 {
	a := args{in: in, mem: mem, rest: stack}
	return in.write(&a, broker.Effect{Kind: broker.EffectDeleteState, Key: a.name()})
}

// write stages a change of the state, so that a later get of this attempt sees it.
func (in *instance) write(a *args, e broker.Effect) int64 {
	switch {
	case a.err != 0:
		return int64(a.err)
	case !in.stateful():
		return int64(abi.ErrNoState)
	case e.Key == "":
		return int64(abi.ErrInvalid)
	}
	n := in.stage(e)
	if n == 0 {
		if in.written == nil {
			in.written = make(map[string]int)
		}
		in.written[e.Key] = len(in.effects) - 1
	}
	return n
}
