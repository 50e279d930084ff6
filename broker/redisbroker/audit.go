package redisbroker

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"parley/broker"
)

const (
	// auditLooks is how often a queue that moves is looked at before audit says that it could not be compared.
	auditLooks = 5
	// auditPause is how long audit waits before it looks again at a queue that moved; it doubles each time.
	auditPause = 20 * time.Millisecond
	// repairRounds bounds how often a queue is repaired and looked at again: one repair may uncover the next.
	repairRounds = 20
)

// Audit implements broker.Auditor. A queue is read under its change counter, in steps of bounded size; a difference counts only when
// it is seen twice while the counter stood still.
func (b *Broker) Audit(ctx context.Context, queues ...string) (broker.AuditReport, error) {
	return b.auditAll(ctx, queues, false)
}

// Repair implements broker.Auditor.
func (b *Broker) Repair(ctx context.Context, queues ...string) (broker.AuditReport, error) {
	return b.auditAll(ctx, queues, true)
}

func (b *Broker) auditAll(ctx context.Context, queues []string, repair bool) (broker.AuditReport, error) {
	a := &auditor{b: b, conversations: map[uint64]struct{}{}}
	prefix := "{" + b.ns + "/"
	if len(queues) == 1 {
		prefix = b.prefix(queues[0])
	}
	if len(queues) == 0 {
		var err error
		if queues, err = b.Queues(ctx); err != nil {
			return a.rep, err
		}
		if len(queues) == 0 {
			return a.rep, broker.ErrUnknownEntity.With("namespace %q has no entities: nothing can be compared; check --namespace, or apply a file first", b.ns)
		}
	}
	for _, q := range queues {
		if _, err := b.queueEntry(ctx, q); err != nil {
			return a.rep, err
		}
	}
	var err error
	if a.names, err = b.scanNames(ctx, prefix); err != nil {
		return a.rep, err
	}
	for _, q := range queues {
		if err := a.queue(ctx, q, repair); err != nil {
			return a.rep, err
		}
	}
	a.rep.Conversations = int64(len(a.conversations))
	return a.rep, nil
}

// auditor is one audit of some queues.
type auditor struct {
	b             *Broker
	names         map[string]*keyNames
	rep           broker.AuditReport
	conversations map[uint64]struct{} // hashes of what both sides of a conversation have in common
}

// queue audits a queue and its sub-queues.
func (a *auditor) queue(ctx context.Context, queue string, repair bool) error {
	a.rep.Queues++
	p := a.b.prefix(queue)
	for _, e := range []struct{ path, prefix string }{
		{queue, p},
		{broker.FormatDeadLetterPath(queue), p + "d:"},
		{broker.FormatTransferDeadLetterPath(queue), p + "t:"},
	} {
		rounds := 1
		if repair {
			rounds = repairRounds
		}
		if err := a.entity(ctx, e.path, e.prefix, rounds); err != nil {
			return err
		}
	}
	return nil
}

// entity looks at one entity until it is known to be right, wrong or restless, and repairs it in all rounds but the last.
func (a *auditor) entity(ctx context.Context, path, prefix string, rounds int) error {
	for round := 1; ; round++ {
		l, settled, err := a.settle(ctx, path, prefix)
		if err != nil {
			return err
		}
		if !settled || len(l.found) == 0 || round >= rounds {
			a.count(path, l, settled)
			return nil
		}
		n, err := a.b.repair(ctx, prefix, l)
		if err != nil {
			return err
		}
		if n == 0 { // nothing of it can be mended by itself
			a.count(path, l, settled)
			return nil
		}
		if n > 0 {
			for _, f := range l.found {
				a.rep.Repaired = append(a.rep.Repaired, f.Difference)
			}
		}
		a.names = nil // what was repaired has other keys now
	}
}

