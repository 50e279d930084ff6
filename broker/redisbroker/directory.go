package redisbroker

import (
	"context"
	"encoding/json"
	"errors"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/broker"
	"parley/broker/validate"
)

// queueEntry is what the directory holds of a queue.
type queueEntry struct {
	Number   string // 8 hex digits: the start of every handle of this queue
	Settings broker.QueueSettings
}

// directory is what a client knows of its namespace: {ns}:entities, read again when {ns}:version moved. Looking never blocks
// on Redis more often than once in refreshEvery, except for a name that is not known. What is known is used when it cannot be
// refreshed: a node that is down is no reason to stop the queues of the others.
type directory struct {
	refreshing atomic.Bool // one looks, the others use what is known

	mu      sync.RWMutex // guards everything below
	version string
	checked time.Time
	failing bool // the last refresh failed, and it was said
	known
}

// known is the content of a directory; without a map of queues it is none.
type known struct {
	queues   map[string]queueEntry
	byNumber map[string]string
	services map[string]broker.Service
	types    map[string]broker.MessageType
	checks   map[string]checker
	contract map[string]broker.Contract
	prios    []broker.PriorityRule
	notify   []broker.EventNotification
	schedule []broker.Schedule
}

const (
	refreshEvery = 5 * time.Second
	refreshAgain = time.Second // after one that failed
)

// load reads the directory when its version moved.
func (d *directory) load(ctx context.Context, b *Broker) error {
	v, err := b.rdb.Get(ctx, b.nsKey("version")).Result()
	if err != nil && err.Error() != "redis: nil" {
		return b.fault("read the directory", err)
	}
	d.mu.RLock()
	same := d.version == v && d.queues != nil
	d.mu.RUnlock()
	if same {
		d.mu.Lock()
		d.checked = time.Now()
		d.mu.Unlock()
		return nil
	}
	all, err := b.rdb.HGetAll(ctx, b.nsKey("entities")).Result()
	if err != nil {
		return b.fault("read the directory", err)
	}
	return d.fill(v, all)
}

