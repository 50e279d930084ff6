package redisbroker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// fix is one step of the script repair: what it does is in the script's header.
type fix struct{ kind, a, b string }

// finding is a difference and how it is mended; a counter is mended only when nothing else is wrong, since it counts the rest.
type finding struct {
	broker.Difference
	fixes []fix
}

// maxFixes is how many steps one repair makes; the next round makes more.
const maxFixes = 1000

// fixesOf chooses what to mend first.
func fixesOf(found []finding) []fix {
	var counters, others []fix
	for _, f := range found {
		for _, x := range f.fixes {
			switch {
			case x.kind == "counter":
				counters = append(counters, x)
			case !slices.Contains(others, x):
				others = append(others, x)
			}
		}
	}
	if len(others) > 0 {
		return others[:min(len(others), maxFixes)]
	}
	return counters
}

// check holds an entity to the invariants 1 to 3 of the reader protocol and to every counter, row by row.
type check struct {
	path     string
	r        *raw
	out      []finding
	messages int64
	counts   broker.Counts
	last     string         // the row before: rows of one message follow each other
	held     map[string]int // lock name → messages of it in units
	readers  map[string]bool
	rests    map[string]bool // names that rest and were met
	dead     map[int64]bool  // numbers that hold up groups → whether they are dead letters
	noBody   []string        // scheduled numbers without a message
	orphans  []string        // scheduled messages without an instant
	index    int64           // entries of ix, in a sub-queue
	indexed  bool
}

func newCheck(path string, r *raw) *check {
	c := &check{path: path, r: r, held: map[string]int{}, readers: map[string]bool{}, rests: map[string]bool{}, dead: map[int64]bool{}}
	for _, z := range r.rd {
		c.readers[z.Member.(string)] = true
	}
	return c
}

func (c *check) report(rule string, want, got any, fixes ...fix) {
	c.out = append(c.out, finding{broker.Difference{Queue: c.path, Rule: rule, Want: fmt.Sprint(want), Got: fmt.Sprint(got)}, fixes})
}

// row takes one row: every accepted message is in exactly one place (G5).
func (c *check) row(m *broker.StoredMessage, _ rowOrder) {
	c.place(m)
	if m.Ended {
		return
	}
	switch m.Place {
	case broker.PlaceUnread, broker.PlaceBacklog, broker.PlaceBack:
		c.counts.Ready++
	case broker.PlaceHeld:
		c.counts.Locked++
	case broker.PlaceRetry:
		c.counts.Retrying++
	case broker.PlaceScheduled:
		c.counts.Scheduled++
	case broker.PlaceTransit:
		c.counts.Transmission++
	default:
		return
	}
	c.messages++
}

func (c *check) place(m *broker.StoredMessage) {
	switch m.Place {
	case broker.PlaceTransit, broker.PlaceScheduled:
		return
	case broker.PlaceAstray:
		c.report("message "+m.Ref+" is where it can be delivered or has been consumed", "a place", "astray", fix{"stray", m.Ref, ""})
	case broker.PlaceHeld:
		if !c.readers[m.Holder] {
			c.report("message "+m.Ref+" is held by a registered reader", "a reader", m.Holder, fix{"ghost", m.Holder, ""})
		}
		if m.LockName != "" {
			c.held[m.LockName]++
		}
	case broker.PlaceRetry:
		if m.LockName != "" {
			c.rests[m.LockName] = true
		} else {
			c.rests[m.Ref] = true
		}
	}
	if m.Ref == c.last {
		f := fix{"unlist", m.LockName, m.Ref}
		if m.Place == broker.PlaceBack {
			f = fix{"unback", m.Ref, ""}
		}
		c.report("message "+m.Ref+" is in one place", "one place", "also "+string(m.Place), f, fix{"group", m.LockName, ""})
	}
	c.last = m.Ref
}

// end checks what only the whole can tell, and returns all that was found.
func (c *check) end(p *placer) []finding {
	c.dangling(p)
	c.locks()
	c.pauses()
	c.parked()
	c.scheduled()
	c.counters()
	return c.out
}

