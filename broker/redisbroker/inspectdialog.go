package redisbroker

import (
	"context"
	"sort"
	"strings"

	"parley/broker"
)

// InspectDialog implements broker.DialogInspector.
func (b *Broker) InspectDialog(ctx context.Context, handle string, limit int) ([]broker.DialogSide, error) {
	q, err := b.queueOfHandle(ctx, handle)
	if err != nil {
		return nil, err
	}
	near, ok, err := b.dialogSide(ctx, q, handle, limit)
	if err != nil || !ok {
		if err == nil {
			err = broker.ErrUnknownConversation.With("%s on queue %q", handle, q)
		}
		return nil, err
	}
	sides := []broker.DialogSide{near}
	if near.FarHandle == "" {
		return sides, nil
	}
	if q, err = b.queueOfHandle(ctx, near.FarHandle); err != nil {
		return sides, nil //nolint:nilerr // the far queue is gone: there is nothing to show of it
	}
	far, ok, err := b.dialogSide(ctx, q, near.FarHandle, limit)
	if ok {
		sides = append(sides, far)
	}
	return sides, err
}

func (b *Broker) dialogSide(ctx context.Context, queue, handle string, limit int) (broker.DialogSide, bool, error) {
	var s broker.DialogSide
	p := b.prefix(queue)
	if err := b.promote(ctx, p); err != nil {
		return s, false, err
	}
	e, ok, err := b.endpoint(ctx, queue, handle)
	if err != nil || !ok {
		return s, false, err
	}
	s.Endpoint = e
	status, err := b.rdb.HGet(ctx, p+"meta", "status").Result()
	if err != nil && !isNil(err) {
		return s, false, b.fault("look at queue "+queue, err)
	}
	s.QueueStatus = broker.QueueStatus(status)
	if s.ParkedBy, err = b.parkedBy(ctx, p, e.Group); err != nil {
		return s, false, err
	}
	if s.Messages, err = b.waitingOf(ctx, p, handle, min(e.Waiting, int64(limit))); err != nil {
		return s, false, err
	}
	sort.Slice(s.Messages, func(i, j int) bool { return s.Messages[i].SequenceNumber < s.Messages[j].SequenceNumber })
	s.Messages = s.Messages[:min(len(s.Messages), limit)]
	if err := b.fillPeeked(ctx, p, s.Messages); err != nil {
		return s, false, err
	}
	return s, true, b.fillTransit(ctx, p, &s, limit)
}

// fillTransit adds what this side has in the transmission queue, and why it waits.
func (b *Broker) fillTransit(ctx context.Context, prefix string, s *broker.DialogSide, limit int) error {
	if s.InTransmission == 0 {
		return nil
	}
	target := escape(s.FarService)
	txs, err := b.rdb.HGet(ctx, prefix+"txs", target).Result()
	if err != nil && !isNil(err) {
		return b.fault("look at a transmission queue", err)
	}
	s.NextTry, s.TransmitStatus = transmitState(txs)
	want := min(s.InTransmission, int64(limit))
	for start := "-"; int64(len(s.Transit)) < want; {
		x, err := b.rdb.XRangeN(ctx, prefix+"tx:"+target, start, "+", 500).Result()
		if err != nil {
			return b.fault("look at a transmission queue", err)
		}
		for _, e := range x {
			f := func(k string) string { v, _ := e.Values[k].(string); return v }
			if f("from") == s.Handle && f("k") != "A" && int64(len(s.Transit)) < want {
				s.Transit = append(s.Transit, b.inTransit(s, f))
			}
		}
		if len(x) < 500 {
			break
		}
		start = "(" + x[len(x)-1].ID
	}
	return nil
}

// inTransit is one entry of a transmission stream as a message to the far side.
func (b *Broker) inTransit(s *broker.DialogSide, f func(string) string) broker.Message {
	m := broker.Message{
		Kind: broker.Kind((f("k") + "S")[0]), Conversation: s.FarHandle, MessageSeq: num(f("seq")), Status: broker.StatusInTransit,
		Service: s.FarService, FarService: s.Service, Contract: s.Contract, Priority: 5, Body: []byte(f("body")),
	}
	rest := strings.SplitN(f("rest"), "|", 4)
	if len(rest) >= 3 {
		m.MessageID, m.Type, m.Properties = unescape(rest[0]), unescape(rest[1]), decodeProps(rest[2])
	} else {
		m.Type = unescape(f("rest"))
	}
	if m.Type == "" {
		m.Type = broker.TypeDefault
	}
	b.describe(&m, false)
	return m
}
