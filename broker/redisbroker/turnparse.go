package redisbroker

import (
	"context"
	"strconv"
	"strings"
	"unsafe"

	"parley/broker"
)

// cursor walks the one-string reply of a turn.
type cursor struct {
	s      string
	bodies []any // in the order of the messages
	bad    bool
}

func (c *cursor) line() string {
	i := strings.IndexByte(c.s, '\n')
	if i < 0 {
		c.bad = true
		return ""
	}
	l := c.s[:i]
	c.s = c.s[i+1:]
	return l
}

func (c *cursor) int() int {
	l := c.line()
	n, err := strconv.Atoi(l)
	if err != nil {
		c.bad = true
	}
	return n
}

// count reads how many of something follow: each takes a line at least, so more than there are bytes is broken.
func (c *cursor) count() int { return c.number(c.line()) }

// number is count for a line that was read.
func (c *cursor) number(line string) int {
	n, err := strconv.Atoi(line)
	if err != nil || n < 0 || n > len(c.s) {
		c.bad = true
		return 0
	}
	return n
}

// take reads n bytes and the line end behind them.
func (c *cursor) take(n int) string {
	if n < 0 || n >= len(c.s) || c.s[n] != '\n' {
		c.bad = true
		return ""
	}
	b := c.s[:n]
	c.s = c.s[n+1:]
	return b
}

// body takes the next body.
func (c *cursor) body() []byte {
	if len(c.bodies) == 0 {
		c.bad = true
		return nil
	}
	b, _ := c.bodies[0].(string)
	c.bodies = c.bodies[1:]
	return bytesOf(b)
}

// bytesOf is the bytes of a body that was read off the wire and that nobody else has.
func bytesOf(body string) []byte {
	if body == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(body), len(body))
}

// text returns the lines of a turn's reply and keeps the bodies, which come apart: as a part of the lines the server would
// hash and copy them again.
func (r *reader) text(v any) string {
	r.bodies = nil
	list, ok := v.([]any)
	if !ok || len(list) < 2 {
		s, _ := v.(string)
		return s
	}
	r.bodies = list[2:]
	call, _ := list[0].(string)
	units, _ := list[1].(string)
	return call + units
}

// parse turns the reply into results and units. Nothing in it can fail what the reply says was done: units that it cannot
// complete are given back by the next turn, and a lost group that cannot be made now is made before that.
func (r *reader) parse(ctx context.Context, s string, settle []broker.Settlement, order []int) (broker.TurnReply, error) {
	rep, lost, err := r.read(s, settle, order)
	if err != nil {
		return rep, err
	}
	if lost {
		r.makeGroup(ctx)
	}
	if r.unseen = r.fillDialogs(ctx, rep.Units); r.unseen != nil {
		r.returns, rep.Units = rep.Units, nil
	}
	rep.Again = rep.Again || lost || r.unseen != nil
	return rep, nil
}

// read reads the reply and notes the units as held. rebuild says that a lane has lost its group.
func (r *reader) read(s string, settle []broker.Settlement, order []int) (rep broker.TurnReply, rebuild bool, err error) {
	c := &cursor{s: s, bodies: r.bodies}
	status, now, again, alone := c.line(), c.line(), c.line(), c.line()
	waiting, due := c.int(), c.line()
	r.plain = c.line() == "1"
	r.withState = c.line() == "1"
	rep = broker.TurnReply{Again: again == "1", Alone: alone == "1", Off: status == "OFF", Waiting: int64(waiting), Now: msTime(now)}
	if due != "0" {
		rep.NextDue = msTime(due)
	}
	codes := map[int]string{}
	for range c.count() {
		u, code, _ := strings.Cut(c.line(), " ")
		n, _ := strconv.Atoi(u)
		codes[n] = code
	}
	c.line() // sequence numbers of sends
	rep.Results = make([]broker.SettleResult, len(settle))
	for u, i := range order {
		rep.Results[i] = settleResult(&settle[i], codes[u+1])
	}
	for i := range settle {
		delete(r.held, settle[i].Unit.ID)
	}
	n := c.count()
	rep.Units = make([]*broker.Unit, 0, n)
	for i := 0; i < n && !c.bad; i++ {
		rep.Units = append(rep.Units, r.parseUnit(c))
	}
	if r.wantsEps && n > 0 {
		r.wantsEps = r.readEndpoints(c)
	}
	if c.bad {
		return rep, false, broker.ErrCorrupt.With("a turn's reply on queue %q", r.queue)
	}
	r.answered(len(settle)+len(rep.Units) > 0)
	if len(r.broken) > 0 {
		rep.Units = r.setAside(rep.Units)
		rep.Again = true
	}
	r.countRuns(rep.Units, settle)
	return rep, status == "NOGROUP", nil
}

