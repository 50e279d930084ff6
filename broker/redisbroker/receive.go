package redisbroker

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"parley/broker"
)

// A peek-lock is a reader of its own whose name is the token: p:<random>~<unit>. One receive registers one name for all its
// units, each in a slot of its own, so that an expired lock counts each of them exactly once.
const tokenMark = "~"

// Receive implements broker.Receiver.
func (b *Broker) Receive(ctx context.Context, path string, opt broker.ReceiveOptions) ([]broker.Delivery, error) {
	prefix, queue := b.pathPrefix(path)
	e, err := b.queueEntry(ctx, queue)
	if err != nil {
		return nil, err
	}
	if opt.Lock <= 0 {
		opt.Lock = e.Settings.LockDuration
	}
	opt.Max, opt.Top = max(1, opt.Max), max(1, opt.Top)
	group, err := b.receiveGroup(ctx, queue, prefix, &opt)
	if err != nil {
		return nil, err
	}
	wake, stop := b.hub.watch(prefix)
	defer stop()
	deadline := time.Now().Add(opt.Wait)
	for {
		d, again, err := b.receiveOnce(ctx, prefix, path, group, opt)
		if err != nil || len(d) > 0 {
			return d, err
		}
		if again {
			continue
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, nil
		}
		if err := b.awaitWake(ctx, wake, left); err != nil {
			return nil, err
		}
	}
}

// receivePoll bounds how long a lost wake-up, or something that becomes due while no host runs, can go unnoticed.
const receivePoll = 500 * time.Millisecond

