package redisbroker

import (
	"sort"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// placer finds out where each message is.
type placer struct {
	b      *Broker
	r      *raw
	s      *broker.Snapshot
	inList map[string]string
	inBP   map[string]bool
}

func (p *placer) place() error {
	byRef := map[string]*broker.StoredMessage{}
	var order []string
	for lane, x := range p.r.lanes {
		for _, e := range x {
			m := p.stored(lane, e)
			byRef[m.Ref] = m
			order = append(order, m.Ref)
		}
	}
	sort.Slice(order, func(i, j int) bool { return refSeq(order[i]) < refSeq(order[j]) })
	seen := map[string]bool{}
	add := func(m *broker.StoredMessage, place broker.Place) {
		c := *m
		c.Place = place
		p.s.Messages = append(p.s.Messages, c)
		seen[m.Ref] = true
	}
	p.backlogs(byRef, add)
	for _, z := range p.r.bp {
		if m := byRef[z.Member.(string)]; m != nil {
			add(m, broker.PlaceBack)
		}
	}
	for _, ref := range order {
		p.rest(byRef[ref], seen, add)
	}
	p.elsewhere()
	return nil
}

// stored decodes one entry and what is known of it.
func (p *placer) stored(lane string, e redis.XMessage) *broker.StoredMessage {
	m := &broker.StoredMessage{Message: p.b.decodeLane(lane, e)}
	m.Body = nil
	if lane == "back" {
		_, place, _ := strings.Cut(e.ID, "-")
		m.OldNumber = num(place)
	}
	if s, ok := p.r.att[m.Ref]; ok {
		m.Uncertain = storedCounts(&m.Message, s, p.r.meta["epoch"])
	}
	switch {
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
	m.Holder = p.r.pending[lane][e.ID]
	return m
}

func (p *placer) backlogs(byRef map[string]*broker.StoredMessage, add func(*broker.StoredMessage, broker.Place)) {
	names := make([]string, 0, len(p.r.lists))
	for g := range p.r.lists {
		names = append(names, g)
	}
	sort.Strings(names)
	for _, g := range names {
		for _, ref := range p.r.lists[g] {
			m := byRef[ref]
			if m == nil {
				continue // the entry is gone: nothing is stored any more
			}
			c := *m
			c.LockName = g
			place := broker.PlaceBacklog
			switch c.Holder {
			case "retry":
				place = broker.PlaceRetry
			case "backlog":
			default:
				add(m, broker.PlaceHeld) // in a list and in somebody's hands
			}
			c.Holder = ""
			add(&c, place)
		}
	}
}

// rest places a message that is in no list: unread, in a unit, resting, or astray.
func (p *placer) rest(m *broker.StoredMessage, seen map[string]bool, add func(*broker.StoredMessage, broker.Place)) {
	switch {
	case m.Holder == "":
		if !seen[m.Ref] {
			lane := "5"
			if _, l, ok := strings.Cut(m.Ref, "/"); ok {
				lane = l
				switch l {
				case "t", "e":
					lane = "sys"
				case "b":
					lane = "back"
				}
			}
			if later(strconv.FormatInt(m.SequenceNumber, 10)+"-0", p.r.unreadAfter[lane]) {
				add(m, broker.PlaceUnread)
			} else {
				add(m, broker.PlaceAstray)
			}
		}
	case m.Holder == "backlog" || m.Holder == "deferred":
		if !seen[m.Ref] {
			m.Holder = ""
			add(m, broker.PlaceAstray)
		}
	case m.Holder == "retry":
		if !seen[m.Ref] {
			m.Holder = ""
			place := broker.PlaceAstray
			for _, z := range p.r.retry {
				if z.Member == m.Ref {
					place = broker.PlaceRetry
				}
			}
			add(m, place)
		}
	default:
		if !seen[m.Ref] {
			add(m, broker.PlaceHeld)
		}
	}
}

func later(a, b string) bool {
	am, as, _ := strings.Cut(a, "-")
	bm, bs, _ := strings.Cut(b, "-")
	if num(am) != num(bm) {
		return num(am) > num(bm)
	}
	return num(as) > num(bs)
}

// elsewhere adds scheduled, dead, transit and transfer-dead rows.
func (p *placer) elsewhere() {
	for _, z := range p.r.sch {
		m := broker.StoredMessage{Place: broker.PlaceScheduled}
		m.Ref = z.Member.(string)
		m.SequenceNumber = refSeq(m.Ref)
		p.s.Messages = append(p.s.Messages, m)
	}
	for _, e := range p.r.dead {
		m := broker.StoredMessage{Message: p.b.decodeLane("5", e), Place: broker.PlaceDead}
		m.Body = nil
		p.s.Messages = append(p.s.Messages, m)
	}
	for _, e := range p.r.transDead {
		m := broker.StoredMessage{Message: p.b.decodeLane("5", e), Place: broker.PlaceTransDead}
		m.Body = nil
		p.s.Messages = append(p.s.Messages, m)
	}
	targets := make([]string, 0, len(p.r.transit))
	for t := range p.r.transit {
		targets = append(targets, t)
	}
	sort.Strings(targets)
	for _, t := range targets {
		for _, e := range p.r.transit[t] {
			p.s.Messages = append(p.s.Messages, p.transitRow(t, e))
		}
	}
}

func (p *placer) transitRow(target string, e redis.XMessage) broker.StoredMessage {
	f := func(k string) string { s, _ := e.Values[k].(string); return s }
	m := broker.StoredMessage{Place: broker.PlaceTransit, Target: unescape(target)}
	m.Ref, m.Conversation, m.MessageSeq = e.ID, f("from"), num(f("seq"))
	if k := f("k"); k != "" {
		m.Kind = broker.Kind(k[0])
	}
	if h, ok := parseHeader("|0|||||" + f("rest")); ok {
		m.MessageID, m.Type = unescape(h.id), unescape(h.typ)
	}
	m.Status = broker.StatusInTransit
	if last := p.r.txd[m.Conversation]; last != "" && !later(e.ID, last) {
		m.Ended = true // END WITH ERROR dropped it; the transmitter removes it when it comes to it
	}
	return m
}