// countRuns remembers how often in a row a group was handed over.
func (r *reader) countRuns(units []*broker.Unit, settle []broker.Settlement) {
	settled := groupsOf(settle)
	if len(settled) == 0 && len(r.runs) == 0 {
		return
	}
	next := map[string]int{}
	for _, u := range units {
		if u.Group != "" && settled[u.Group] {
			next[u.Group] = r.runs[u.Group] + 1
		}
	}
	for _, h := range r.held {
		if g := h.unit.Group; g != "" && r.runs[g] > 0 && next[g] == 0 {
			next[g] = r.runs[g]
		}
	}
	r.runs = next
}

// groupsOf returns the groups of settled units, nil when all of them are plain.
func groupsOf(settle []broker.Settlement) map[string]bool {
	var groups map[string]bool
	for i := range settle {
		if g := settle[i].Unit.Group; g != "" {
			if groups == nil {
				groups = make(map[string]bool, len(settle))
			}
			groups[g] = true
		}
	}
	return groups
}

func settleResult(s *broker.Settlement, code string) broker.SettleResult {
	res := broker.SettleResult{Unit: s.Unit}
	switch code {
	case "":
		res.Consequence = broker.Committed
	case "LOST":
		res.Consequence, res.Err = broker.Lost, broker.ErrLockLost
	case "again":
		res.Consequence = broker.RolledBack
	case "trip":
		res.Consequence = broker.QueueTurned
	case "bury", "buried":
		res.Consequence = broker.DeadLettered
	case "back":
		res.Consequence = broker.Released
	default:
		res.Consequence, res.Err = broker.Refused, effectError(code)
	}
	return res
}

func (r *reader) parseUnit(c *cursor) *broker.Unit {
	slot, size := c.int(), c.line()
	if size == "" || size[0] > '9' {
		return r.parseOne(c, slot, size)
	}
	n, group := c.number(size), c.line()
	if n == 0 { // a unit is never empty
		c.bad = true
	}
	r.nextID++
	u := &broker.Unit{ID: r.nextID, Slot: slot, Group: group, AutoEnd: r.autoEnd, Messages: make([]broker.Message, 0, n)}
	h := &held{unit: u}
	for range n {
		ref, counts, state, head := c.line(), c.line(), c.line(), c.line()
		body := c.body()
		if c.bad {
			return u
		}
		m := r.message(ref, head, group, body)
		h.bytes += len(body)
		if counts != "" {
			h.atts = true
			h.alone = setCounts(&m, counts) || h.alone
		}
		u.EndpointState = broker.State(state)
		u.Messages = append(u.Messages, m)
	}
	if r.withState {
		u.State = c.state()
	}
	r.held[u.ID] = h
	return u
}

// parseOne reads the short form of a unit: one message, plain or of a group, that was never handed out before.
func (r *reader) parseOne(c *cursor, slot int, group string) *broker.Unit {
	ref, state := c.line(), ""
	if group != "" {
		state = c.line()
	}
	head, body := c.line(), c.body()
	r.nextID++
	u := &broker.Unit{
		ID: r.nextID, Slot: slot, Group: group, AutoEnd: r.autoEnd, EndpointState: broker.State(state), Messages: make([]broker.Message, 1),
	}
	if c.bad {
		return u
	}
	u.Messages[0] = r.message(ref, head, group, body)
	if r.withState && group != "" {
		u.State = c.state()
	}
	r.held[u.ID] = &held{unit: u, bytes: len(body)}
	return u
}

// message is one that was handed out in a unit of group.
func (r *reader) message(ref, head, group string, body []byte) broker.Message {
	m, ok := r.b.decode(ref, head, body)
	if !ok {
		if r.broken == nil {
			r.broken = map[string]bool{}
		}
		r.broken[ref] = true
	}
	m.Status = broker.StatusLocked
	if strings.HasPrefix(group, "g:") {
		m.Group = group[2:]
	}
	return m
}

func bodyLen(head string) int {
	_, rest, _ := strings.Cut(head, "|")
	n, _, _ := strings.Cut(rest, "|")
	l, err := strconv.Atoi(n)
	if err != nil {
		return -1
	}
	return l
}

// setCounts reads delivery,poison,uncertain and reports whether the unit is uncertain.
func setCounts(m *broker.Message, s string) bool {
	f := strings.Split(s, ",")
	if len(f) != 3 {
		return false
	}
	m.DeliveryCount, _ = strconv.Atoi(f[0])
	m.PoisonCount, _ = strconv.Atoi(f[1])
	return f[2] != "0"
}

func (c *cursor) state() map[string][]byte {
	n := c.count()
	if n == 0 {
		return nil
	}
	st := make(map[string][]byte, n)
	for range n {
		k := unescape(c.line())
		st[k] = []byte(c.take(c.int()))
	}
	return st
}
