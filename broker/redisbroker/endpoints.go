package redisbroker

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/broker"
)

// epInfo is the part of an endpoint that never changes.
type epInfo struct {
	role, service, far, farHandle, contract, created, expires, lane string
}

// epCache keeps what never changes of the endpoints lately seen, so that a hand-out needs no look-up for a known conversation.
type epCache struct {
	mu sync.RWMutex // guards m
	m  map[string]*epInfo
}

const epCacheSize = 50_000

func (c *epCache) get(handle string) *epInfo {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.m[handle]
}

func (c *epCache) put(handle string, e *epInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= epCacheSize {
		c.m = map[string]*epInfo{}
	}
	c.m[handle] = e
}

func parseEp(s string) *epInfo {
	f := strings.Split(s, "|")
	if len(f) < 8 {
		return nil
	}
	return &epInfo{f[0], unescape(f[1]), unescape(f[2]), f[3], unescape(f[4]), f[5], f[6], f[7]}
}

// endpointInfo returns what never changes of the endpoints of handles, all of the queue with that prefix. Unknown ones are absent.
// What is not known here it asks the server for, until limit has passed.
func (b *Broker) endpointInfo(ctx context.Context, prefix string, handles []string, limit time.Duration) (map[string]*epInfo, error) {
	out := make(map[string]*epInfo, len(handles))
	var missing []string
	for _, h := range handles {
		if _, seen := out[h]; seen {
			continue
		}
		e := b.eps.get(h)
		if e == nil {
			missing = append(missing, h)
		}
		out[h] = e
	}
	if len(missing) == 0 {
		return out, nil
	}
	var v []any
	err := patiently(ctx, limit, infrastructure, func(ctx context.Context) (err error) {
		v, err = b.rdb.HMGet(ctx, prefix+"ep", missing...).Result()
		return err
	})
	if err != nil {
		return nil, b.fault("read endpoints", err)
	}
	for i, h := range missing {
		if s, ok := v[i].(string); ok {
			if e := parseEp(s); e != nil {
				b.eps.put(h, e)
				out[h] = e
				continue
			}
		}
		delete(out, h)
	}
	return out, nil
}

// readEndpoints reads the endpoints that a turn's reply carries, and reports whether one of them was news: then more may be.
func (r *reader) readEndpoints(c *cursor) (news bool) {
	for range c.count() {
		h, line, _ := strings.Cut(c.line(), " ")
		e := parseEp(line)
		switch {
		case e == nil:
			c.bad = true
		case r.b.eps.get(h) == nil:
			news = true
			r.b.eps.put(h, e)
		}
	}
	return news
}

// fillDialogs adds what the entries of dialog messages do not carry: services, contract, priority. A turn whose reply did not carry
// them, since the last one brought no news, looks for them; it has a part of the lease for that, and the next one brings them.
func (r *reader) fillDialogs(ctx context.Context, units []*broker.Unit) error {
	var handles []string
	for _, u := range units {
		for i := range u.Messages {
			h := u.Messages[i].Conversation
			if h == "" || !strings.HasPrefix(u.Group, "g:") {
				continue
			}
			handles = append(handles, h)
			r.wantsEps = r.wantsEps || r.b.eps.get(h) == nil
		}
	}
	if len(handles) == 0 {
		return nil
	}
	info, err := r.b.endpointInfo(ctx, r.prefix, handles, r.lease/4)
	if err != nil {
		return err
	}
	for _, u := range units {
		for i := range u.Messages {
			m := &u.Messages[i]
			if e := info[m.Conversation]; e != nil {
				m.Service, m.FarService, m.Contract, m.Priority = e.service, e.far, e.contract, e.priority()
			}
		}
	}
	return nil
}

func (e *epInfo) priority() int {
	n, err := strconv.Atoi(e.lane)
	if err != nil {
		return 5
	}
	return n
}

func (e *epInfo) expiresAt() time.Time { return msTime(e.expires) }

// conversationID is shared by both sides: the handle without queue number and role (DG-4).
func conversationID(handle string) string {
	if len(handle) != 36 {
		return ""
	}
	return "00000000" + handle[8:14] + "4" + handle[15:]
}
