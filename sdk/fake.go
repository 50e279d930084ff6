//go:build !wasip1

package sdk

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"parley/sdk/abi"
)

// Fake is a host for unit tests of handlers outside WebAssembly. Fill in what the handler shall see, call Run, look at the
// Outcome. State lasts from one Run to the next when they commit, as in the real thing. A Fake is for one goroutine.
type Fake struct {
	Queue    string                   // queue the messages come from
	Attempt  int                      // number of the attempt; 0 counts as 1
	Messages []FakeMessage            // messages of the unit
	State    map[string][]byte        // state of the conversation group; changed by a Run that commits
	Config   map[string]string        // the plugin's configuration
	Queues   map[string][]FakeMessage // what Peek finds, by queue; a queue that is not here does not exist
	Kept     map[string][]FakeMessage // what Retained finds, by conversation, besides the messages of the unit
	Lacks    []string                 // capabilities the plugin does not have
	Time     time.Time                // what Now returns; the zero time: the real clock

	// Refuse, when set, is asked before anything is staged; an Errno it returns is what the handler gets.
	Refuse func(Effect) error

	handles int
	staged  Outcome
	seen    []FakeMessage // of the last Peek or Retained
}

// FakeMessage is one message of a Fake. Empty fields have the meaning they have in a real message.
type FakeMessage struct {
	ID, Session, Type                                  string
	Kind                                               Kind // "": Application
	Conversation, Group, Service, FarService, Contract string
	Validation                                         string
	Sequence, MessageSequence                          int64
	Priority, DeliveryCount, Rollbacks                 int
	Status                                             string // of a message that Peek finds; "": ready
	Retained                                           int    // of a message in Kept: 0 received, 1 waiting, 3 sent
	Enqueued, Expires                                  time.Time
	Properties                                         map[string]string
	Body                                               []byte
}

// EffectKind says what an Effect does.
type EffectKind string

// The effects.
const (
	EffectSend        EffectKind = "send"         // Outgoing to Queue
	EffectDialogSend  EffectKind = "dialog_send"  // Outgoing on Conversation
	EffectBegin       EffectKind = "dialog_begin" // Dialog, which got the handle Conversation
	EffectEnd         EffectKind = "dialog_end"   // Conversation, with Code and Text when with error
	EffectTimer       EffectKind = "timer"        // Conversation, After or Cron with Zone; neither: cancel
	EffectMove        EffectKind = "dialog_move"  // Conversation to Group
	EffectPutState    EffectKind = "state_put"    // Key, Value
	EffectDeleteState EffectKind = "state_delete" // Key

	EffectDeadLetter EffectKind = "message_dead_letter" // message Index of the unit, with Reason and Text

	EffectEndOther EffectKind = "conversation_end" // Conversation of Queue with Code and Text
	EffectEnable   EffectKind = "queue_enable"     // Queue at Epoch
)

// Effect is one thing a handler asked for.
type Effect struct {
	Kind         EffectKind
	Queue        string
	Conversation string
	Outgoing     Outgoing
	Dialog       Dialog
	Code         int
	Text         string
	Index        int
	Reason       string
	Group        string
	After        time.Duration
	Cron, Zone   string
	Epoch        int64
	Key          string
	Value        []byte
}

// Outcome is how a Run ended.
type Outcome struct {
	Result      int32         // abi.Commit, abi.Rollback or abi.DeadLetter
	Effects     []Effect      // what was staged, in order; nothing unless committed
	Err         error         // what the handler returned
	Reason      string        // of a dead letter
	Description string        // of a dead letter
	Pause       time.Duration // asked for by RetryAfter; negative: not asked for
	Logs        []string      // lines, kept whatever the result
	Spans       []string      // names of the spans, in the order they were opened
}

// Run makes one attempt with h, or with the handler that was registered when h is nil.
func (f *Fake) Run(h Handler) Outcome {
	if h == nil {
		h = registered
	}
	f.staged, f.seen = Outcome{Pause: -1}, nil
	u := &Unit{host: f, buf: &buffers{}}
	u.buf.reset()
	var err error
	observed := h
	if h != nil {
		observed = func(u *Unit) error {
			err = h(u)
			return err
		}
	}
	n := run(u, observed)
	out := f.staged
	out.Result, out.Err = n, err
	if n != abi.Commit {
		out.Effects = nil
		return out
	}
	for _, e := range out.Effects {
		f.apply(e)
	}
	return out
}

