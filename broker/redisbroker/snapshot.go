package redisbroker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// raw is everything of one queue as it is stored; snapshot and audit read it.
type raw struct {
	meta, dmeta, tmeta map[string]string
	lanes              map[string][]redis.XMessage  // lane → entries, oldest first
	pending            map[string]map[string]string // lane → id → consumer name
	unreadAfter        map[string]string            // lane → last delivered id
	lock, cv, att, win map[string]string
	txd                map[string]string // handle → last transmission entry that is dropped
	dc, pk             map[string]string
	ready, retry, rd   []redis.Z
	bp, tm, sch        []redis.Z
	lists              map[string][]string // lock name → refs, in receive order
	dead, transDead    []redis.XMessage
	transit            map[string][]redis.XMessage
	retained           int64
	now                int64
}

// Snapshot tells all that is kept about a queue. It walks the whole queue and is consistent only while nothing else runs.
func (b *Broker) Snapshot(ctx context.Context, queue string) (broker.Snapshot, error) {
	if _, err := b.queueEntry(ctx, queue); err != nil {
		return broker.Snapshot{}, err
	}
	r, err := b.readRaw(ctx, b.prefix(queue))
	if err != nil {
		return broker.Snapshot{}, err
	}
	return b.snapshotOf(queue, r)
}

func (b *Broker) snapshotOf(queue string, r *raw) (broker.Snapshot, error) {
	s := broker.Snapshot{
		Queue: queue, Status: broker.QueueStatus(r.meta["status"]), Now: msTime(strconv.FormatInt(r.now, 10)), Asleep: r.meta["asleep"] == "1",
		Conversations: map[string]string{}, Locks: map[string]broker.Lock{}, Retry: zTimes(r.retry), Timers: zTimes(r.tm),
		Readers: map[string]broker.ReaderSnapshot{}, Counts: countsOf(r.meta, r.dmeta, r.tmeta),
	}
	for k := range r.att {
		if !strings.HasPrefix(k, "e") {
			s.Attempts++
		}
	}
	for h, v := range r.cv {
		g, _, _ := strings.Cut(v, "|")
		s.Conversations[h] = g
	}
	for g, v := range r.lock {
		l, _ := parseLock(v)
		s.Locks[g] = l
	}
	s.Parked = make(map[string][]int64, len(r.pk))
	for g, v := range r.pk {
		s.Parked[g] = parkingNumbers(v)
	}
	for _, z := range r.ready {
		s.Ready = append(s.Ready, z.Member.(string))
	}
	for _, z := range r.rd {
		name := z.Member.(string)
		s.Readers[name] = broker.ReaderSnapshot{LeaseEnd: msTime(strconv.FormatInt(int64(z.Score), 10)), Units: parseWin(r.win[name], r.held("5", name))}
	}
	p := &placer{b: b, r: r, s: &s, inList: map[string]string{}, inBP: map[string]bool{}}
	return s, p.place()
}

func zTimes(zs []redis.Z) map[string]time.Time {
	out := make(map[string]time.Time, len(zs))
	for _, z := range zs {
		out[z.Member.(string)] = msTime(strconv.FormatInt(int64(z.Score), 10))
	}
	return out
}

// parseLock reads a value of the hash lock, and how many entries it says wait.
func parseLock(v string) (broker.Lock, int64) {
	switch {
	case strings.HasPrefix(v, "-"):
		return broker.Lock{}, num(v[1:])
	case strings.HasPrefix(v, "~"):
		return broker.Lock{Parked: true}, num(v[1:])
	case strings.HasPrefix(v, "!"):
		return broker.Lock{Dead: true}, num(v[1:])
	}
	name, n, more := strings.Cut(v, "+")
	return broker.Lock{Holder: name, More: more}, num(n)
}

// held returns what a consumer name holds in a lane, oldest first.
func (r *raw) held(lane, name string) []string {
	var ids []string
	for id, by := range r.pending[lane] {
		if by == name {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Compare(refSeq(a), refSeq(b)) })
	return ids
}

// parseWin reads the record of a reader that holds the entries held in lane 5: a line for each unit, or one that begins with
// a star with the slots of the plain messages that stand in no other line.
func parseWin(v string, held []string) []broker.UnitSnapshot {
	var out []broker.UnitSnapshot
	for line := range strings.SplitSeq(strings.TrimSuffix(v, "\n"), "\n") {
		if slots, ok := strings.CutPrefix(line, "* "); ok {
			for _, slot := range strings.Fields(slots) {
				for len(held) > 0 && slices.ContainsFunc(out, func(u broker.UnitSnapshot) bool { return u.Name == held[0] }) {
					held = held[1:]
				}
				if len(held) > 0 {
					n, _ := strconv.Atoi(slot)
					out, held = append(out, broker.UnitSnapshot{Name: held[0], Slot: n, Announced: true}), held[1:]
				}
			}
			continue
		}
		f := strings.SplitN(line, " ", 3)
		if len(f) != 3 {
			continue
		}
		u := broker.UnitSnapshot{Name: f[2], Announced: true}
		if u.Name == "" {
			u.Name = f[1]
		}
		u.Slot, _ = strconv.Atoi(f[0])
		out = append(out, u)
	}
	return out
}

