package redisbroker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// raw is what is stored of one entity, a queue or a sub-queue, but for its entries; snapshot and audit read it.
type raw struct {
	prefix             string
	meta, dmeta, tmeta map[string]string
	lock, cv, att, win map[string]string
	txd                map[string]string // handle → last transmission entry that is dropped
	pk                 map[string]string
	ready, retry, rd   []redis.Z
	bp, tm, sch        []redis.Z
	lists              map[string][]string // lock name → refs, in receive order
	shared             map[string][]string // lock name → lock tokens that share the lock
	held               map[string][]string // reader → what it holds of lane 5, oldest first; filled while the entries are looked at
	transit            []string            // names of transmission streams, sorted
	retained           int64
	now                int64
}

// Snapshot tells all that is kept about a queue. It walks the whole queue and is consistent only while nothing else runs.
func (b *Broker) Snapshot(ctx context.Context, queue string) (broker.Snapshot, error) {
	if _, err := b.queueEntry(ctx, queue); err != nil {
		return broker.Snapshot{}, err
	}
	p := b.prefix(queue)
	names, err := b.scanNames(ctx, p)
	if err != nil {
		return broker.Snapshot{}, err
	}
	r, err := b.readRaw(ctx, p, names[p])
	if err != nil {
		return broker.Snapshot{}, err
	}
	return b.snapshotOf(ctx, queue, r)
}

func (b *Broker) snapshotOf(ctx context.Context, queue string, r *raw) (broker.Snapshot, error) {
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
		l.Shared = r.shared[g]
		s.Locks[g] = l
	}
	s.Parked = make(map[string][]int64, len(r.pk))
	for g, v := range r.pk {
		s.Parked[g] = parkingNumbers(v)
	}
	for _, z := range r.ready {
		s.Ready = append(s.Ready, z.Member.(string))
	}
	rows := snapshotRows{}
	if err := b.place(ctx, r, rows.add); err != nil {
		return s, err
	}
	for _, sub := range []struct {
		of    string
		meta  map[string]string
		place broker.Place
	}{{"d:", r.dmeta, broker.PlaceDead}, {"t:", r.tmeta, broker.PlaceTransDead}} {
		if err := b.subRows(ctx, r.prefix+sub.of, sub.meta, sub.place, rows.add); err != nil {
			return s, err
		}
	}
	s.Messages = rows.sorted()
	for _, z := range r.rd {
		name := z.Member.(string)
		s.Readers[name] = broker.ReaderSnapshot{LeaseEnd: msTime(strconv.FormatInt(int64(z.Score), 10)), Units: parseWin(r.win[name], r.held[name])}
	}
	return s, nil
}

// snapshotRows collects rows, and puts those of one place in the order in which it gives them out.
type snapshotRows struct {
	list []placedRow
}

type placedRow struct {
	m  broker.StoredMessage
	at rowOrder
}

func (s *snapshotRows) add(m *broker.StoredMessage, at rowOrder) {
	s.list = append(s.list, placedRow{*m, at})
}