func (f *Fake) apply(e Effect) {
	switch e.Kind {
	case EffectPutState:
		if f.State == nil {
			f.State = make(map[string][]byte)
		}
		f.State[e.Key] = e.Value
	case EffectDeleteState:
		delete(f.State, e.Key)
	}
}

// host is what a Unit talks to; inside WebAssembly it is the imports.
type host = *Fake

func (f *Fake) stage(e Effect) int32 {
	if f.Refuse != nil {
		if err := f.Refuse(e); err != nil {
			if no, ok := err.(abi.Errno); ok {
				return int32(no)
			}
			return int32(abi.ErrRefused)
		}
	}
	f.staged.Effects = append(f.staged.Effects, e)
	return 0
}

func fill(buf []byte, value string) int32 {
	if len(value) <= len(buf) {
		copy(buf, value)
	}
	return int32(len(value))
}

func (f *Fake) message(i uint32) *FakeMessage {
	list := f.Messages
	if i >= abi.FirstSeen {
		list, i = f.seen, i-abi.FirstSeen
	}
	if int(i) >= len(list) {
		return nil
	}
	return &list[i]
}

func (f *Fake) messageCount() int32 { return int32(len(f.Messages)) }

func (f *Fake) messageField(i, field uint32, buf []byte) int32 {
	m := f.message(i)
	if m == nil {
		return int32(abi.ErrIndex)
	}
	kind := m.Kind
	if kind == "" {
		kind = Application
	}
	typ := m.Type
	if typ == "" {
		typ = "DEFAULT"
	}
	fields := [...]string{
		abi.FieldMessageID: m.ID, abi.FieldSessionID: m.Session, abi.FieldType: typ,
		abi.FieldConversation: m.Conversation, abi.FieldGroup: m.Group, abi.FieldService: m.Service,
		abi.FieldFarService: m.FarService, abi.FieldContract: m.Contract, abi.FieldValidation: m.Validation,
		abi.FieldKind: string(kind), abi.FieldQueue: f.Queue, abi.FieldStatus: status(i, m),
	}
	return fill(buf, fields[field])
}

func (f *Fake) messageNumber(i, number uint32, out *[8]byte) int32 {
	m := f.message(i)
	if m == nil {
		return int32(abi.ErrIndex)
	}
	ms := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	seq := m.MessageSequence
	if m.Conversation == "" {
		seq = -1
	}
	numbers := [...]int64{
		abi.NumberSequence: m.Sequence, abi.NumberMessageSequence: seq, abi.NumberPriority: int64(m.Priority),
		abi.NumberEnqueued: ms(m.Enqueued), abi.NumberExpires: ms(m.Expires),
		abi.NumberDeliveryCount: int64(m.DeliveryCount), abi.NumberAttempt: int64(max(f.Attempt, 1)),
		abi.NumberRollbacks: int64(m.Rollbacks), abi.NumberRetained: int64(m.Retained),
	}
	if i < abi.FirstSeen {
		numbers[abi.NumberRetained] = 1
	}
	le64(out, numbers[number])
	return 0
}

func le64(out *[8]byte, v int64) {
	for i := range out {
		out[i] = byte(v >> (8 * i))
	}
}

func (f *Fake) messageProperty(i uint32, name string, buf []byte) int32 {
	m := f.message(i)
	if m == nil {
		return int32(abi.ErrIndex)
	}
	v, ok := m.Properties[name]
	if !ok {
		return int32(abi.ErrNotFound)
	}
	return fill(buf, v)
}

func (f *Fake) messageProperties(i uint32, buf []byte) int32 {
	m := f.message(i)
	if m == nil {
		return int32(abi.ErrIndex)
	}
	var list []byte
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		list = abi.AppendProperty(list, name, m.Properties[name])
	}
	return fill(buf, string(list))
}

func (f *Fake) messageBody(i uint32, buf []byte) int32 {
	m := f.message(i)
	if m == nil {
		return int32(abi.ErrIndex)
	}
	return fill(buf, string(m.Body))
}

