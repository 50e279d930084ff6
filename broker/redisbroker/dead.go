package redisbroker

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// deadPrefix returns the prefix of the dead-letter sub-queue that path means: an entity means its own.
func (b *Broker) deadPrefix(path string) (prefix, queue string) {
	p := broker.ParsePath(path)
	if p.Sub == broker.SubTransfer {
		return b.prefix(p.Entity) + "t:", p.Entity
	}
	return b.prefix(p.Entity) + "d:", p.Entity
}

// List implements broker.DeadLetters: by number through the index, so that every page costs the same.
func (b *Broker) List(ctx context.Context, path string, from int64, limit int) ([]broker.Message, error) {
	prefix, queue := b.deadPrefix(path)
	if _, err := b.queueEntry(ctx, queue); err != nil {
		return nil, err
	}
	ids, err := b.rdb.ZRangeByScore(ctx, prefix+"ix", &redis.ZRangeBy{Min: strconv.FormatInt(from, 10), Max: "+inf", Count: int64(limit)}).Result()
	if err != nil || len(ids) == 0 {
		return nil, b.fault("list dead letters of "+queue, err)
	}
	rows := make([]*redis.XMessageSliceCmd, len(ids))
	_, err = b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, id := range ids {
			rows[i] = pipe.XRange(ctx, prefix+"s:5", id, id)
		}
		return nil
	})
	if err != nil {
		return nil, b.fault("list dead letters of "+queue, err)
	}
	out := make([]broker.Message, 0, len(ids))
	for i, id := range ids {
		if x := rows[i].Val(); len(x) == 1 {
			head, body := entryFields(x[0].Values)
			m, _ := b.decode(id, head, body)
			b.fillDead(ctx, queue, &m)
			out = append(out, m)
		}
	}
	return out, b.fillParks(ctx, queue, out)
}

// fillDead adds what is still known of the conversation a dead letter came from.
func (b *Broker) fillDead(ctx context.Context, queue string, m *broker.Message) {
	if m.Conversation == "" {
		return
	}
	info, err := b.endpointInfo(ctx, b.prefix(queue), []string{m.Conversation}, callTimeout)
	if err != nil {
		return
	}
	if e := info[m.Conversation]; e != nil {
		m.Service, m.FarService, m.Contract, m.Priority = e.service, e.far, e.contract, e.priority()
	}
}

// Resubmit implements broker.DeadLetters.
func (b *Broker) Resubmit(ctx context.Context, path string, seq int64) (broker.Receipt, error) {
	_, queue := b.deadPrefix(path)
	e, err := b.queueEntry(ctx, queue)
	if err != nil {
		return broker.Receipt{}, err
	}
	if broker.ParsePath(path).Sub == broker.SubTransfer { // its numbers are its own: the script would take another message
		return broker.Receipt{}, broker.ErrInvalid.With(
			"%s: what is there never reached its target, so it cannot go back to queue %q; receive it and send it again", path, queue)
	}
	list, err := b.List(ctx, path, seq, 1)
	if err != nil {
		return broker.Receipt{}, err
	}
	if len(list) == 0 || list[0].SequenceNumber != seq {
		return broker.Receipt{}, broker.ErrUnknownMessage.With("%s has no dead letter %d; it may have been resubmitted", broker.FormatDeadLetterPath(queue), seq)
	}
	a, err := b.repeatStrings(ctx, "resubmit", b.prefix(queue)+"meta", b.now(), seq, msArg(e.Settings.DefaultTTL))
	if err != nil {
		return broker.Receipt{}, err
	}
	where := broker.FormatDeadLetterPath(queue)
	switch a[0] {
	case "OK":
		n, err := strconv.ParseInt(a[1], 10, 64)
		return broker.Receipt{SequenceNumber: n, MessageID: list[0].MessageID}, err
	case "OFF":
		return broker.Receipt{}, broker.ErrQueueDisabled.With("resubmit %d: queue %q is %s; nothing was moved", seq, queue, a[1])
	case "ENDED":
		return broker.Receipt{}, broker.ErrResubmitEnded.With("dead letter %d of %s, conversation %s", seq, where, list[0].Conversation)
	case "MALFORMED":
		return broker.Receipt{}, broker.ErrResubmitMalformed.With("dead letter %d of %s; send what it should say as a new message, then purge it", seq, where)
	case "LOCKED":
		return broker.Receipt{}, broker.ErrGroupLocked.With("dead letter %d of %s is in a receiver's hands", seq, where)
	}
	return broker.Receipt{}, broker.ErrUnknownMessage.With("%s has no dead letter %d", where, seq)
}

// eventQueue undoes the escaping of an event's fields.
func eventFields(v map[string]any) map[string]string {
	out := make(map[string]string, len(v))
	for k, x := range v {
		s, _ := x.(string)
		out[k] = unescape(strings.TrimPrefix(s, "g:"))
	}
	return out
}
