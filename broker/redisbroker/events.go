package redisbroker

import (
	"context"
	"sort"
	"time"

	"parley/broker"
)

// Events implements broker.EventReader. Each queue keeps about 10,000 events in its own slot; they are merged by time here.
func (b *Broker) Events(ctx context.Context, follow bool, yield func(broker.Event) bool) error {
	if err := b.dir.load(ctx, b); err != nil {
		return err
	}
	last := map[string]string{}
	wake := make(chan struct{}, 1)
	if follow {
		stop := b.hub.listen(func(string) {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		defer stop()
	}
	for {
		list, err := b.newEvents(ctx, last)
		if err != nil {
			return err
		}
		for _, e := range list {
			if !yield(e) {
				return nil
			}
		}
		if !follow {
			return nil
		}
		if err := b.awaitWake(ctx, wake, time.Second); err != nil {
			return nil //nolint:nilerr // the caller ended the follow
		}
		if err := b.dir.fresh(ctx, b); err != nil {
			return err
		}
	}
}

// newEvents returns what is newer than last of every queue, in order of time, and moves last on.
func (b *Broker) newEvents(ctx context.Context, last map[string]string) ([]broker.Event, error) {
	var list []broker.Event
	for _, q := range b.dir.queueNames() {
		start := "-"
		if id := last[q]; id != "" {
			start = "(" + id
		}
		x, err := b.rdb.XRange(ctx, b.prefix(q)+"events", start, "+").Result()
		if err != nil {
			return nil, b.fault("read events", err)
		}
		for _, m := range x {
			f := eventFields(m.Values)
			e := broker.Event{ID: m.ID, Type: f["type"], Queue: f["queue"], Time: msTime(f["time"]), Fields: f}
			delete(f, "type")
			delete(f, "queue")
			delete(f, "time")
			list = append(list, e)
			last[q] = m.ID
		}
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Time.Before(list[j].Time) })
	return list, nil
}