// fill takes over a directory that was read, all or nothing of it.
func (d *directory) fill(version string, all map[string]string) error {
	fresh := known{
		queues: map[string]queueEntry{}, byNumber: map[string]string{}, services: map[string]broker.Service{},
		types: map[string]broker.MessageType{}, checks: map[string]checker{}, contract: map[string]broker.Contract{},
	}
	for k, v := range all {
		kind, name, _ := strings.Cut(k, "/")
		err := fresh.add(kind, name, []byte(v))
		if err == nil {
			continue
		}
		if errors.Is(err, validate.ErrNoXMLSchema) {
			return broker.ErrNotAvailable.With("message type %q is valid_xml: %v; use the released build", name, err)
		}
		return broker.ErrCorrupt.With("the directory entry %q: %v", k, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version, d.checked, d.known = version, time.Now(), fresh
	return nil
}

func (d *known) add(kind, name string, v []byte) error {
	switch kind {
	case "q":
		var e queueEntry
		if err := json.Unmarshal(v, &e); err != nil {
			return err
		}
		d.queues[name] = e
		d.byNumber[e.Number] = name
	case "s":
		return put(d.services, name, v)
	case "m":
		if err := put(d.types, name, v); err != nil {
			return err
		}
		c, err := newChecker(d.types[name])
		if err != nil {
			return err
		}
		d.checks[name] = c
	case "c":
		return put(d.contract, name, v)
	case "p":
		return json.Unmarshal(v, &d.prios)
	case "n":
		return json.Unmarshal(v, &d.notify)
	case "t":
		return json.Unmarshal(v, &d.schedule)
	}
	return nil
}

func put[T any](m map[string]T, name string, v []byte) error {
	var x T
	if err := json.Unmarshal(v, &x); err != nil {
		return err
	}
	m[name] = x
	return nil
}

// fresh makes sure that what is known is not older than refreshEvery, or cannot be refreshed.
func (d *directory) fresh(ctx context.Context, b *Broker) error {
	d.mu.RLock()
	old, empty := time.Since(d.checked) > refreshEvery, d.queues == nil
	d.mu.RUnlock()
	switch {
	case !old:
		return nil
	case empty:
		return d.load(ctx, b)
	case !d.refreshing.CompareAndSwap(false, true):
		return nil
	}
	defer d.refreshing.Store(false)
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	if err := d.load(bounded, b); ctx.Err() == nil { // else it was the caller who gave up
		d.refreshed(b, err)
	}
	return nil
}

// refreshed notes how a refresh ended, and says when that changed.
func (d *directory) refreshed(b *Broker, err error) {
	d.mu.Lock()
	was := d.failing
	if d.failing = err != nil; err != nil {
		d.checked = time.Now().Add(refreshAgain - refreshEvery)
	}
	d.mu.Unlock()
	switch {
	case err != nil && !was:
		b.opt.Log("the definitions of the namespace cannot be refreshed; those that are known are used", "error", err)
	case err == nil && was:
		b.opt.Log("the definitions of the namespace can be refreshed again")
	}
}

// queue returns a queue's entry; a name that is not known is looked for on the server.
func (b *Broker) queueEntry(ctx context.Context, name string) (queueEntry, error) {
	if err := b.dir.fresh(ctx, b); err != nil {
		return queueEntry{}, err
	}
	for try := 0; ; try++ {
		b.dir.mu.RLock()
		e, ok := b.dir.queues[name]
		b.dir.mu.RUnlock()
		if ok {
			return e, nil
		}
		if try == 1 {
			return e, broker.ErrUnknownEntity.With("there is no queue %q in namespace %q; create it with runtime apply", name, b.ns)
		}
		if err := b.dir.load(ctx, b); err != nil {
			return e, err
		}
	}
}

// service returns a service; a name that is not known is looked for on the server.
func (b *Broker) service(ctx context.Context, name string) (broker.Service, bool, error) {
	if err := b.dir.fresh(ctx, b); err != nil {
		return broker.Service{}, false, err
	}
	for try := 0; ; try++ {
		b.dir.mu.RLock()
		s, ok := b.dir.services[name]
		b.dir.mu.RUnlock()
		if ok || try == 1 {
			return s, ok, nil
		}
		if err := b.dir.load(ctx, b); err != nil {
			return s, false, err
		}
	}
}

func (d *directory) letter(typ string) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if c, ok := d.checks[typ]; ok {
		return c.letter
	}
	return "N"
}

func (d *directory) queueNames() []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	names := make([]string, 0, len(d.queues))
	for n := range d.queues {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// queueOfHandle returns the queue a conversation handle belongs to: its first 8 digits are the queue's number.
func (b *Broker) queueOfHandle(ctx context.Context, handle string) (string, error) {
	if handle == "" {
		return "", broker.ErrHandleMissing
	}
	if !validHandle(handle) {
		return "", broker.ErrUnknownConversation.With("%q is not a conversation handle", handle)
	}
	for try := 0; ; try++ {
		b.dir.mu.RLock()
		q, ok := b.dir.byNumber[handle[:8]]
		b.dir.mu.RUnlock()
		if ok {
			return q, nil
		}
		if try == 1 {
			return "", broker.ErrUnknownConversation.With("no queue of namespace %q has number %s", b.ns, handle[:8])
		}
		if err := b.dir.load(ctx, b); err != nil {
			return "", err
		}
	}
}

func validHandle(h string) bool {
	if len(h) != 36 {
		return false
	}
	for i := range 36 {
		c := h[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// forget makes the next look read all of it again: behind a new connection there may be a server with another history, whose version
// says nothing about what is known here.
func (d *directory) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.version, d.checked = "", time.Time{}
}

// stale makes the next look ask the server.
func (d *directory) stale() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.checked = time.Time{}
}