// grouped reports whether the unit belongs to a conversation group and therefore has state.
func (f *Fake) grouped() bool {
	return len(f.Messages) > 0 && (f.Messages[0].Conversation != "" || f.Messages[0].Session != "")
}

func (f *Fake) stateGet(key string, buf []byte) int32 {
	if !f.grouped() {
		return int32(abi.ErrNoState)
	}
	v, ok := f.State[key]
	for _, e := range f.staged.Effects {
		if e.Key == key && e.Kind == EffectPutState {
			v, ok = e.Value, true
		} else if e.Key == key && e.Kind == EffectDeleteState {
			v, ok = nil, false
		}
	}
	if !ok {
		return int32(abi.ErrNotFound)
	}
	return fill(buf, string(v))
}

func (f *Fake) statePut(key string, value []byte) int32 {
	if !f.grouped() {
		return int32(abi.ErrNoState)
	}
	return f.stage(Effect{Kind: EffectPutState, Key: key, Value: slices.Clone(value)})
}

func (f *Fake) stateDelete(key string) int32 {
	if !f.grouped() {
		return int32(abi.ErrNoState)
	}
	return f.stage(Effect{Kind: EffectDeleteState, Key: key})
}

func (f *Fake) queueSend(queue string, out *Outgoing, _ []byte) int32 {
	if out.Delay < 0 || out.TTL < 0 || !utf8.ValidString(out.ID+out.Session+out.Type) {
		return int32(abi.ErrInvalid)
	}
	return f.stage(Effect{Kind: EffectSend, Queue: queue, Outgoing: own(out)})
}

func own(out *Outgoing) Outgoing {
	o := *out
	o.Body, o.Properties = slices.Clone(o.Body), maps.Clone(o.Properties)
	return o
}

func (f *Fake) dialogBegin(d *Dialog, _ int64, buf []byte) int32 {
	handle := fmt.Sprintf("%08x-0000-4000-8000-%012x", 1, f.handles+1)
	if len(buf) < len(handle) {
		return int32(len(handle))
	}
	if n := f.stage(Effect{Kind: EffectBegin, Dialog: *d, Conversation: handle}); n < 0 {
		return n
	}
	f.handles++
	return fill(buf, handle)
}

func (f *Fake) dialogSend(conversation string, out *Outgoing, _ []byte) int32 {
	return f.stage(Effect{Kind: EffectDialogSend, Conversation: conversation, Outgoing: own(out)})
}

func (f *Fake) dialogEnd(conversation string) int32 {
	return f.stage(Effect{Kind: EffectEnd, Conversation: conversation})
}

func (f *Fake) dialogEndError(conversation string, code int32, text string) int32 {
	if code <= 0 || text == "" {
		return int32(abi.ErrInvalid)
	}
	return f.stage(Effect{Kind: EffectEnd, Conversation: conversation, Code: int(code), Text: text})
}

func (f *Fake) traceparent(buf []byte) int32 { return fill(buf, "") }
func (f *Fake) spanEnd(int32) int32          { return 0 }
func (f *Fake) retryAfter(ms int64) int32 {
	f.staged.Pause = time.Duration(ms) * time.Millisecond
	return 0
}
func (f *Fake) fail(string) int32              { return 0 }
func (f *Fake) log(_ int32, text string) int32 { f.staged.Logs = append(f.staged.Logs, text); return 0 }

func (f *Fake) deadLetter(reason, desc string) int32 {
	f.staged.Reason, f.staged.Description = reason, desc
	return 0
}

func (f *Fake) config(key string, buf []byte) int32 {
	v, ok := f.Config[key]
	if !ok {
		return int32(abi.ErrNotFound)
	}
	return fill(buf, v)
}

func (f *Fake) now() int64 {
	if f.Time.IsZero() {
		return time.Now().UnixNano()
	}
	return f.Time.UnixNano()
}

func (f *Fake) random(buf []byte) int32 {
	rand.Read(buf) // never fails
	return 0
}

func (f *Fake) spanStart(name string) int32 {
	f.staged.Spans = append(f.staged.Spans, name)
	return int32(len(f.staged.Spans))
}
