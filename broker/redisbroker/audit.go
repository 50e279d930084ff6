package redisbroker

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"parley/broker"
)

// auditTries is how often a queue that moves is looked at before audit gives up on it.
const auditTries = 5

// Audit implements broker.Auditor. A queue is read under its change counter; a difference counts only when it is seen twice
// while the counter stood still.
func (b *Broker) Audit(ctx context.Context, queues ...string) ([]broker.Difference, error) {
	if len(queues) == 0 {
		var err error
		if queues, err = b.Queues(ctx); err != nil {
			return nil, err
		}
	}
	var out []broker.Difference
	for _, q := range queues {
		if _, err := b.queueEntry(ctx, q); err != nil {
			return out, err
		}
		d, err := b.auditQueue(ctx, q)
		if err != nil {
			return out, err
		}
		out = append(out, d...)
	}
	return out, nil
}

func (b *Broker) auditQueue(ctx context.Context, queue string) ([]broker.Difference, error) {
	var before []broker.Difference
	for range auditTries {
		now, moved, err := b.auditOnce(ctx, queue)
		if err != nil {
			return nil, err
		}
		if len(now) == 0 {
			return nil, nil
		}
		if !moved {
			if same := sameDifferences(before, now); len(same) > 0 {
				return same, nil
			}
			before = now
		}
	}
	return nil, nil
}

// auditOnce looks once and says whether the queue moved meanwhile.
func (b *Broker) auditOnce(ctx context.Context, queue string) ([]broker.Difference, bool, error) {
	p := b.prefix(queue)
	r, err := b.readRaw(ctx, p)
	if err != nil {
		return nil, false, err
	}
	s, err := b.snapshotOf(queue, r)
	if err != nil {
		return nil, false, err
	}
	chg, err := b.rdb.HGet(ctx, p+"meta", "chg").Result()
	if err != nil && !isNil(err) {
		return nil, false, b.fault("audit", err)
	}
	return checkSnapshot(&s, r), chg != r.meta["chg"], nil
}

func sameDifferences(a, b []broker.Difference) []broker.Difference {
	var out []broker.Difference
	for _, x := range b {
		for _, y := range a {
			if x == y {
				out = append(out, x)
			}
		}
	}
	return out
}

// checkSnapshot checks invariants 1 to 3 of the protocol and every counter.
func checkSnapshot(s *broker.Snapshot, r *raw) []broker.Difference {
	a := &auditing{queue: s.Queue}
	a.places(s)
	a.counters(s, r)
	a.locks(s, r)
	a.parked(s, r)
	return a.out
}

type auditing struct {
	queue string
	out   []broker.Difference
}

func (a *auditing) report(rule string, want, got any) {
	a.out = append(a.out, broker.Difference{Queue: a.queue, Rule: rule, Want: fmt.Sprint(want), Got: fmt.Sprint(got)})
}

// places: every accepted message is in exactly one place (G5).
func (a *auditing) places(s *broker.Snapshot) {
	seen := map[string]broker.Place{}
	for i := range s.Messages {
		m := &s.Messages[i]
		switch m.Place {
		case broker.PlaceDead, broker.PlaceTransit, broker.PlaceTransDead:
			continue
		case broker.PlaceAstray:
			a.report(fmt.Sprintf("message %s is where it can be delivered or has been consumed", m.Ref), "a place", "astray, pending for "+m.Holder)
		case broker.PlaceHeld:
			if _, ok := s.Readers[m.Holder]; !ok {
				a.report(fmt.Sprintf("message %s is held by a registered reader", m.Ref), "a reader", m.Holder)
			}
		}
		if p, twice := seen[m.Ref]; twice {
			a.report(fmt.Sprintf("message %s is in one place", m.Ref), p, m.Place)
		}
		seen[m.Ref] = m.Place
	}
}

