package redisbroker

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"
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

// endpoints returns what never changes of the endpoints of handles, all of the queue with that prefix. Unknown ones are absent.
func (b *Broker) endpointInfo(ctx context.Context, prefix string, handles []string) (map[string]*epInfo, error) {
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
	v, err := b.rdb.HMGet(ctx, prefix+"ep", missing...).Result()
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
