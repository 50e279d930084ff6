package sdk

import "unsafe"

// The imports of module parley_v1; sdk/abi lists them, docs/abi.md explains them.

//go:wasmimport parley_v1 message_count
func abiMessageCount() int32

//go:wasmimport parley_v1 message_field
func abiMessageField(index, field uint32, buf *byte, bufLen uint32) int32

//go:wasmimport parley_v1 message_number
func abiMessageNumber(index, number uint32, out *byte) int32

//go:wasmimport parley_v1 message_property
func abiMessageProperty(index uint32, name string, buf *byte, bufLen uint32) int32

//go:wasmimport parley_v1 message_properties
func abiMessageProperties(index uint32, buf *byte, bufLen uint32) int32

//go:wasmimport parley_v1 message_body
func abiMessageBody(index uint32, buf *byte, bufLen uint32) int32

//go:wasmimport parley_v1 dialog_begin
func abiDialogBegin(from, to, contract, group string, lifetimeMS int64, buf *byte, bufLen uint32) int32

//go:wasmimport parley_v1 dialog_send
func abiDialogSend(conversation, typ string, props *byte, propsLen uint32, body *byte, bodyLen uint32) int32

//go:wasmimport parley_v1 dialog_end
func abiDialogEnd(conversation string) int32

//go:wasmimport parley_v1 dialog_end_error
func abiDialogEndError(conversation string, code int32, text string) int32

//go:wasmimport parley_v1 dialog_move
func abiDialogMove(conversation, group string) int32

//go:wasmimport parley_v1 dialog_retained
func abiDialogRetained(conversation string) int32

//go:wasmimport parley_v1 timer_after
func abiTimerAfter(conversation string, afterMS int64) int32

//go:wasmimport parley_v1 timer_cron
func abiTimerCron(conversation, spec, zone string) int32

//go:wasmimport parley_v1 timer_cancel
func abiTimerCancel(conversation string) int32

//go:wasmimport parley_v1 state_get
func abiStateGet(key string, buf *byte, bufLen uint32) int32

//go:wasmimport parley_v1 state_put
func abiStatePut(key string, value *byte, valueLen uint32) int32

//go:wasmimport parley_v1 state_delete
func abiStateDelete(key string) int32

//go:wasmimport parley_v1 queue_send
func abiQueueSend(queue, typ, id, session string, props *byte, propsLen uint32, body *byte, bodyLen uint32, delayMS, ttlMS int64) int32

//go:wasmimport parley_v1 queue_peek
func abiQueuePeek(queue string, from int64, most uint32) int32

//go:wasmimport parley_v1 conversation_end
func abiConversationEnd(queue, conversation string, code int32, text string) int32

//go:wasmimport parley_v1 queue_enable
func abiQueueEnable(queue string, epoch int64) int32

//go:wasmimport parley_v1 dead_letter
func abiDeadLetter(reason, description string) int32

//go:wasmimport parley_v1 message_dead_letter
func abiMessageDeadLetter(index uint32, reason, description string) int32

//go:wasmimport parley_v1 retry_after
func abiRetryAfter(pauseMS int64) int32

//go:wasmimport parley_v1 fail
func abiFail(text string) int32

//go:wasmimport parley_v1 log
func abiLog(level int32, text string) int32

//go:wasmimport parley_v1 config
func abiConfig(key string, buf *byte, bufLen uint32) int32

//go:wasmimport parley_v1 now
func abiNow() int64

//go:wasmimport parley_v1 random
func abiRandom(buf *byte, bufLen uint32) int32

//go:wasmimport parley_v1 traceparent
func abiTraceparent(buf *byte, bufLen uint32) int32

//go:wasmimport parley_v1 span_start
func abiSpanStart(name string) int32

//go:wasmimport parley_v1 span_end
func abiSpanEnd(span int32) int32

// host is the way to the imports. Outside WebAssembly it is a Fake.
type host struct{}

// life says whether a unit is over. Go runs one goroutine of a module at a time and lets another run where one waits only, so
// between enter and the call of the host nothing else happens.
type life struct{ over bool }

func (l *life) enter() bool { return !l.over }
func (l *life) leave()      {}
func (l *life) end()        { l.over = true }

var kept buffers