func (b *Broker) awaitWake(ctx context.Context, wake <-chan struct{}, left time.Duration) error {
	t := time.NewTimer(min(left, receivePoll))
	defer t.Stop()
	select {
	case <-wake:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// receiveGroup finds the lock name that a receive by conversation or group is for; unknown ones are errors (RC-5).
func (b *Broker) receiveGroup(ctx context.Context, queue, prefix string, opt *broker.ReceiveOptions) (string, error) {
	if opt.Conversation != "" {
		q, err := b.queueOfHandle(ctx, opt.Conversation)
		if err != nil {
			return "", err
		}
		v, err := b.rdb.HGet(ctx, prefix+"cv", opt.Conversation).Result()
		if q != queue || isNil(err) {
			return "", broker.ErrUnknownConversation.With("%s on queue %q", opt.Conversation, queue)
		}
		if err != nil {
			return "", b.fault("receive", err)
		}
		g, _, _ := strings.Cut(v, "|")
		return g, nil
	}
	if opt.Group == "" {
		return "", nil
	}
	g := "g:" + opt.Group
	ok, err := b.rdb.HExists(ctx, prefix+"gr", g).Result()
	if err != nil {
		return "", b.fault("receive", err)
	}
	if !ok {
		return "", broker.ErrUnknownGroup.With("%s on queue %q", opt.Group, queue)
	}
	return g, nil
}

// receiveOnce promotes what is due and takes what is there. An unknown outcome is repaired by giving the token up: whatever it
// took goes back uncounted.
func (b *Broker) receiveOnce(ctx context.Context, prefix, path, group string, opt broker.ReceiveOptions) ([]broker.Delivery, bool, error) {
	if err := b.promote(ctx, prefix); err != nil {
		return nil, false, err
	}
	r := b.newReader(prefix, path, opt.Lock)
	r.name, r.token = "p:"+rand.Text(), true
	r.flags += "nfe"
	free := make([]any, opt.Max)
	for i := range free {
		free[i] = i
	}
	args := []any{
		r.name, b.now(), r.lease.Milliseconds(), r.flags, opt.Top, len(free), len(free), "", escape(b.ns), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		group, opt.Conversation, r.callNumber(), "",
	}
	v, err := b.run(ctx, "turn", r.key, append(args, free...)...)
	if infrastructure(err) {
		if rerr := r.giveUp(ctx); rerr != nil {
			return nil, false, b.fault("receive from "+path, rerr)
		}
		return nil, true, ctx.Err()
	}
	if err != nil {
		return nil, false, b.fault("receive from "+path, err)
	}
	s := r.text(v)
	if s == "NOENT" {
		return nil, false, broker.ErrUnknownEntity.With("%q is gone from Redis", path)
	}
	rep, err := r.parse(ctx, s, nil, nil)
	if err == nil {
		err = r.mend(ctx)
	}
	if err == nil {
		err = r.unseen
	}
	if err != nil { // nobody has seen what was handed out
		_ = r.giveUp(ctx) // what fails here as well is for the lock's end
		return nil, false, err
	}
	if rep.Off {
		return nil, false, broker.ErrQueueDisabled.With("receive from %q; switch it on with runtime queue enable", path)
	}
	out := make([]broker.Delivery, len(rep.Units))
	for i, u := range rep.Units {
		out[i] = broker.Delivery{Token: fmt.Sprintf("%s%s%d", r.name, tokenMark, u.Slot), LockedUntil: rep.Now.Add(opt.Lock), Unit: u}
	}
	return out, rep.Again && len(out) == 0, nil
}

// Settle implements broker.Receiver. The unit is looked up by the token, so whoever knows the token may settle (RM-8).
func (b *Broker) Settle(ctx context.Context, path, token string, s broker.Settlement) (broker.SettleResult, error) {
	prefix, queue := b.pathPrefix(path)
	if _, err := b.queueEntry(ctx, queue); err != nil {
		return broker.SettleResult{}, err
	}
	if broker.Buries(&s) && broker.ParsePath(path).Sub != broker.SubNone {
		return broker.SettleResult{}, broker.ErrDeadLetterAgain.With("%s", path)
	}
	r, err := b.tokenReader(ctx, prefix, path, token)
	if err != nil {
		return broker.SettleResult{}, err
	}
	var h *held
	for _, x := range r.held {
		if fmt.Sprintf("%s%s%d", r.name, tokenMark, x.unit.Slot) == token {
			h = x
		}
	}
	if h == nil {
		return broker.SettleResult{}, broker.ErrLockLost.With("token %s", token)
	}
	s.Unit = h.unit
	sctx, sure := b.confirming(ctx, queue)
	rep, err := r.settleToken(sctx, s)
	if err != nil {
		return broker.SettleResult{}, err
	}
	b.settled(ctx, queue, sure)
	return rep.Results[0], rep.Results[0].Err
}

// settleToken settles under a token. The name must stay, since other tokens of the receive are under it: a call whose reply was lost
// is repeated as it was, and the script tells what it did before.
func (r *reader) settleToken(ctx context.Context, s broker.Settlement) (broker.TurnReply, error) {
	args, order, err := r.turnArgs(ctx, broker.TurnRequest{Top: 1}, []broker.Settlement{s})
	if err != nil {
		return broker.TurnReply{}, err
	}
	v, err := r.b.repeat(ctx, "turn", r.key, args...)
	if err != nil {
		return broker.TurnReply{}, r.b.fault("settle on "+r.queue, err)
	}
	text := r.text(v)
	if err := r.refusal(text); err != nil {
		return broker.TurnReply{}, err
	}
	return r.parse(ctx, text, []broker.Settlement{s}, order)
}

// tokenReader brings back the reader behind a token from its record, with the messages it holds.
func (b *Broker) tokenReader(ctx context.Context, prefix, path, token string) (*reader, error) {
	name, _, ok := strings.Cut(token, tokenMark)
	if !ok {
		return nil, broker.ErrLockLost.With("%q is not a lock token", token)
	}
	win, err := b.rdb.HGet(ctx, prefix+"win", name).Result()
	if isNil(err) {
		return nil, broker.ErrLockLost.With("token %s", token)
	}
	if err != nil {
		return nil, b.fault("settle", err)
	}
	e, err := b.queueEntry(ctx, broker.ParsePath(path).Entity)
	if err != nil {
		return nil, err
	}
	r := b.newReader(prefix, path, e.Settings.LockDuration)
	r.name, r.token = name, true
	r.flags += "fwr"
	return r, r.restore(ctx, win)
}

// restore fills held from a reader's record.
func (r *reader) restore(ctx context.Context, win string) error {
	for line := range strings.SplitSeq(strings.TrimSuffix(win, "\n"), "\n") {
		f := strings.SplitN(line, " ", 3)
		if strings.HasPrefix(line, "#") {
			continue // the number of the call that wrote it
		}
		if len(f) != 3 {
			return broker.ErrCorrupt.With("the record of reader %s", r.name)
		}
		r.nextID++
		u := &broker.Unit{ID: r.nextID, Group: f[2]}
		fmt.Sscan(f[0], &u.Slot)
		h := &held{unit: u, atts: true}
		for ref := range strings.SplitSeq(f[1], ",") {
			m, err := r.b.readEntry(ctx, r.prefix, ref)
			if err != nil {
				return err
			}
			h.bytes += len(m.Body)
			u.Messages = append(u.Messages, m)
		}
		r.held[u.ID] = h
	}
	return nil
}

// readEntry reads one stored message by its reference.
func (b *Broker) readEntry(ctx context.Context, prefix, ref string) (broker.Message, error) {
	id, lane, ok := strings.Cut(ref, "/")
	switch {
	case !ok:
		lane = "5"
	case lane == "t" || lane == "e":
		lane = "sys"
	case lane == "b":
		lane = "back"
	}
	x, err := b.rdb.XRange(ctx, prefix+"s:"+lane, id, id).Result()
	if err != nil {
		return broker.Message{}, b.fault("read a message", err)
	}
	if len(x) == 0 {
		return broker.Message{Ref: ref, SequenceNumber: refSeq(ref)}, nil
	}
	head, body := entryFields(x[0].Values)
	m, _ := b.decode(ref, head, body)
	return m, nil
}

func entryFields(v map[string]any) (head string, body []byte) {
	for k, x := range v {
		s, _ := x.(string)
		return k, []byte(s)
	}
	return "", nil
}

// Renew implements broker.Receiver.
func (b *Broker) Renew(ctx context.Context, path, token string) (time.Time, error) {
	prefix, queue := b.pathPrefix(path)
	e, err := b.queueEntry(ctx, queue)
	if err != nil {
		return time.Time{}, err
	}
	name, _, _ := strings.Cut(token, tokenMark)
	v, err := b.repeat(ctx, "renew", prefix+"meta", b.now(), name, e.Settings.LockDuration.Milliseconds(), "")
	if err != nil {
		return time.Time{}, b.fault("renew", err)
	}
	s, _ := v.(string)
	if s == "FENCED" {
		return time.Time{}, broker.ErrLockLost.With("token %s", token)
	}
	return msTime(s), nil
}
