package redisbroker

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// shownParked is how many groups that dead letters hold up queue show names.
const shownParked = 20

// parkingNumbers reads a value of pk: number:place:owner of each dead letter that holds up a group.
func parkingNumbers(v string) []int64 {
	var out []int64
	for one := range strings.FieldsSeq(v) {
		n, _, _ := strings.Cut(one, ":")
		out = append(out, num(n))
	}
	slices.Sort(out)
	return out
}

// parkedGroups returns some of the groups of a queue that dead letters hold up, those with the oldest ones first.
func (b *Broker) parkedGroups(ctx context.Context, prefix string) ([]broker.ParkedGroup, error) {
	kv, _, err := b.rdb.HScan(ctx, prefix+"pk", 0, "", 500).Result()
	if err != nil || len(kv) == 0 {
		return nil, b.fault("look at parked groups", err)
	}
	locks := make([]string, 0, len(kv)/2)
	all := make([]broker.ParkedGroup, 0, len(kv)/2)
	for i := 0; i+1 < len(kv); i += 2 {
		locks = append(locks, kv[i])
		g := broker.ParkedGroup{DeadLetters: parkingNumbers(kv[i+1])}
		if s, ok := strings.CutPrefix(kv[i], "s:"); ok {
			g.SessionID = unescape(s)
		} else {
			g.Group = strings.TrimPrefix(kv[i], "g:")
		}
		all = append(all, g)
	}
	v, err := b.rdb.HMGet(ctx, prefix+"lock", locks...).Result()
	if err != nil {
		return nil, b.fault("look at parked groups", err)
	}
	for i := range all {
		s, _ := v[i].(string)
		_, all[i].Waiting = parseLock(s)
	}
	slices.SortFunc(all, func(x, y broker.ParkedGroup) int { return cmp.Compare(x.DeadLetters[0], y.DeadLetters[0]) })
	return all[:min(len(all), shownParked)], nil
}

// parkedBy returns the numbers of the dead letters that hold up the group with that id.
func (b *Broker) parkedBy(ctx context.Context, prefix, group string) ([]int64, error) {
	v, err := b.rdb.HGet(ctx, prefix+"pk", "g:"+group).Result()
	if err != nil && !isNil(err) {
		return nil, b.fault("look at parked groups", err)
	}
	return parkingNumbers(v), nil
}

// fillParks notes which of some dead letters hold up their groups.
func (b *Broker) fillParks(ctx context.Context, queue string, list []broker.Message) error {
	records := make([]*redis.StringCmd, len(list))
	_, err := b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range list {
			switch m := &list[i]; {
			case m.SessionID != "":
				records[i] = pipe.HGet(ctx, b.prefix(queue)+"pk", "s:"+escape(m.SessionID))
			case m.Group != "":
				records[i] = pipe.HGet(ctx, b.prefix(queue)+"pk", "g:"+m.Group)
			}
		}
		return nil
	})
	if err != nil && !isNil(err) {
		return b.fault("look at parked groups", err)
	}
	for i := range list {
		if m := &list[i]; records[i] != nil && m.Dead != nil {
			m.Dead.Parks = slices.Contains(parkingNumbers(records[i].Val()), m.SequenceNumber)
		}
	}
	return nil
}
