package redisbroker

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// work runs effects from outside a handler as one unit of work of its own, and returns the numbers its sends got.
func (b *Broker) work(ctx context.Context, queue string, effects ...broker.Effect) ([]int64, error) {
	c := &turnCall{}
	for i := range effects {
		if effects[i].Kind == broker.EffectBegin {
			c.ids = append(c.ids, effects[i].Conversation)
		}
	}
	if err := b.encodeEffects(ctx, c, 1, queue, nil, effects); err != nil {
		return nil, err
	}
	v, err := b.sender(queue).work(ctx, c, repeatable(effects))
	if err != nil {
		return nil, b.fault("work on queue "+queue, err)
	}
	a := toStrings(v)
	switch {
	case len(a) == 0 || a[0] == "NOENT":
		return nil, broker.ErrUnknownEntity.With("queue %q is gone from Redis", queue)
	case a[0] == "ERR":
		return nil, effectError(a[1])
	}
	out := make([]int64, len(a)-1)
	for i, s := range a[1:] {
		out[i] = num(s)
	}
	return out, nil
}

// repeatable reports whether the same effects again can only be a repeat: a send with an id of its own, or an END.
func repeatable(effects []broker.Effect) bool {
	e := &effects[0]
	return len(effects) == 1 && (e.Kind == broker.EffectEnd || e.Kind == broker.EffectSend && e.Message.MessageID != "")
}

// Begin implements broker.Dialogs. ErrUnknownStored names the handle: the endpoint may be there, which Endpoint tells later.
func (b *Broker) Begin(ctx context.Context, d broker.Dialog) (broker.Endpoint, error) {
	s, ok, err := b.service(ctx, d.From)
	if err != nil {
		return broker.Endpoint{}, err
	}
	if !ok {
		return broker.Endpoint{}, broker.ErrUnknownService.With("FROM SERVICE %q", d.From)
	}
	h, err := b.NewHandle(s.Queue)
	if err != nil {
		return broker.Endpoint{}, err
	}
	eff := broker.Effect{Kind: broker.EffectBegin, Conversation: h, From: d.From, To: d.To, Contract: d.Contract, Group: d.Group, Lifetime: d.Lifetime}
	if err := b.CheckEffect(ctx, nil, &eff); err != nil {
		return broker.Endpoint{}, err
	}
	if _, err := b.work(ctx, s.Queue, eff); err != nil {
		return broker.Endpoint{}, err
	}
	return b.Endpoint(ctx, h)
}

// SendOn implements broker.Dialogs.
func (b *Broker) SendOn(ctx context.Context, handle string, m broker.Outgoing) (broker.Receipt, error) {
	q, err := b.queueOfHandle(ctx, handle)
	if err != nil {
		return broker.Receipt{}, err
	}
	eff := broker.Effect{Kind: broker.EffectSend, Conversation: handle, Message: m}
	if err := b.CheckEffect(ctx, nil, &eff); err != nil {
		return broker.Receipt{}, err
	}
	n, err := b.work(ctx, q, eff)
	if err != nil {
		return broker.Receipt{}, err
	}
	id := m.MessageID
	if id == "" {
		id = handle + "/" + strconv.FormatInt(n[0], 10)
	}
	return broker.Receipt{SequenceNumber: n[0], MessageID: id}, nil
}

// End implements broker.Dialogs.
func (b *Broker) End(ctx context.Context, handle string, e broker.Ending, wait time.Duration) error {
	if err := broker.CheckEnding(e); err != nil {
		return err
	}
	eff := broker.Effect{Kind: broker.EffectEnd, Conversation: handle, Code: e.Code, Text: e.Text, Cleanup: e.Cleanup}
	return b.verb(ctx, handle, eff, wait)
}

// Timer arms, re-arms or (with after 0 and no cron spec) cancels the timer of an endpoint (TM).
func (b *Broker) Timer(ctx context.Context, handle string, after time.Duration, cron, zone string, wait time.Duration) error {
	return b.verb(ctx, handle, broker.Effect{Kind: broker.EffectTimer, Conversation: handle, After: after, Cron: cron, Zone: zone}, wait)
}

// Move moves a conversation to a group of the same service (DG-9).
func (b *Broker) Move(ctx context.Context, handle, group string, wait time.Duration) error {
	if err := checkGroup(group); err != nil {
		return err
	}
	return b.verb(ctx, handle, broker.Effect{Kind: broker.EffectMove, Conversation: handle, Group: group}, wait)
}

// verb runs one effect that needs the group's lock, waiting up to wait while a reader holds it (GL-4).
func (b *Broker) verb(ctx context.Context, handle string, eff broker.Effect, wait time.Duration) error {
	q, err := b.queueOfHandle(ctx, handle)
	if err != nil {
		return err
	}
	end := time.Now().Add(wait)
	for {
		_, err := b.work(ctx, q, eff)
		if err != broker.ErrGroupLocked || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
		pauseFor(ctx, 10*time.Millisecond)
	}
}

// Endpoint implements broker.Dialogs.
func (b *Broker) Endpoint(ctx context.Context, handle string) (broker.Endpoint, error) {
	q, err := b.queueOfHandle(ctx, handle)
	if err != nil {
		return broker.Endpoint{}, err
	}
	e, ok, err := b.endpoint(ctx, q, handle)
	if err == nil && !ok {
		err = broker.ErrUnknownConversation.With("%s on queue %q", handle, q)
	}
	return e, err
}

