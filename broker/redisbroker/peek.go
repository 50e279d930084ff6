package redisbroker

import (
	"context"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// Peek implements broker.Peeker. What is due is promoted first; then each lane is read by number, so a page costs the same
// wherever it starts.
func (b *Broker) Peek(ctx context.Context, path string, from int64, limit int) ([]broker.Message, error) {
	prefix, queue := b.pathPrefix(path)
	if _, err := b.queueEntry(ctx, queue); err != nil {
		return nil, err
	}
	if broker.ParsePath(path).Sub != broker.SubNone {
		return b.List(ctx, path, from, limit)
	}
	if err := b.promote(ctx, prefix); err != nil {
		return nil, err
	}
	msgs, err := b.peekLanes(ctx, prefix, from, limit)
	if err != nil {
		return nil, err
	}
	sched, err := b.peekScheduled(ctx, prefix, from, limit)
	if err != nil {
		return nil, err
	}
	msgs = append(msgs, sched...)
	sort.Slice(msgs, func(i, j int) bool { return msgs[i].SequenceNumber < msgs[j].SequenceNumber })
	if len(msgs) > limit {
		msgs = msgs[:limit]
	}
	return msgs, b.fillPeeked(ctx, prefix, msgs)
}

// lanes names all lanes of a queue, and tells what in them was written by others.
func (b *Broker) lanes(ctx context.Context, prefix string) ([]string, tops, error) {
	v, err := b.rdb.HMGet(ctx, prefix+"meta", "lanes", "parked", "seq", "tops").Result()
	if err != nil {
		return nil, tops{}, b.fault("peek", err)
	}
	lanes, _ := v[0].(string)
	seq, _ := v[2].(string)
	text, _ := v[3].(string)
	return lanesOf(lanes, v[1] != nil), parseTops(seq, text), nil
}

// lanesOf names all lanes of a queue; parked says that a dead letter has parked a group of it once.
func lanesOf(lanes string, parked bool) []string {
	out := append([]string{"sys"}, strings.Split(lanes, ",")...)
	if parked {
		out = append(out, "back")
	}
	return out
}

func (b *Broker) peekLanes(ctx context.Context, prefix string, from int64, limit int) ([]broker.Message, error) {
	lanes, ours, err := b.lanes(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var msgs []broker.Message
	for _, lane := range lanes {
		// Entries of ended conversations are passed over, so a page may take more than one look.
		for start, got := strconv.FormatInt(max(from, 0), 10), 0; got < limit; {
			x, err := b.rdb.XRangeN(ctx, prefix+"s:"+lane, start, "+", int64(limit)).Result()
			if err != nil {
				return nil, b.fault("peek", err)
			}
			live, err := b.peekEntries(ctx, prefix, lane, x, &ours)
			if err != nil {
				return nil, err
			}
			msgs = append(msgs, live...)
			got += len(live)
			if len(x) < limit {
				break
			}
			start = "(" + x[len(x)-1].ID
		}
	}
	return msgs, nil
}

// peekEntries decodes entries, finds out where each is from its consumer's name, and leaves out those of ended conversations and what
// others wrote.
func (b *Broker) peekEntries(ctx context.Context, prefix, lane string, x []redis.XMessage, ours *tops) ([]broker.Message, error) {
	if len(x) == 0 {
		return nil, nil
	}
	where := make([]*redis.XPendingExtCmd, len(x))
	cvs := make([]*redis.StringCmd, len(x))
	msgs := make([]broker.Message, len(x))
	_, err := b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i := range x {
			id := x[i].ID
			where[i] = pipe.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: prefix + "s:" + lane, Group: "w", Start: id, End: id, Count: 1})
			msgs[i] = b.decodeLane(lane, x[i])
			if h := msgs[i].Conversation; h != "" {
				cvs[i] = pipe.HGet(ctx, prefix+"cv", h)
			}
		}
		return nil
	})
	if err != nil && !isNil(err) && !strings.Contains(err.Error(), "NOGROUP") {
		return nil, b.fault("peek", err)
	}
	out := msgs[:0]
	for i := range msgs {
		if ours.strange(lane, x[i].ID, len(where[i].Val()) == 0) {
			continue
		}
		if cvs[i] != nil {
			v, err := cvs[i].Result()
			if isNil(err) {
				continue
			}
			g, _, _ := strings.Cut(v, "|")
			msgs[i].Group = strings.TrimPrefix(g, "g:")
		}
		msgs[i].Status = placeOf(where[i].Val())
		out = append(out, msgs[i])
	}
	return out, nil
}

