package brokertest

import (
	"fmt"
	"slices"
	"sort"

	"parley/broker"
)

// Violations checks everything that must hold for any queue at any instant, whatever led there: the invariants 1, 2, 3 and
// 8 of the reader protocol, and that the counters tell the truth (G5). It returns one line for each rule that is broken.
func Violations(snap broker.Snapshot) []string {
	c := &checker{snap: snap, backlog: map[string]int{}, held: map[string]int{}}
	c.places()
	c.locks()
	c.dead()
	c.retry()
	c.units()
	c.counters()
	c.sleep()
	sort.Strings(c.found)
	return c.found
}

type checker struct {
	snap    broker.Snapshot
	backlog map[string]int // lock name → rows in its backlog
	held    map[string]int // lock name → rows in units
	found   []string
}

func (c *checker) say(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// rowName names a row for people.
func rowName(m broker.StoredMessage) string {
	id := m.MessageID
	if m.Kind != broker.KindApp {
		id = fmt.Sprintf("%c of %s", m.Kind, m.Conversation)
	}
	return fmt.Sprintf("%s (#%d %s)", id, m.SequenceNumber, m.Place)
}

// places: a message is in exactly one place, and that place agrees with who is said to hold it.
func (c *checker) places() {
	refs, seqs := map[string]broker.StoredMessage{}, map[int64]broker.StoredMessage{}
	last := map[string]int64{}
	for _, m := range c.snap.Messages {
		if m.Place == broker.PlaceAstray {
			c.say("nobody will ever deliver %s", rowName(m))
		}
		if m.Place == broker.PlaceRetained || m.Place == broker.PlaceTransit || m.Place == broker.PlaceTransDead {
			continue
		}
		ref := m.Ref
		if m.Place == broker.PlaceDead {
			ref = "dead " + ref
		}
		o, twice := refs[ref]
		if twice {
			c.say("in two places: %s and %s", rowName(o), rowName(m))
		} else if o, twice = seqs[m.SequenceNumber]; twice {
			c.say("two messages have one sequence number: %s and %s", rowName(o), rowName(m))
		}
		refs[ref], seqs[m.SequenceNumber] = m, m
		switch m.Place {
		case broker.PlaceBacklog, broker.PlaceRetry:
			c.inBacklog(m, last)
		case broker.PlaceHeld:
			c.inUnit(m)
		}
	}
}

func (c *checker) inBacklog(m broker.StoredMessage, last map[string]int64) {
	if m.LockName == "" {
		if m.Place == broker.PlaceBacklog {
			c.say("in a backlog of no group: %s", rowName(m))
		}
		return
	}
	c.backlog[m.LockName]++
	if g, open := c.snap.Conversations[m.Conversation]; open && g != m.LockName {
		c.say("%s is in the backlog of %s, its conversation belongs to %s", rowName(m), m.LockName, g)
	}
	list := fmt.Sprintf("%s/%s/%c", m.LockName, m.Conversation, rank(m.Kind))
	number := m.SequenceNumber
	if m.OldNumber != 0 { // it was put back in its place
		number = m.OldNumber
	}
	if number < last[list] {
		c.say("%s stands behind #%d in its backlog", rowName(m), last[list])
	}
	last[list] = number
}

// rank is the letter of the backlog list a kind belongs to (G6).
func rank(k broker.Kind) broker.Kind {
	if k == broker.KindEndDialog {
		return broker.KindApp
	}
	return k
}

func (c *checker) inUnit(m broker.StoredMessage) {
	r, ok := c.snap.Readers[m.Holder]
	if !ok {
		c.say("%s is held by %q, which is no reader", rowName(m), m.Holder)
		return
	}
	unit := m.LockName
	if unit == "" {
		unit = m.Ref
	} else {
		c.held[unit]++
		if l := c.snap.Locks[unit]; l.Holder != m.Holder && !slices.Contains(l.Shared, m.Holder) {
			c.say("%s is held by %q, but the lock of %s by %q", rowName(m), m.Holder, unit, l.Holder)
		}
	}
	if !slices.ContainsFunc(r.Units, func(u broker.UnitSnapshot) bool { return u.Name == unit }) {
		c.say("%s is held by %q, which has no record of %s", rowName(m), m.Holder, unit)
	}
}

// locks: free with a backlog ⇔ ready; parked ⇔ in retry; held ⇒ by a reader that has something of it; absent ⇒ nothing
// waits, unless a dead letter holds it up.
func (c *checker) locks() {
	for g, l := range c.snap.Locks {
		free := l.Holder == "" && !l.Parked && !l.Dead
		if free != slices.Contains(c.snap.Ready, g) {
			c.say("%s is free: %v, but ready: %v", g, free, !free)
		}
		if _, due := c.snap.Retry[g]; due != l.Parked {
			c.say("%s is parked: %v, but in retry: %v", g, l.Parked, due)
		}
		if l.Holder == "" {
			if c.backlog[g] == 0 && !l.Dead {
				c.say("%s has a lock, but nobody holds it and nothing waits", g)
			}
			continue
		}
		if l.Parked || l.Dead {
			c.say("%s is held and parked", g)
		}
		if _, ok := c.snap.Readers[l.Holder]; !ok {
			c.say("the lock of %s is held by %q, which is no reader", g, l.Holder)
		}
		if c.held[g] == 0 {
			c.say("the lock of %s is held, but no message of it is", g)
		}
		if len(l.Shared) > 0 && (l.Shared[0] != l.Holder || len(l.Shared) != c.held[g]) {
			c.say("the lock of %s is held by %q and shared by %v, but %d messages of it are held", g, l.Holder, l.Shared, c.held[g])
		}
		if c.backlog[g] > 0 && !l.More {
			c.say("the lock of %s does not say that %d more wait", g, c.backlog[g])
		}
	}
	for g, n := range c.backlog {
		if _, ok := c.snap.Locks[g]; !ok {
			c.say("%d messages wait in the backlog of %s, which has no lock", n, g)
		}
	}
	seen := map[string]bool{}
	for _, g := range c.snap.Ready {
		if _, ok := c.snap.Locks[g]; !ok || seen[g] {
			c.say("ready without a lock, or twice: %s", g)
		}
		seen[g] = true
	}
}

// dead: a group is held up exactly while dead letters that are there hold it up, and then it does not rest.
func (c *checker) dead() {
	rows := map[int64]bool{}
	for _, m := range c.snap.Messages {
		if m.Place == broker.PlaceDead {
			rows[m.SequenceNumber] = true
		}
	}
	for g, numbers := range c.snap.Parked {
		if l := c.snap.Locks[g]; !l.Dead && l.Holder == "" || l.Parked { // what was received of it together is settled first
			c.say("%s is held up by %v, but its lock is %+v", g, numbers, c.snap.Locks[g])
		}
		for _, n := range numbers {
			if !rows[n] {
				c.say("%s is held up by #%d, which is no dead letter", g, n)
			}
		}
	}
	for g, l := range c.snap.Locks {
		if l.Dead && len(c.snap.Parked[g]) == 0 {
			c.say("%s is held up by nothing", g)
		}
	}
}

// retry: what is in the retry set waits there, and what waits is in the set.
func (c *checker) retry() {
	waits := map[string]bool{}
	for _, m := range c.snap.Messages {
		if m.Place != broker.PlaceRetry {
			continue
		}
		unit := m.LockName
		if unit == "" {
			unit = m.Ref
		}
		waits[unit] = true
		if _, ok := c.snap.Retry[unit]; !ok {
			c.say("%s waits for a pause that nobody keeps", rowName(m))
		}
	}
	for unit := range c.snap.Retry {
		if _, group := c.snap.Locks[unit]; !waits[unit] && !group {
			c.say("a pause is kept for %s, which does not wait", unit)
		}
	}
}

// units: a reader's record names exactly what it holds.
func (c *checker) units() {
	type holding struct{ unit, holder string }
	held := map[holding]bool{}
	for _, m := range c.snap.Messages {
		if m.Place != broker.PlaceHeld {
			continue
		}
		unit := m.LockName
		if unit == "" {
			unit = m.Ref
		}
		held[holding{unit, m.Holder}] = true
	}
	for name, r := range c.snap.Readers {
		for _, u := range r.Units {
			if !held[holding{u.Name, name}] {
				c.say("reader %s has a record of %s, which it does not hold", name, u.Name)
			}
		}
	}
}

// counters: each counter is the number of rows in its places.
func (c *checker) counters() {
	n := map[broker.Place]int64{}
	var counted int
	for _, m := range c.snap.Messages {
		if m.Place != broker.PlaceDead && m.DeliveryCount+m.PoisonCount+m.Uncertain > 0 {
			counted++
		}
		if !m.Ended {
			n[m.Place]++
		}
	}
	k := c.snap.Counts
	for _, one := range []struct {
		name      string
		got, want int64
	}{
		{"ready", k.Ready, n[broker.PlaceUnread] + n[broker.PlaceBacklog] + n[broker.PlaceBack]},
		{"locked", k.Locked, n[broker.PlaceHeld]},
		{"retrying", k.Retrying, n[broker.PlaceRetry]},
		{"scheduled", k.Scheduled, n[broker.PlaceScheduled]},
		{"deferred", k.Deferred, n[broker.PlaceDeferred]},
		{"dead_letter", k.DeadLetter, n[broker.PlaceDead]},
		{"transmission", k.Transmission, n[broker.PlaceTransit]},
		{"transfer_dead_letter", k.TransferDeadLetter, n[broker.PlaceTransDead]},
	} {
		if one.got != one.want {
			c.say("counter %s is %d, but there are %d", one.name, one.got, one.want)
		}
	}
	if c.snap.Attempts > counted {
		c.say("%d records of failed attempts, but only %d messages have failed", c.snap.Attempts, counted)
	}
}

// sleep: readers are not left asleep while something can be delivered.
func (c *checker) sleep() {
	if !c.snap.Asleep || !c.snap.Status.CanReceive() {
		return
	}
	for _, m := range c.snap.Messages {
		if m.Ended {
			continue
		}
		l, locked := c.snap.Locks[m.LockName]
		switch {
		case m.Place == broker.PlaceBack,
			m.Place == broker.PlaceUnread && !locked,
			m.Place == broker.PlaceBacklog && l.Holder == "" && !l.Parked && !l.Dead:
			c.say("readers sleep, but %s can be delivered", rowName(m))
		}
	}
}