// count adds the last look at an entity to the report.
func (a *auditor) count(path string, l *look, settled bool) {
	if !settled {
		a.rep.Unsettled = append(a.rep.Unsettled, path)
		return
	}
	a.rep.Messages += l.messages
	for h := range l.r.cv {
		if len(h) < 16 {
			continue
		}
		f := fnv.New64a()
		_, _ = f.Write([]byte(h[9:14] + h[15:])) // without the queue's number and the digit of its side
		a.conversations[f.Sum64()] = struct{}{}
	}
	for _, f := range l.found {
		a.rep.Differences = append(a.rep.Differences, f.Difference)
	}
}

// settle looks at an entity until two looks agree, or one finds it right.
func (a *auditor) settle(ctx context.Context, path, prefix string) (last *look, settled bool, err error) {
	var before []finding
	pause := auditPause
	for i := range auditLooks {
		names := a.names
		if i > 0 || names == nil {
			if names, err = a.b.scanNames(ctx, prefix); err != nil {
				return nil, false, err
			}
		}
		l, err := a.b.look(ctx, path, prefix, names[prefix])
		if err != nil {
			return nil, false, err
		}
		switch {
		case l.moved:
			pauseFor(ctx, pause)
			pause *= 2
			continue
		case len(l.found) == 0:
			return l, true, nil
		}
		if same := sameFindings(before, l.found); len(same) > 0 {
			l.found = same
			return l, true, nil
		}
		before = l.found
	}
	return nil, false, ctx.Err()
}

func sameFindings(a, b []finding) []finding {
	return slices.DeleteFunc(slices.Clone(b), func(x finding) bool {
		return !slices.ContainsFunc(a, func(y finding) bool { return x.Difference == y.Difference })
	})
}

// look is one look at an entity.
type look struct {
	r        *raw
	chg      string // the change counter while it was looked at
	moved    bool   // it changed meanwhile: what was seen says nothing
	messages int64
	found    []finding
}

// look reads an entity once and says what is wrong there.
func (b *Broker) look(ctx context.Context, path, prefix string, names *keyNames) (*look, error) {
	r, err := b.readRaw(ctx, prefix, names)
	if err != nil {
		return nil, err
	}
	l := &look{r: r, chg: r.meta["chg"]}
	c := newCheck(path, r)
	if len(r.meta) == 0 {
		c.report("a queue of the directory is stored", "its keys", "none")
		l.found = c.out
		return l, nil
	}
	p := b.newPlacer(r, c.row)
	p.moved = func(chg string) bool {
		l.moved = l.moved || chg != l.chg
		return l.moved
	}
	if err := p.walk(ctx); err != nil {
		return nil, err
	}
	if err := b.lookAround(ctx, c); err != nil {
		return nil, err
	}
	chg, err := b.rdb.HGet(ctx, prefix+"meta", "chg").Result()
	if err != nil && !isNil(err) {
		return nil, b.fault("audit", err)
	}
	if l.moved = l.moved || chg != l.chg; !l.moved {
		l.found, l.messages = c.end(p), c.messages
	}
	return l, nil
}

// repair mends what a look found, unless the entity changed since, and returns how much it did; -1 when it changed.
func (b *Broker) repair(ctx context.Context, prefix string, l *look) (int, error) {
	fixes := fixesOf(l.found)
	if len(fixes) == 0 {
		return 0, nil
	}
	args := []any{b.now(), l.chg, len(fixes)}
	for _, f := range fixes {
		args = append(args, f.kind, f.a, f.b)
	}
	a, err := b.repeatStrings(ctx, "repair", prefix+"meta", args...)
	if err != nil {
		return 0, err
	}
	switch {
	case len(a) == 1 && (a[0] == "MOVED" || a[0] == "NOENT"):
		return -1, nil
	case len(a) == 2 && a[0] == "REPAIRED":
		return int(num(a[1])), nil
	}
	return 0, fmt.Errorf("repair of %s: unexpected answer %q", b.queueOf(prefix), strings.Join(a, " "))
}
