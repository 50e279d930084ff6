package redisbroker

import (
	"context"
	"sort"
	"strings"

	"parley/broker"
)

// Retained implements broker.DialogVerbs.
func (b *Broker) Retained(ctx context.Context, handle string) ([]broker.RetainedMessage, error) {
	q, err := b.queueOfHandle(ctx, handle)
	if err != nil {
		return nil, err
	}
	p := b.prefix(q)
	e, ok, err := b.endpoint(ctx, q, handle)
	if err != nil || !ok {
		if err == nil {
			err = broker.ErrUnknownConversation.With("%s on queue %q", handle, q)
		}
		return nil, err
	}
	rows, err := b.rdb.XRange(ctx, p+"rt:"+handle, "-", "+").Result()
	if err != nil {
		return nil, b.fault("read retained messages", err)
	}
	var out []broker.RetainedMessage
	for _, x := range rows {
		f := func(k string) string { s, _ := x.Values[k].(string); return s }
		m, _ := b.decode(f("seq")+"-0", f("header"), []byte(f("body")))
		m.Status = broker.StatusRetained
		out = append(out, broker.RetainedMessage{Message: m, RetainedStatus: int(num(f("status")))})
	}
	waiting, err := b.waitingOf(ctx, p, handle, e.Waiting)
	if err != nil {
		return nil, err
	}
	for _, m := range waiting {
		out = append(out, broker.RetainedMessage{Message: m, RetainedStatus: 1})
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].EnqueuedAt.Before(out[j].EnqueuedAt) })
	b.fillRetained(ctx, p, handle, out)
	return out, nil
}

// waitingOf returns up to limit messages of one conversation that are ready to be received or in a unit of work. It walks the
// queue until it has found them.
func (b *Broker) waitingOf(ctx context.Context, prefix, handle string, limit int64) ([]broker.Message, error) {
	lanes, ours, err := b.lanes(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var out []broker.Message
	for _, lane := range lanes {
		for start := "-"; int64(len(out)) < limit; {
			x, err := b.rdb.XRangeN(ctx, prefix+"s:"+lane, start, "+", 500).Result()
			if err != nil {
				return nil, b.fault("read waiting messages", err)
			}
			own := x[:0:0]
			for _, e := range x {
				if head, _ := entryFields(e.Values); strings.HasPrefix(head, handle+"|") {
					own = append(own, e)
				}
			}
			found, err := b.peekEntries(ctx, prefix, lane, own, &ours)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
			if len(x) < 500 {
				break
			}
			start = "(" + x[len(x)-1].ID
		}
	}
	return out, nil
}

func (b *Broker) fillRetained(ctx context.Context, prefix, handle string, rows []broker.RetainedMessage) {
	info, err := b.endpointInfo(ctx, prefix, []string{handle}, callTimeout)
	e := info[handle]
	if err != nil || e == nil {
		return
	}
	for i := range rows {
		m := &rows[i].Message
		m.Service, m.FarService, m.Contract, m.Priority = e.service, e.far, e.contract, e.priority()
		if rows[i].RetainedStatus == 3 { // a sent copy is to the far side
			m.Service, m.FarService = e.far, e.service
		}
	}
}