// parleyHandle makes a Unit for each attempt: whoever still holds one of an attempt before must not act in this one.
//
//go:wasmexport parley_handle
func parleyHandle() int32 {
	kept.reset()
	return run(&Unit{buf: &kept}, registered)
}

func ptr(b []byte) (*byte, uint32) { return unsafe.SliceData(b), uint32(len(b)) }

func (host) messageCount() int32 { return abiMessageCount() }

func (host) messageField(i, field uint32, buf []byte) int32 {
	p, n := ptr(buf)
	return abiMessageField(i, field, p, n)
}

func (host) messageNumber(i, number uint32, out *[8]byte) int32 {
	return abiMessageNumber(i, number, &out[0])
}

func (host) messageProperty(i uint32, name string, buf []byte) int32 {
	p, n := ptr(buf)
	return abiMessageProperty(i, name, p, n)
}

func (host) messageProperties(i uint32, buf []byte) int32 {
	p, n := ptr(buf)
	return abiMessageProperties(i, p, n)
}

func (host) messageBody(i uint32, buf []byte) int32 {
	p, n := ptr(buf)
	return abiMessageBody(i, p, n)
}

func (host) dialogBegin(d *Dialog, lifetimeMS int64, buf []byte) int32 {
	p, n := ptr(buf)
	return abiDialogBegin(d.From, d.To, d.Contract, d.Group, lifetimeMS, p, n)
}

func (host) dialogSend(conversation string, out *Outgoing, props []byte) int32 {
	p, pn := ptr(props)
	b, bn := ptr(out.Body)
	return abiDialogSend(conversation, out.Type, p, pn, b, bn)
}

func (host) dialogEnd(conversation string) int32 { return abiDialogEnd(conversation) }

func (host) dialogEndError(conversation string, code int32, text string) int32 {
	return abiDialogEndError(conversation, code, text)
}

func (host) dialogMove(conversation, group string) int32 { return abiDialogMove(conversation, group) }

func (host) dialogRetained(conversation string) int32 { return abiDialogRetained(conversation) }

func (host) queuePeek(queue string, from int64, most uint32) int32 {
	return abiQueuePeek(queue, from, most)
}

func (host) conversationEnd(queue, conversation string, code int32, text string) int32 {
	return abiConversationEnd(queue, conversation, code, text)
}

func (host) queueEnable(queue string, epoch int64) int32 { return abiQueueEnable(queue, epoch) }

func (host) timerAfter(conversation string, ms int64) int32 { return abiTimerAfter(conversation, ms) }

func (host) timerCron(conversation, spec, zone string) int32 {
	return abiTimerCron(conversation, spec, zone)
}

func (host) timerCancel(conversation string) int32 { return abiTimerCancel(conversation) }

func (host) stateGet(key string, buf []byte) int32 {
	p, n := ptr(buf)
	return abiStateGet(key, p, n)
}

func (host) statePut(key string, value []byte) int32 {
	p, n := ptr(value)
	return abiStatePut(key, p, n)
}

func (host) stateDelete(key string) int32 { return abiStateDelete(key) }

func (host) queueSend(queue string, out *Outgoing, props []byte) int32 {
	p, pn := ptr(props)
	b, bn := ptr(out.Body)
	return abiQueueSend(queue, out.Type, out.ID, out.Session, p, pn, b, bn, out.Delay.Milliseconds(), out.TTL.Milliseconds())
}

func (host) deadLetter(reason, description string) int32 { return abiDeadLetter(reason, description) }

func (host) messageDeadLetter(i uint32, reason, description string) int32 {
	return abiMessageDeadLetter(i, reason, description)
}

func (host) retryAfter(ms int64) int32          { return abiRetryAfter(ms) }
func (host) fail(text string) int32             { return abiFail(text) }
func (host) log(level int32, text string) int32 { return abiLog(level, text) }
func (host) now() int64                         { return abiNow() }
func (host) spanStart(name string) int32        { return abiSpanStart(name) }
func (host) spanEnd(span int32) int32           { return abiSpanEnd(span) }

func (host) config(key string, buf []byte) int32 {
	p, n := ptr(buf)
	return abiConfig(key, p, n)
}

func (host) random(buf []byte) int32 {
	p, n := ptr(buf)
	return abiRandom(p, n)
}

func (host) traceparent(buf []byte) int32 {
	p, n := ptr(buf)
	return abiTraceparent(p, n)
}