// dangling: what names a message names one that is there.
func (c *check) dangling(p *placer) {
	for _, ref := range slices.Sorted(maps.Keys(p.inList)) {
		for _, l := range p.inList[ref] {
			c.report("backlog of "+l.group+" names messages that are there", "message "+ref, "none", fix{"unlist", l.group, ref}, fix{"group", l.group, ""})
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(p.inBP)) {
		c.report("what waits again is there", "message "+ref, "none", fix{"unback", ref, ""})
	}
	for _, g := range p.gone {
		c.report("a pending entry of lane "+g.lane+" is there", "message "+g.id, "none, pending for "+g.holder, fix{"gone", "s:" + g.lane, g.id})
	}
}

// locks: invariants 2 and 3.
func (c *check) locks() {
	ready := map[string]bool{}
	for _, z := range c.r.ready {
		ready[z.Member.(string)] = true
	}
	for _, g := range slices.Sorted(maps.Keys(c.r.lock)) {
		c.lock(g, ready[g])
		delete(ready, g)
	}
	for _, g := range slices.Sorted(maps.Keys(ready)) {
		c.report("ready group "+g+" has a backlog", "a lock", "none", fix{"group", g, ""})
	}
	for _, g := range slices.Sorted(maps.Keys(c.r.lists)) {
		if _, ok := c.r.lock[g]; !ok && len(c.r.lists[g]) > 0 {
			c.report("the backlog of "+g+" has a lock", "a lock", "none", fix{"group", g, ""})
		}
	}
}

func (c *check) lock(g string, ready bool) {
	l, n := parseLock(c.r.lock[g])
	again := fix{"group", g, ""}
	if int(n) != len(c.r.lists[g]) {
		c.report("lock of "+g+" counts its backlog", len(c.r.lists[g]), n, again)
	}
	rests := slices.ContainsFunc(c.r.retry, func(z redis.Z) bool { return z.Member == g })
	switch {
	case l.Holder != "":
		if !c.readers[l.Holder] {
			c.report("lock of "+g+" is held by a registered reader", "a reader", l.Holder, again)
		} else if c.held[g] == 0 {
			c.report("the holder of "+g+" has a message of it", "1 or more", 0, fix{"unhold", g, ""}, again)
		}
		if ready {
			c.report("group "+g+" is held, so it is not ready", "not ready", "ready", again)
		}
		if s := c.r.shared[g]; len(s) > 0 && (s[0] != l.Holder || len(s) != c.held[g]) {
			c.report("the lock of "+g+" is shared by the tokens that hold messages of it, and has the first", s, fmt.Sprintf("%s, %d messages", l.Holder, c.held[g]), again)
		}
	case l.Dead:
		if rests || ready {
			c.report("group "+g+" is held up by a dead letter, so it neither rests nor is ready", false, true, again)
		}
	case l.Parked != rests:
		c.report("group "+g+" rests if and only if its pause runs", rests, l.Parked, again)
	case !l.Parked && !ready:
		c.report("group "+g+" has a backlog and is free, so it is ready", "ready", c.r.lock[g], again)
	}
}

// pauses: a pause is kept for what rests.
func (c *check) pauses() {
	for _, z := range c.r.retry {
		name := z.Member.(string)
		if _, group := c.r.lock[name]; !group && !c.rests[name] {
			c.report("a pause is kept for what rests", name, "nothing rests", fix{"unrest", name, ""})
		}
	}
}

// parked: a group is held up exactly while dead letters of it say so, and these are there.
func (c *check) parked() {
	for _, g := range slices.Sorted(maps.Keys(c.r.pk)) {
		if l, _ := parseLock(c.r.lock[g]); !l.Dead && l.Holder == "" { // what was received of it together is settled first
			c.report("group "+g+" is held up, and its lock says so", "!", c.r.lock[g], fix{"group", g, ""})
		}
		for _, n := range parkingNumbers(c.r.pk[g]) {
			if !c.dead[n] {
				c.report("what holds up "+g+" is a dead letter", n, "none", fix{"unpark", g, strconv.FormatInt(n, 10)})
			}
		}
	}
	for _, g := range slices.Sorted(maps.Keys(c.r.lock)) {
		if l, _ := parseLock(c.r.lock[g]); l.Dead && c.r.pk[g] == "" {
			c.report("a dead letter holds up "+g, "one or more", "none", fix{"group", g, ""})
		}
	}
	c.counter("parked", "groups that are held up", int64(len(c.r.pk)))
}

// scheduled: what has an instant has a message, and the reverse.
func (c *check) scheduled() {
	for _, n := range c.noBody {
		c.report("scheduled message "+n+" is there", "a message", "none", fix{"unschedule", n, ""})
	}
	for _, n := range c.orphans {
		c.report("scheduled message "+n+" has an instant", "an instant", "none", fix{"schedule", n, ""})
	}
}

// counter compares a counter of meta with what was counted.
func (c *check) counter(name, of string, want int64) {
	if got := num(c.r.meta[name]); got != want {
		c.report("counter "+name+" equals the "+of, want, got, fix{"counter", name, strconv.FormatInt(want, 10)})
	}
}

func (c *check) counters() {
	const of = "messages in that place"
	c.counter("ready", of, c.counts.Ready)
	c.counter("locked", of, c.counts.Locked)
	c.counter("retrying", of, c.counts.Retrying)
	c.counter("scheduled", of, c.counts.Scheduled-int64(len(c.noBody))+int64(len(c.orphans)))
	c.counter("tx", "messages in transmission", c.counts.Transmission)
	c.counter("retained", "messages that retention keeps", c.r.retained)
	if c.indexed && c.index != c.messages {
		c.report("the index of a sub-queue lists its messages", c.messages, c.index, fix{"index", "", ""})
	}
}

// lookAround reads what rows do not tell: whether scheduled messages are there, whether dead letters that hold groups up are, and how
// long the index of a sub-queue is.
func (b *Broker) lookAround(ctx context.Context, c *check) error {
	if err := b.lookScheduled(ctx, c); err != nil {
		return err
	}
	var numbers []int64
	for _, v := range c.r.pk {
		numbers = append(numbers, parkingNumbers(v)...)
	}
	for some := range slices.Chunk(numbers, lookFields) {
		there := make([]*redis.IntCmd, len(some))
		_, err := b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, n := range some {
				at := strconv.FormatInt(n, 10)
				there[i] = pipe.ZCount(ctx, c.r.prefix+"d:ix", at, at)
			}
			return nil
		})
		if err != nil {
			return b.fault("audit", err)
		}
		for i, n := range some {
			c.dead[n] = there[i].Val() > 0
		}
	}
	if c.r.meta["kind"] == "d" || c.r.meta["kind"] == "t" {
		n, err := b.rdb.ZCard(ctx, c.r.prefix+"ix").Result()
		if err != nil {
			return b.fault("audit", err)
		}
		c.index, c.indexed = n, true
	}
	return nil
}

// lookScheduled compares the instants of scheduled messages with the messages, whose bodies stay where they are.
func (b *Broker) lookScheduled(ctx context.Context, c *check) error {
	known := make(map[string]bool, len(c.r.sch))
	for some := range slices.Chunk(c.r.sch, lookFields) {
		size := make([]*redis.Cmd, len(some))
		_, err := b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, z := range some {
				size[i] = pipe.Do(ctx, "HSTRLEN", c.r.prefix+"schm", z.Member)
			}
			return nil
		})
		if err != nil {
			return b.fault("audit", err)
		}
		for i, z := range some {
			n := z.Member.(string)
			known[n] = true
			if v, _ := size[i].Int64(); v == 0 {
				c.noBody = append(c.noBody, n)
			}
		}
	}
	stored, err := b.rdb.HLen(ctx, c.r.prefix+"schm").Result()
	if err != nil || stored == int64(len(known)-len(c.noBody)) {
		return b.fault("audit", err)
	}
	all, err := b.hashOf(ctx, c.r.prefix+"schm") // only when somebody damaged it: this reads bodies
	for n := range all {
		if !known[n] {
			c.orphans = append(c.orphans, n)
		}
	}
	slices.Sort(c.orphans)
	return err
}