func (b *Broker) decodeLane(lane string, x redis.XMessage) broker.Message {
	head, body := entryFields(x.Values)
	return b.decodeIn(lane, x.ID, head, body)
}

// decodeIn decodes an entry of a lane.
func (b *Broker) decodeIn(lane, id, head string, body []byte) broker.Message {
	m, _ := b.decode(id, head, body)
	switch {
	case lane == "sys" && m.Kind == broker.KindDialogTimer:
		m.Ref = id + "/t"
	case lane == "sys":
		m.Ref = id + "/e"
	case lane == "back":
		m.Ref = id + "/b"
	case lane != "5":
		m.Ref = id + "/" + lane
	}
	return m
}

func placeOf(p []redis.XPendingExt) broker.Status {
	if len(p) == 0 {
		return broker.StatusReady
	}
	switch p[0].Consumer {
	case "backlog":
		return broker.StatusReady
	case "retry":
		return broker.StatusRetrying
	case "deferred":
		return broker.StatusDeferred
	}
	return broker.StatusLocked
}

// peekScheduled reads messages whose enqueue time has not come. They are few enough to be looked at by number.
func (b *Broker) peekScheduled(ctx context.Context, prefix string, from int64, limit int) ([]broker.Message, error) {
	z, err := b.rdb.ZRangeWithScores(ctx, prefix+"sch", 0, -1).Result()
	if err != nil || len(z) == 0 {
		return nil, b.fault("peek", err)
	}
	sort.Slice(z, func(i, j int) bool { return refSeq(z[i].Member.(string)) < refSeq(z[j].Member.(string)) })
	var out []broker.Message
	for _, e := range z {
		id := e.Member.(string)
		if refSeq(id) < from || len(out) == limit {
			continue
		}
		v, err := b.rdb.HGet(ctx, prefix+"schm", id).Result()
		if err != nil {
			return nil, b.fault("peek", err)
		}
		f := strings.SplitN(v, "\n", 4)
		if len(f) != 4 {
			return nil, broker.ErrCorrupt.With("scheduled message %s", id)
		}
		m, _ := b.decode(id, f[0]+"|"+strconv.Itoa(len(f[3]))+"|||0|S|"+f[2], []byte(f[3]))
		m.Status, m.EnqueuedAt = broker.StatusScheduled, time.Time{}
		m.ScheduledAt = msTime(strconv.FormatInt(int64(e.Score), 10))
		out = append(out, m)
	}
	return out, nil
}

// fillPeeked adds stored counts and what the entries of dialog messages do not carry.
func (b *Broker) fillPeeked(ctx context.Context, prefix string, msgs []broker.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	refs, handles := make([]string, len(msgs)), []string{}
	for i := range msgs {
		refs[i] = msgs[i].Ref
		if msgs[i].Conversation != "" {
			handles = append(handles, msgs[i].Conversation)
		}
	}
	atts, err := b.attempts(ctx, prefix, refs)
	if err != nil {
		return err
	}
	epoch, err := b.rdb.HGet(ctx, prefix+"meta", "epoch").Result()
	if err != nil && !isNil(err) {
		return b.fault("peek", err)
	}
	info := map[string]*epInfo{}
	if len(handles) > 0 {
		if info, err = b.endpointInfo(ctx, prefix, handles, callTimeout); err != nil {
			return err
		}
	}
	for i := range msgs {
		if s, ok := atts[2*i].(string); ok {
			storedCounts(&msgs[i], s, epoch)
		}
		if s, ok := atts[2*i+1].(string); ok {
			msgs[i].LastError = unescape(s)
		}
		if e := info[msgs[i].Conversation]; e != nil {
			msgs[i].Service, msgs[i].FarService, msgs[i].Contract, msgs[i].Priority = e.service, e.far, e.contract, e.priority()
		}
	}
	return nil
}

// attempts reads the counts and, after each, the last error of refs.
func (b *Broker) attempts(ctx context.Context, prefix string, refs []string) ([]any, error) {
	names := make([]string, 0, 2*len(refs))
	for _, r := range refs {
		names = append(names, r, "e"+r)
	}
	atts, err := b.rdb.HMGet(ctx, prefix+"att", names...).Result()
	return atts, b.fault("peek", err)
}

// storedCounts reads delivery,poison,epoch,uncertain as kept in att.
func storedCounts(m *broker.Message, s, epoch string) (uncertain int) {
	f := strings.Split(s, ",")
	if len(f) != 4 {
		return 0
	}
	m.DeliveryCount, _ = strconv.Atoi(f[0])
	if f[2] == epoch {
		m.PoisonCount, _ = strconv.Atoi(f[1])
	}
	uncertain, _ = strconv.Atoi(f[3])
	return uncertain
}
