package redisbroker

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// How much one command of a look reads. Nothing that audit calls may hold the server up, whatever a queue holds.
const (
	lookFields  = 1000    // of a hash, a list or a sorted set
	lookEntries = 1000    // of a stream
	lookBytes   = 1 << 20 // of bodies that a script passes over, at most about twice as many
)

// lookedAt is one entry of a stream as chunk tells of it.
type lookedAt struct {
	id     string
	fields int
	head   string // the name of its first field
	size   int    // bytes of that field's value
	from   string // of a transmission entry: the conversation it leaves
	kind   string // of a transmission entry: kind and number in the conversation
	rest   string // of a transmission entry: the rest of the header
	holder string // the consumer name it is pending for, or ""
	unread bool   // the group has not given it out
}

// lookStream calls f with every entry of a stream in order, and gone with each pending entry that is no more there. It stops
// when f or moved says so; moved is told the change counter at each step.
func (b *Broker) lookStream(ctx context.Context, prefix, name string, moved func(chg string) bool, f func(*lookedAt), gone func(id, holder string)) error {
	for start := "-"; start != ""; {
		a, err := b.repeatStrings(ctx, "chunk", prefix+"meta", name, start, lookEntries, lookBytes)
		if err != nil {
			return err
		}
		if len(a) < 4 || moved(a[0]) {
			return nil
		}
		start = a[1]
		n, _ := strconv.Atoi(a[3])
		pending := a[4+7*n:]
		for i := range n {
			e := lookedEntry(a[4+7*i:])
			for len(pending) > 1 && later(e.id, pending[0]) {
				gone(pending[0], pending[1])
				pending = pending[2:]
			}
			if len(pending) > 1 && pending[0] == e.id {
				e.holder, pending = pending[1], pending[2:]
			}
			e.unread = e.holder == "" && later(e.id, a[2])
			f(&e)
		}
		for ; len(pending) > 1; pending = pending[2:] {
			gone(pending[0], pending[1])
		}
	}
	return nil
}

func lookedEntry(a []string) lookedAt {
	e := lookedAt{id: a[0], head: a[2], from: a[4], kind: a[5], rest: a[6]}
	e.fields, _ = strconv.Atoi(a[1])
	e.size, _ = strconv.Atoi(a[3])
	return e
}

// later reports whether stream id a comes after b; every id comes after an empty one.
func later(a, b string) bool {
	am, as, _ := strings.Cut(a, "-")
	bm, bs, _ := strings.Cut(b, "-")
	if num(am) != num(bm) {
		return num(am) > num(bm)
	}
	return num(as) > num(bs)
}

// hashOf reads a hash, some fields at a time.
func (b *Broker) hashOf(ctx context.Context, key string) (map[string]string, error) {
	out := map[string]string{}
	for cursor := uint64(0); ; {
		kv, next, err := b.rdb.HScan(ctx, key, cursor, "", lookFields).Result()
		if err != nil {
			return nil, b.fault("read "+key, err)
		}
		for i := 0; i+1 < len(kv); i += 2 {
			out[kv[i]] = kv[i+1]
		}
		if cursor = next; cursor == 0 {
			return out, nil
		}
	}
}

// sortedSet reads a sorted set, some members at a time.
func (b *Broker) sortedSet(ctx context.Context, key string) ([]redis.Z, error) {
	var out []redis.Z
	for {
		z, err := b.rdb.ZRangeWithScores(ctx, key, int64(len(out)), int64(len(out)+lookFields-1)).Result()
		if err != nil {
			return nil, b.fault("read "+key, err)
		}
		out = append(out, z...)
		if len(z) < lookFields {
			return out, nil
		}
	}
}

// listOf reads a list, some elements at a time.
func (b *Broker) listOf(ctx context.Context, key string) ([]string, error) {
	var out []string
	for {
		v, err := b.rdb.LRange(ctx, key, int64(len(out)), int64(len(out)+lookFields-1)).Result()
		if err != nil {
			return nil, b.fault("read "+key, err)
		}
		out = append(out, v...)
		if len(v) < lookFields {
			return out, nil
		}
	}
}