// readRaw reads everything of one queue.
func (b *Broker) readRaw(ctx context.Context, p string) (*raw, error) {
	r := &raw{lanes: map[string][]redis.XMessage{}, pending: map[string]map[string]string{}, unreadAfter: map[string]string{}, lists: map[string][]string{}, transit: map[string][]redis.XMessage{}}
	maps := map[string]*map[string]string{"meta": &r.meta, "d:meta": &r.dmeta, "t:meta": &r.tmeta, "lock": &r.lock, "cv": &r.cv, "att": &r.att, "win": &r.win, "txd": &r.txd, "dc": &r.dc, "pk": &r.pk}
	for k, dst := range maps {
		v, err := b.rdb.HGetAll(ctx, p+k).Result()
		if err != nil {
			return nil, b.fault("read "+k, err)
		}
		*dst = v
	}
	zsets := map[string]*[]redis.Z{"ready": &r.ready, "retry": &r.retry, "rd": &r.rd, "bp": &r.bp, "tm": &r.tm, "sch": &r.sch}
	for k, dst := range zsets {
		v, err := b.rdb.ZRangeWithScores(ctx, p+k, 0, -1).Result()
		if err != nil {
			return nil, b.fault("read "+k, err)
		}
		*dst = v
	}
	if b.opt.Now != nil && b.opt.Now() != 0 {
		r.now = b.opt.Now()
	} else {
		t, err := b.rdb.Time(ctx).Result()
		if err != nil {
			return nil, b.fault("read the clock", err)
		}
		r.now = t.UnixMilli()
	}
	return r, errors.Join(b.readLanes(ctx, p, r), b.readLists(ctx, p, r), b.readRest(ctx, p, r))
}

func (b *Broker) readLanes(ctx context.Context, p string, r *raw) error {
	_, parked := r.meta["parked"]
	for _, lane := range lanesOf(r.meta["lanes"], parked) {
		key := p + "s:" + lane
		x, err := b.rdb.XRange(ctx, key, "-", "+").Result()
		if err != nil {
			return b.fault("read lane "+lane, err)
		}
		r.lanes[lane] = x
		r.pending[lane] = map[string]string{}
		for start := "-"; ; {
			e, err := b.rdb.XPendingExt(ctx, &redis.XPendingExtArgs{Stream: key, Group: "w", Start: start, End: "+", Count: 1000}).Result()
			if err != nil && !strings.Contains(err.Error(), "NOGROUP") {
				return b.fault("read pending of lane "+lane, err)
			}
			for _, x := range e {
				r.pending[lane][x.ID] = x.Consumer
			}
			if len(e) < 1000 {
				break
			}
			start = nextID(e[len(e)-1].ID)
		}
		g, err := b.rdb.XInfoGroups(ctx, key).Result()
		if err == nil && len(g) > 0 {
			r.unreadAfter[lane] = g[0].LastDeliveredID
		}
	}
	return nil
}

// nextID returns the smallest stream id after id (exclusive ranges of XPENDING are not known to every server).
func nextID(id string) string {
	ms, seq, _ := strings.Cut(id, "-")
	return fmt.Sprintf("%s-%d", ms, num(seq)+1)
}

func (b *Broker) readLists(ctx context.Context, p string, r *raw) error {
	for g := range r.lock {
		for _, l := range []string{"t", "e", "s"} {
			v, err := b.rdb.LRange(ctx, p+"b:"+g+":"+l, 0, -1).Result()
			if err != nil {
				return b.fault("read the backlog of "+g, err)
			}
			r.lists[g] = append(r.lists[g], v...)
		}
	}
	return b.eachKey(ctx, p+"b:", func(keys []string) error {
		for _, k := range keys {
			g := strings.TrimPrefix(k, p+"b:")
			g = g[:strings.LastIndex(g, ":")]
			if _, ok := r.lock[g]; !ok { // a list without a lock: the invariants will say so
				v, err := b.rdb.LRange(ctx, k, 0, -1).Result()
				if err != nil {
					return b.fault("read a backlog", err)
				}
				r.lists[g] = append(r.lists[g], v...)
			}
		}
		return nil
	})
}

func (b *Broker) readRest(ctx context.Context, p string, r *raw) error {
	var err error
	if r.dead, err = b.rdb.XRange(ctx, p+"d:s:5", "-", "+").Result(); err != nil {
		return b.fault("read dead letters", err)
	}
	if r.transDead, err = b.rdb.XRange(ctx, p+"t:s:5", "-", "+").Result(); err != nil {
		return b.fault("read transfer dead letters", err)
	}
	err = b.eachKey(ctx, p+"tx:", func(keys []string) error {
		for _, k := range keys {
			x, err := b.rdb.XRange(ctx, k, "-", "+").Result()
			if err != nil {
				return b.fault("read a transmission stream", err)
			}
			r.transit[strings.TrimPrefix(k, p+"tx:")] = x
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.eachKey(ctx, p+"rt:", func(keys []string) error {
		for _, k := range keys {
			n, err := b.rdb.XLen(ctx, k).Result()
			if err != nil {
				return b.fault("read retained messages", err)
			}
			r.retained += n
		}
		return nil
	})
}