func (b *Broker) endpoint(ctx context.Context, queue, handle string) (broker.Endpoint, bool, error) {
	p := b.prefix(queue)
	var ep, cv, ed, cron *redis.StringCmd
	var dc *redis.SliceCmd
	var timer *redis.FloatCmd
	_, err := b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		ep, cv, ed, dc = pipe.HGet(ctx, p+"ep", handle), pipe.HGet(ctx, p+"cv", handle), pipe.HGet(ctx, p+"ed", handle), pipe.HMGet(ctx, p+"dc", handle, "+"+handle)
		timer, cron = pipe.ZScore(ctx, p+"tm", handle), pipe.HGet(ctx, p+"tmc", handle)
		return nil
	})
	if err != nil && !isNil(err) {
		return broker.Endpoint{}, false, b.fault("look at conversation "+handle, err)
	}
	info := parseEp(ep.Val())
	if info == nil {
		return broker.Endpoint{}, false, nil
	}
	e := broker.Endpoint{
		Handle: handle, ConversationID: conversationID(handle), Queue: queue, Service: info.service, FarService: info.far,
		Contract: info.contract, Initiator: info.role == "I", Priority: info.priority(), CreatedAt: msTime(info.created),
		ExpiresAt: info.expiresAt(), FarHandle: info.farHandle,
	}
	fillState(&e, cv.Val(), ed.Val(), resolved(dc.Val()))
	if timer.Val() > 0 {
		e.TimerDue = time.UnixMilli(int64(timer.Val())).UTC()
	}
	spec, _, _ := strings.Cut(cron.Val(), "|")
	e.TimerCron = unescape(spec)
	if e.FarHandle == "" {
		e.FarHandle = b.farHandle(info.far, handle)
	}
	return e, true, nil
}

// resolved is how many messages of the sequence are resolved: those up to the number in dc, and those that were settled before an earlier one.
func resolved(dc []any) int64 {
	if len(dc) != 2 {
		return 0
	}
	upto, _ := dc[0].(string)
	n := num(upto)
	early, _ := dc[1].(string)
	done := n
	for s := range strings.SplitSeq(early, ",") {
		if early != "" && num(s) >= n {
			done++
		}
	}
	return done
}

// farHandle computes the target's handle from the initiator's, when the target's service exists.
func (b *Broker) farHandle(service, handle string) string {
	b.dir.mu.RLock()
	defer b.dir.mu.RUnlock()
	s, ok := b.dir.services[service]
	if !ok {
		return ""
	}
	return b.dir.queues[s.Queue].Number + handle[8:14] + "8" + handle[15:]
}

// fillState reads cv (an open side) or ed (an ended one).
func fillState(e *broker.Endpoint, cv, ed string, done int64) {
	if f := strings.Split(cv, "|"); len(f) >= 8 {
		e.Group = strings.TrimPrefix(f[0], "g:")
		e.State = broker.State(f[2])
		e.NextSend, e.NextReceive, e.InTransmission = num(f[3]), num(f[4]), num(f[5])
		e.Waiting = e.NextReceive - done + num(f[6]) - lostOf(f[8:], done)
		return
	}
	state, at, _ := strings.Cut(ed, "|")
	e.State = broker.State(state)
	if e.State == broker.StateClosed {
		e.ClosedAt = msTime(at)
	}
}

// lostOf counts the numbers from done on that were lost on the way: the last field of cv, if there is one, has from-to of each gap.
func lostOf(gaps []string, done int64) int64 {
	var n int64
	for _, gap := range strings.Fields(strings.Join(gaps, "")) {
		from, to, _ := strings.Cut(gap, "-")
		n += max(0, num(to)-max(num(from), done))
	}
	return n
}

// Endpoints implements broker.Dialogs.
func (b *Broker) Endpoints(ctx context.Context, queue, state string, yield func(broker.Endpoint) bool) error {
	queues := []string{queue}
	if queue == "" {
		var err error
		if queues, err = b.Queues(ctx); err != nil {
			return err
		}
	} else if _, err := b.queueEntry(ctx, queue); err != nil {
		return err
	}
	for _, q := range queues {
		more, err := b.eachEndpoint(ctx, q, state, yield)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (b *Broker) eachEndpoint(ctx context.Context, queue, state string, yield func(broker.Endpoint) bool) (bool, error) {
	var cursor uint64
	for {
		kv, next, err := b.rdb.HScanNoValues(ctx, b.prefix(queue)+"ep", cursor, "", 500).Result()
		if err != nil && strings.Contains(err.Error(), "ERR") { // servers before 7.4 have no NOVALUES
			kv, next, err = b.rdb.HScan(ctx, b.prefix(queue)+"ep", cursor, "", 500).Result()
			kv = everySecond(kv)
		}
		if err != nil {
			return false, b.fault("list conversations", err)
		}
		for _, h := range kv {
			e, ok, err := b.endpoint(ctx, queue, h)
			if err != nil {
				return false, err
			}
			if ok && (state == "" || string(e.State) == state) && !yield(e) {
				return false, nil
			}
		}
		if cursor = next; cursor == 0 {
			return true, nil
		}
	}
}

func everySecond(kv []string) []string {
	out := kv[:0:0]
	for i := 0; i < len(kv); i += 2 {
		out = append(out, kv[i])
	}
	return out
}