func (a *auditing) counters(s *broker.Snapshot, r *raw) {
	var c broker.Counts
	for i := range s.Messages {
		m := &s.Messages[i]
		if m.Ended {
			continue
		}
		switch m.Place {
		case broker.PlaceUnread, broker.PlaceBacklog, broker.PlaceBack:
			c.Ready++
		case broker.PlaceHeld:
			c.Locked++
		case broker.PlaceRetry:
			c.Retrying++
		case broker.PlaceScheduled:
			c.Scheduled++
		case broker.PlaceDead:
			c.DeadLetter++
		case broker.PlaceTransDead:
			c.TransferDeadLetter++
		case broker.PlaceTransit:
			c.Transmission++
		}
	}
	for _, x := range []struct {
		name      string
		want, got int64
	}{
		{"ready", c.Ready, s.Counts.Ready},
		{"locked", c.Locked, s.Counts.Locked},
		{"retrying", c.Retrying, s.Counts.Retrying},
		{"scheduled", c.Scheduled, s.Counts.Scheduled},
		{"dead_letter", c.DeadLetter, s.Counts.DeadLetter},
		{"transfer_dead_letter", c.TransferDeadLetter, s.Counts.TransferDeadLetter},
		{"transmission", c.Transmission, s.Counts.Transmission},
		{"retained", r.retained, s.Counts.Retained},
	} {
		if x.want != x.got {
			a.report("counter "+x.name+" equals the messages in that place", x.want, x.got)
		}
	}
}

// locks: invariants 2 and 3.
func (a *auditing) locks(s *broker.Snapshot, r *raw) {
	ready := map[string]bool{}
	for _, g := range s.Ready {
		ready[g] = true
	}
	held := map[string]int{}
	for i := range s.Messages {
		if m := &s.Messages[i]; m.Place == broker.PlaceHeld && m.LockName != "" {
			held[m.LockName]++
		}
	}
	names := make([]string, 0, len(r.lock))
	for g := range r.lock {
		names = append(names, g)
	}
	sort.Strings(names)
	for _, g := range names {
		l, n := parseLock(r.lock[g])
		if int(n) != len(r.lists[g]) {
			a.report("lock of "+g+" counts its backlog", len(r.lists[g]), n)
		}
		_, parked := s.Retry[g]
		switch {
		case l.Holder != "":
			if _, ok := s.Readers[l.Holder]; !ok {
				a.report("lock of "+g+" is held by a registered reader", "a reader", l.Holder)
			}
			if held[g] == 0 {
				a.report("the holder of "+g+" has a message of it", "1 or more", 0)
			}
		case l.Dead:
			if parked || ready[g] {
				a.report("group "+g+" is held up by a dead letter, so it neither rests nor is ready", false, true)
			}
		case l.Parked != parked:
			a.report("group "+g+" is parked if and only if its pause runs", parked, l.Parked)
		case !l.Parked && !ready[g]:
			a.report("group "+g+" has a backlog and is free, so it is ready", "ready", strings.TrimSpace(r.lock[g]))
		}
		delete(ready, g)
	}
	for g := range ready {
		a.report("ready group "+g+" has a backlog", "a lock", "none")
	}
	for g, list := range r.lists {
		if _, ok := r.lock[g]; !ok && len(list) > 0 {
			a.report("a backlog has a lock", g, "none")
		}
	}
}

// parked: a group is held up exactly while dead letters of it say so, and these are there.
func (a *auditing) parked(s *broker.Snapshot, r *raw) {
	dead := map[int64]bool{}
	for i := range s.Messages {
		if m := &s.Messages[i]; m.Place == broker.PlaceDead {
			dead[m.SequenceNumber] = true
		}
	}
	for g, numbers := range s.Parked {
		if !s.Locks[g].Dead {
			a.report("group "+g+" is held up, and its lock says so", "!", r.lock[g])
		}
		for _, n := range numbers {
			if !dead[n] {
				a.report("what holds up "+g+" is a dead letter", n, "none")
			}
		}
	}
	for g, l := range s.Locks {
		if _, ok := s.Parked[g]; l.Dead && !ok {
			a.report("a dead letter holds up "+g, "one or more", "none")
		}
	}
	if n := num(r.meta["parked"]); n != int64(len(s.Parked)) {
		a.report("counter parked equals the groups that are held up", len(s.Parked), n)
	}
}
