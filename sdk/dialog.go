package sdk

import (
	"math"
	"slices"
	"time"

	"parley/sdk/abi"
)

// Outgoing is a message to be sent. The zero value of each field is its default.
type Outgoing struct {
	Type       string            // message type; "" is DEFAULT
	Properties map[string]string // the sender's own
	Body       []byte
	ID         string        // message id; "": the host makes one. Send only
	Session    string        // session id; "": none. Send only
	Delay      time.Duration // becomes ready this long after the commit. Send only
	TTL        time.Duration // time to live; 0: forever. Send only
}

// Send sends out to a queue.
func (u *Unit) Send(queue string, out Outgoing) error {
	return u.do(func(h host) int32 { return h.queueSend(queue, &out, u.properties(out.Properties)) })
}

// properties encodes p in the arena, sorted by name, so that the same map is always the same bytes.
func (u *Unit) properties(p map[string]string) []byte {
	if len(p) == 0 {
		return nil
	}
	names := make([]string, 0, len(p))
	for name := range p {
		names = append(names, name)
	}
	slices.Sort(names)
	var list []byte
	for _, name := range names {
		list = abi.AppendProperty(list, name, p[name])
	}
	return list
}

// Dialog says what conversation to begin.
type Dialog struct {
	From, To string        // services; From must be served by the plugin's own queue
	Contract string        // "" is DEFAULT
	Group    string        // conversation group to join; "": a fresh one
	Lifetime time.Duration // 0: 7 days; Forever: none
}

// Forever is the lifetime of a dialog that never expires.
const Forever = time.Duration(math.MaxInt64)

// Begin begins a dialog. Like everything else it exists only once the unit commits.
func (u *Unit) Begin(d Dialog) (Conversation, error) {
	ms := int64(d.Lifetime / time.Millisecond)
	if d.Lifetime == Forever {
		ms = -1
	}
	handle, n := u.text(func(h host, buf []byte) int32 { return h.dialogBegin(&d, ms, buf) })
	return Conversation{u, handle}, result(n)
}

// Conversation is this side of a dialog.
type Conversation struct {
	unit   *Unit
	handle string
}

// Conversation returns the conversation of a handle that was kept, in state for instance.
func (u *Unit) Conversation(handle string) Conversation { return Conversation{u, handle} }

// Handle names the conversation; "" for that of a plain message.
func (c Conversation) Handle() string { return c.handle }

// do calls the host for a conversation that there is.
func (c Conversation) do(f func(h host) int32) error { return result(c.call(f)) }

func (c Conversation) call(f func(h host) int32) int32 {
	return c.unit.call(func(h host) int32 {
		if c.handle == "" {
			return int32(abi.ErrUnknownConversation)
		}
		return f(h)
	})
}

// Send sends out on the conversation. Of out only Type, Properties and Body count.
func (c Conversation) Send(out Outgoing) error {
	return c.do(func(h host) int32 { return h.dialogSend(c.handle, &out, c.unit.properties(out.Properties)) })
}

// End ends this side of the conversation.
func (c Conversation) End() error {
	return c.do(func(h host) int32 { return h.dialogEnd(c.handle) })
}

// EndWithError ends the conversation with an error that the far side receives. code is above 0, text at most 3,000
// characters and not empty.
func (c Conversation) EndWithError(code int, text string) error {
	if code != int(int32(code)) {
		return abi.ErrInvalid
	}
	return c.do(func(h host) int32 { return h.dialogEndError(c.handle, int32(code), text) })
}

// MoveTo moves the conversation to another conversation group of the same service, a UUID. A group that does not exist is made.
func (c Conversation) MoveTo(group string) error {
	return c.do(func(h host) int32 { return h.dialogMove(c.handle, group) })
}

// Timer asks for a DialogTimer message on this conversation after d, replacing the timer it may have. Parts of a millisecond
// count as a whole one, since a timer never fires early. 0 cancels; a d below 0 is refused.
func (c Conversation) Timer(d time.Duration) error {
	ms := d.Milliseconds()
	switch whole := time.Duration(ms) * time.Millisecond; {
	case d > whole:
		ms++
	case d < whole:
		ms--
	}
	return c.do(func(h host) int32 { return h.timerAfter(c.handle, ms) })
}

// TimerCron asks for a DialogTimer message at every instant of a cron spec in a time zone ("" is UTC).
func (c Conversation) TimerCron(spec, zone string) error {
	return c.do(func(h host) int32 { return h.timerCron(c.handle, spec, zone) })
}

// CancelTimer takes the conversation's timer away. It is no error when there is none.
func (c Conversation) CancelTimer() error {
	return c.do(func(h host) int32 { return h.timerCancel(c.handle) })
}
