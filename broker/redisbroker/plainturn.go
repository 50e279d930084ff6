package redisbroker

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// errRead says that a transaction read messages which its script did not count in: resume gives them back.
var errRead = fmt.Errorf("redisbroker: messages were read and not counted: %w", io.ErrUnexpectedEOF)

// plainly reports whether a turn that settles settle may be one of plainTurn: the last answer said that only plain messages
// are in the queue, and all that is settled are commits without effects of plain messages never handed out before.
//
// A Cluster's client repeats a transaction by itself when a connection breaks (M6), so there every turn is the script turn.
func (r *reader) plainly(settle []broker.Settlement) bool {
	if !r.plain || r.noPlain || r.b.cluster {
		return false
	}
	for i := range settle {
		s := &settle[i]
		if s.Verdict != broker.VerdictCommit || s.Unit.Group != "" || len(s.Effects) > 0 {
			return false
		}
		if h := r.held[s.Unit.ID]; h == nil || h.atts || strings.IndexByte(s.Unit.Messages[0].Ref, '/') >= 0 {
			return false
		}
	}
	return true
}

// plainTurn makes a turn whose bodies no script reads: XREADGROUP and the script plain in one transaction (see the script's
// header). done is false when the script declined: then nothing was settled or handed out.
func (r *reader) plainTurn(ctx context.Context, req broker.TurnRequest, settle []broker.Settlement) (rep broker.TurnReply, done bool, err error) {
	win, closed := r.kept(settle)
	free, _ := openSlots(req, closed)
	bytes := 0
	args := make([]any, 0, 13+len(settle)+len(free))
	args = append(args, "evalsha", r.b.scripts["plain"].sha, 1, r.key, r.b.now(), r.name, r.lease.Milliseconds(), r.callNumber(),
		r.lastNumber(), win, 0, len(settle), len(free))
	for i := range settle {
		args = append(args, &settle[i].Unit.Messages[0].Ref)
		bytes += r.held[settle[i].Unit.ID].bytes
	}
	args[10] = bytes
	ahead, err := r.readAhead(ctx, append(args, free...), len(free))
	if redis.HasErrorPrefix(err, "OOM") { // a full Redis queues nothing of a transaction; it runs the script turn
		r.plain = false
		return rep, false, nil
	}
	if err != nil {
		return rep, false, err
	}
	answer, counters, _ := strings.Cut(ahead.said, "\n")
	switch answer {
	case "NO":
		r.plain = false
		return rep, false, nil
	case "OK":
		rep, err = r.plainReply(counters, ahead.entries, free, settle)
		if err == nil && ahead.lost {
			rep.Again = true
			r.makeGroup(ctx)
		}
		return rep, err == nil, err
	}
	return rep, false, r.refusal(answer)
}

// ahead is what a transaction answered.
type ahead struct {
	said    string // by the script
	entries []entry
	lost    bool // the stream has lost its group
}

// readAhead executes the transaction, or the script alone when nothing is to be read.
func (r *reader) readAhead(ctx context.Context, args []any, count int) (a ahead, err error) {
	ctx, cancel := r.try(ctx)
	defer cancel()
	script := redis.NewCmd(ctx, args...)
	reading := redis.NewRawCmd(ctx, "xreadgroup", "group", "w", r.name, "count", count, "streams", r.prefix+"s:5", ">")
	if count == 0 {
		_ = r.b.rdb.Process(ctx, script)
	} else {
		_, _ = r.b.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			_ = p.Process(ctx, reading)
			return p.Process(ctx, script)
		})
	}
	a.said, err = script.Text()
	if refused := reading.Err(); redis.HasErrorPrefix(err, "EXECABORT") && refused != nil {
		return a, refused // the reason why nothing was done, such as READONLY in a failover
	}
	if redis.HasErrorPrefix(err, "NOSCRIPT") { // restart or SCRIPT FLUSH
		r.plain = false
		if err := r.b.rdb.ScriptLoad(ctx, r.b.scripts["plain"].source).Err(); err != nil {
			return a, err
		}
		return a, errRead
	}
	if err != nil && count > 0 && reading.Err() == nil {
		return a, fmt.Errorf("%w: %v", errRead, err)
	}
	if err != nil || count == 0 {
		return a, err
	}
	var refused string
	a.entries, refused, err = readEntries(reading.Val())
	switch {
	case err != nil:
	case strings.HasPrefix(refused, "NOGROUP"):
		a.lost = true
	case refused != "":
		err = answered(refused)
	}
	return a, err
}

// plainReply makes the reply of what the script counted and what was read. The two differ only when somebody else wrote to
// the stream, or its group is lost: then everything goes back, and the script turn finds out what it is.
func (r *reader) plainReply(counters string, entries []entry, free []any, settle []broker.Settlement) (broker.TurnReply, error) {
	c := &cursor{s: counters + "\n"}
	now, again, waiting, due, n, top := c.line(), c.line(), c.int(), c.line(), c.int(), int64(c.int())
	rep := broker.TurnReply{Again: again == "1", Waiting: int64(waiting), Now: msTime(now), Results: make([]broker.SettleResult, len(settle))}
	if due != "0" {
		rep.NextDue = msTime(due)
	}
	r.noPlain = true // until all of it is understood
	if c.bad || n != len(entries) {
		return rep, errRead
	}
	rep.Units = make([]*broker.Unit, n)
	for i := range entries {
		if rep.Units[i] = r.plainUnit(&entries[i], free[i].(int)); rep.Units[i] == nil {
			return rep, errRead
		}
	}
	if n > 0 && refSeq(entries[n-1].id) > top { // numbers ascend
		return rep, errRead
	}
	r.noPlain = false
	r.answered(len(settle) > 0 || n > 0)
	for i := range settle {
		rep.Results[i] = broker.SettleResult{Unit: settle[i].Unit, Consequence: broker.Committed}
		delete(r.held, settle[i].Unit.ID)
	}
	for _, u := range rep.Units {
		r.held[u.ID] = &held{unit: u, bytes: len(u.Messages[0].Body)}
	}
	return rep, nil
}

// plainUnit is a unit of one entry, or nil when the entry has not the form in which plain messages are written.
func (r *reader) plainUnit(e *entry, slot int) *broker.Unit {
	length, found := strings.CutPrefix(e.head, "|")
	length, _, _ = strings.Cut(length, "|")
	if n, err := strconv.Atoi(length); !found || err != nil || n != len(e.body) || !strings.HasSuffix(e.id, "-0") {
		return nil
	}
	r.nextID++
	u := &broker.Unit{ID: r.nextID, Slot: slot, AutoEnd: r.autoEnd, Messages: make([]broker.Message, 1)}
	u.Messages[0] = r.message(e.id, e.head, "", e.body)
	if len(r.broken) > 0 { // the script turn hands it out again
		clear(r.broken)
		return nil
	}
	return u
}
