package redisbroker

import (
	"context"
	"strings"

	"parley/broker"
)

// rowOrder is where a row stands among those of a snapshot.
type rowOrder struct {
	class int    // backlogs, what waits again, other entries, scheduled, dead, in transmission, transfer-dead
	name  string // of a backlog or a transmission stream
	pos   int64
}

// The classes of rows, in the order in which a snapshot has them.
const (
	rowBacklog = iota
	rowBack
	rowEntry
	rowScheduled
	rowDead
	rowTransDead
	rowTransit
)

// placer finds out where each message is, entry by entry; what it keeps is in proportion to what waits in backlogs.
type placer struct {
	b       *Broker
	r       *raw
	add     func(m *broker.StoredMessage, at rowOrder)
	inList  map[string][]listed // ref → where it waits; what is left at the end names no entry
	inBP    map[string]int64    // ref → its place in bp; likewise
	resting map[string]bool     // plain refs in retry
	gone    []goneEntry         // pending, but no entry is there
	moved   func(chg string) bool
	ours    tops
	scratch []byte
}

type listed struct {
	group string
	pos   int64
}

// goneEntry is a pending entry whose message is not there.
type goneEntry struct {
	lane, id, holder string
}

// place calls add with a row for each place that a message of r's entity is in.
func (b *Broker) place(ctx context.Context, r *raw, add func(*broker.StoredMessage, rowOrder)) error {
	p := b.newPlacer(r, add)
	return p.walk(ctx)
}

func (b *Broker) newPlacer(r *raw, add func(*broker.StoredMessage, rowOrder)) *placer {
	p := &placer{
		b: b, r: r, add: add, inList: map[string][]listed{}, inBP: map[string]int64{}, resting: map[string]bool{},
		moved: func(string) bool { return false }, ours: parseTops(r.meta["seq"], r.meta["tops"]),
	}
	for g, refs := range r.lists {
		for i, ref := range refs {
			p.inList[ref] = append(p.inList[ref], listed{g, int64(i)})
		}
	}
	for i, z := range r.bp {
		p.inBP[z.Member.(string)] = int64(i)
	}
	for _, z := range r.retry {
		p.resting[z.Member.(string)] = true
	}
	return p
}

func (p *placer) walk(ctx context.Context) error {
	_, parked := p.r.meta["parked"]
	for _, lane := range lanesOf(p.r.meta["lanes"], parked) {
		f := func(e *lookedAt) { p.entry(lane, e) }
		gone := func(id, holder string) { p.gone = append(p.gone, goneEntry{lane, id, holder}) }
		if err := p.b.lookStream(ctx, p.r.prefix, "s:"+lane, p.moved, f, gone); err != nil {
			return err
		}
	}
	for i, z := range p.r.sch {
		m := broker.StoredMessage{Place: broker.PlaceScheduled}
		m.Ref = z.Member.(string)
		m.SequenceNumber = refSeq(m.Ref)
		p.add(&m, rowOrder{class: rowScheduled, pos: int64(i)})
	}
	for _, t := range p.r.transit {
		n := int64(0)
		f := func(e *lookedAt) {
			m := p.transitRow(t, e)
			n++
			p.add(&m, rowOrder{class: rowTransit, name: t, pos: n})
		}
		if err := p.b.lookStream(ctx, p.r.prefix, "tx:"+t, p.moved, f, func(string, string) {}); err != nil {
			return err
		}
	}
	return nil
}