func (s *snapshotRows) sorted() []broker.StoredMessage {
	slices.SortStableFunc(s.list, func(a, b placedRow) int {
		return cmp.Or(cmp.Compare(a.at.class, b.at.class), cmp.Compare(a.at.name, b.at.name), cmp.Compare(a.at.pos, b.at.pos))
	})
	out := make([]broker.StoredMessage, len(s.list))
	for i := range s.list {
		out[i] = s.list[i].m
	}
	return out
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

// readRaw reads what is stored of one entity but for its entries, in steps that hold nothing up. meta comes first: its change
// counter says later whether the entity moved meanwhile.
func (b *Broker) readRaw(ctx context.Context, p string, names *keyNames) (*raw, error) {
	r := &raw{prefix: p, lists: map[string][]string{}, shared: map[string][]string{}, held: map[string][]string{}}
	var err error
	if r.meta, err = b.rdb.HGetAll(ctx, p+"meta").Result(); err != nil {
		return nil, b.fault("read meta", err)
	}
	for _, h := range []struct {
		key string
		to  *map[string]string
	}{
		{"d:meta", &r.dmeta}, {"t:meta", &r.tmeta}, {"lock", &r.lock}, {"cv", &r.cv}, {"att", &r.att}, {"win", &r.win}, {"txd", &r.txd}, {"pk", &r.pk},
	} {
		if *h.to, err = b.hashOf(ctx, p+h.key); err != nil {
			return nil, err
		}
	}
	for _, z := range []struct {
		key string
		to  *[]redis.Z
	}{{"ready", &r.ready}, {"retry", &r.retry}, {"rd", &r.rd}, {"bp", &r.bp}, {"tm", &r.tm}, {"sch", &r.sch}} {
		if *z.to, err = b.sortedSet(ctx, p+z.key); err != nil {
			return nil, err
		}
	}
	if r.now, err = b.serverTime(ctx); err != nil {
		return nil, err
	}
	if err := b.readLists(ctx, r, names); err != nil || names == nil {
		return r, err
	}
	r.transit = slices.Sorted(maps.Keys(names.transit))
	r.retained, err = b.countRetained(ctx, p, names.retained)
	return r, err
}

func (b *Broker) serverTime(ctx context.Context) (int64, error) {
	if b.opt.Now != nil && b.opt.Now() != 0 {
		return b.opt.Now(), nil
	}
	t, err := b.rdb.Time(ctx).Result()
	if err != nil {
		return 0, b.fault("read the clock", err)
	}
	return t.UnixMilli(), nil
}

// readLists reads the backlogs of groups with a lock, and those of names, which may have none.
func (b *Broker) readLists(ctx context.Context, r *raw, names *keyNames) error {
	groups := map[string]bool{}
	for g := range r.lock {
		groups[g] = true
	}
	if names != nil {
		maps.Copy(groups, names.groups)
	}
	for g := range groups {
		for _, l := range []string{"t", "e", "s"} {
			v, err := b.listOf(ctx, r.prefix+"b:"+g+":"+l)
			if err != nil {
				return err
			}
			r.lists[g] = append(r.lists[g], v...)
		}
		if !strings.HasPrefix(r.lock[g], tokenReader) {
			continue
		}
		tokens, err := b.rdb.ZRange(ctx, r.prefix+"tk:"+g, 0, -1).Result()
		if err != nil {
			return b.fault("read the tokens of "+g, err)
		}
		if len(tokens) > 0 {
			r.shared[g] = tokens
		}
	}
	return nil
}

func (b *Broker) countRetained(ctx context.Context, p string, handles []string) (n int64, err error) {
	for some := range slices.Chunk(handles, lookFields) {
		counts := make([]*redis.IntCmd, len(some))
		_, err := b.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for i, h := range some {
				counts[i] = pipe.XLen(ctx, p+"rt:"+h)
			}
			return nil
		})
		if err != nil {
			return n, b.fault("read retained messages", err)
		}
		for _, c := range counts {
			n += c.Val()
		}
	}
	return n, nil
}

// keyNames are the names of one entity's keys that no other key lists.
type keyNames struct {
	groups   map[string]bool // with a backlog
	transit  map[string]bool // transmission streams, without "tx:"
	retained []string        // handles with retained messages
}

// scanNames walks the keys that begin with prefix once: prefix of an entity → names.
func (b *Broker) scanNames(ctx context.Context, prefix string) (map[string]*keyNames, error) {
	out := map[string]*keyNames{}
	err := b.eachKey(ctx, prefix, func(keys []string) error {
		for _, k := range keys {
			entity, rest, _ := strings.Cut(k, "}:")
			entity += "}:"
			if sub, _, ok := strings.Cut(rest, ":"); ok && (sub == "d" || sub == "t") {
				entity, rest = entity+sub+":", rest[2:]
			}
			kind, name, _ := strings.Cut(rest, ":")
			n := out[entity]
			if n == nil {
				n = &keyNames{groups: map[string]bool{}, transit: map[string]bool{}}
				out[entity] = n
			}
			switch kind {
			case "b":
				n.groups[name[:max(0, strings.LastIndexByte(name, ':'))]] = true
			case "tx":
				n.transit[name] = true
			case "rt":
				n.retained = append(n.retained, name)
			}
		}
		return nil
	})
	return out, err
}