// entry makes the rows of one entry: one for each place that it is in.
func (p *placer) entry(lane string, e *lookedAt) {
	if p.ours.strange(lane, e.id, e.unread) {
		return // whoever reads it, or a sweep, makes a dead letter of it: no counter has it
	}
	m := p.stored(lane, e)
	if lane == "5" && e.holder != "" && !fixedConsumer(e.holder) {
		p.r.held[e.holder] = append(p.r.held[e.holder], e.id)
	}
	seen := false
	put := func(c broker.StoredMessage, place broker.Place, at rowOrder) {
		c.Place, seen = place, true
		p.add(&c, at)
	}
	for _, l := range p.inList[m.Ref] {
		place := broker.PlaceBacklog
		switch m.Holder {
		case "retry":
			place = broker.PlaceRetry
		case "backlog":
		default: // in a list and in somebody's hands
			put(*m, broker.PlaceHeld, rowOrder{rowBacklog, l.group, l.pos})
		}
		c := *m
		c.LockName, c.Holder = l.group, ""
		put(c, place, rowOrder{rowBacklog, l.group, l.pos})
	}
	delete(p.inList, m.Ref)
	if pos, ok := p.inBP[m.Ref]; ok {
		put(*m, broker.PlaceBack, rowOrder{class: rowBack, pos: pos})
		delete(p.inBP, m.Ref)
	}
	if !seen {
		place := p.alone(m, e)
		if fixedConsumer(m.Holder) {
			m.Holder = ""
		}
		put(*m, place, rowOrder{class: rowEntry, pos: m.SequenceNumber})
	}
}

// fixedConsumer says whether a consumer name is a state and no reader's.
func fixedConsumer(name string) bool {
	return name == "backlog" || name == "retry" || name == "deferred"
}

// alone is the place of an entry that no list names.
func (p *placer) alone(m *broker.StoredMessage, e *lookedAt) broker.Place {
	switch {
	case e.unread:
		return broker.PlaceUnread
	case m.Holder == "retry" && p.resting[m.Ref]:
		return broker.PlaceRetry
	case m.Holder == "" || fixedConsumer(m.Holder):
		return broker.PlaceAstray
	}
	return broker.PlaceHeld
}

// stored decodes one entry and what is known of it.
func (p *placer) stored(lane string, e *lookedAt) *broker.StoredMessage {
	if len(p.scratch) < e.size {
		p.scratch = make([]byte, e.size)
	}
	m := &broker.StoredMessage{Message: p.b.decodeIn(lane, e.id, e.head, p.scratch[:e.size])}
	m.Body = nil
	m.Holder = e.holder
	if lane == "back" {
		_, place, _ := strings.Cut(e.id, "-")
		m.OldNumber = num(place)
	}
	if s, ok := p.r.att[m.Ref]; ok {
		m.Uncertain = storedCounts(&m.Message, s, p.r.meta["epoch"])
	}
	switch {
	case m.Dead != nil: // its conversation is its queue's, it waits alone
	case m.SessionID != "":
		m.LockName = "s:" + escape(m.SessionID)
	case m.Conversation != "":
		v, ok := p.r.cv[m.Conversation]
		m.Ended = !ok
		if ok {
			m.LockName, _, _ = strings.Cut(v, "|")
			m.Group = strings.TrimPrefix(m.LockName, "g:")
		}
	}
	return m
}

func (p *placer) transitRow(target string, e *lookedAt) broker.StoredMessage {
	m := broker.StoredMessage{Place: broker.PlaceTransit, Target: unescape(target)}
	kind, seq, _ := strings.Cut(e.kind, " ")
	m.Ref, m.Conversation, m.MessageSeq = e.id, e.from, num(seq)
	if kind != "" {
		m.Kind = broker.Kind(kind[0])
	}
	if h, ok := parseHeader("|0|||||" + e.rest); ok {
		m.MessageID, m.Type = unescape(h.id), unescape(h.typ)
	}
	m.Status = broker.StatusInTransit
	if last := p.r.txd[m.Conversation]; last != "" && !later(e.id, last) {
		m.Ended = true // END WITH ERROR dropped it; the transmitter removes it when it comes to it
	}
	return m
}

// subRows makes the rows of a sub-queue.
func (b *Broker) subRows(ctx context.Context, prefix string, meta map[string]string, place broker.Place, add func(*broker.StoredMessage, rowOrder)) error {
	p := b.newPlacer(&raw{prefix: prefix, meta: meta, held: map[string][]string{}}, nil)
	class := rowDead
	if place == broker.PlaceTransDead {
		class = rowTransDead
	}
	f := func(e *lookedAt) {
		if p.ours.strange("5", e.id, e.unread) {
			return
		}
		m := p.stored("5", e)
		m.Place, m.Holder = place, ""
		add(m, rowOrder{class: class, pos: refSeq(e.id)})
	}
	return b.lookStream(ctx, prefix, "s:5", p.moved, f, func(string, string) {})
}
