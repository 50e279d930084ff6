package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Bounds of a queue's lock duration, as documented (EN-4) with our least one.
const (
	leastLock    = time.Second
	greatestLock = 5 * time.Minute
)

func (c *checker) queues() {
	seen := map[string]bool{}
	for i, q := range c.f.Queues {
		c.queueName("queues", i, "name", q.Name)
		c.unique("queues", i, q.Name, seen)
		c.atLeast(q.MaxDelivery, 1, "queues", i, "max_delivery_count")
		c.atLeast(q.Durable, 0, "queues", i, "durable")
		c.atLeast(q.Poison.Rollbacks, 1, "queues", i, "poison_message_handling", "rollbacks")
		c.oneOf(q.Poison.Scope, []string{"message", "queue"}, "queues", i, "poison_message_handling", "scope")
		c.oneOf(q.OnDeadLetter, []string{"continue", "park", "end"}, "queues", i, "on_dead_letter")
		if d := q.LockDuration; d != nil && (time.Duration(*d) < leastLock || time.Duration(*d) > greatestLock) {
			c.bad(fmt.Sprintf("lock_duration wants %v to %v, has %v", leastLock, greatestLock, time.Duration(*d)), "queues", i, "lock_duration")
		}
		if s := q.MaxMessageSize; s != nil && *s < 1 {
			c.bad("max_message_size wants at least 1 byte", "queues", i, "max_message_size")
		}
		c.retry(i, q.Retry)
	}
}

func (c *checker) retry(i int, r Retry) {
	if r.Multiplier != nil && !(*r.Multiplier >= 1 && *r.Multiplier <= 100) {
		c.bad(fmt.Sprintf("multiplier wants 1 to 100, has %v", *r.Multiplier), "queues", i, "retry", "multiplier")
	}
	if r.Jitter != nil && !(*r.Jitter >= 0 && *r.Jitter <= 1) {
		c.bad(fmt.Sprintf("jitter wants 0 to 1, has %v", *r.Jitter), "queues", i, "retry", "jitter")
	}
	if r.Initial != nil && r.Max != nil && *r.Max < *r.Initial {
		c.bad(fmt.Sprintf("retry: max (%v) is below initial (%v)", time.Duration(*r.Max), time.Duration(*r.Initial)), "queues", i, "retry", "max")
	}
}

func (c *checker) plugins() {
	seen := map[string]bool{}
	owner := map[string]string{}
	for i, p := range c.f.Plugins {
		c.otherName("plugins", i, "name", p.Name)
		c.unique("plugins", i, p.Name, seen)
		c.queueName("plugins", i, "queue", p.Queue)
		if p.Source == "" {
			c.bad("plugin: source is missing: a Go package folder or a .wasm file", "plugins", i)
		}
		if first, taken := owner[p.Queue]; taken {
			c.bad(fmt.Sprintf("queue %q has the plugin %q already: one queue, one plugin", p.Queue, first), "plugins", i, "queue")
		}
		owner[p.Queue] = p.Name
		c.atLeast(p.MaxReaders, 0, "plugins", i, "max_queue_readers")
		c.atLeast(p.Top, 1, "plugins", i, "top")
		c.atLeast(p.MaxInvocations, 1, "plugins", i, "max_invocations")
		c.oneOf(p.Instances, []string{"pooled", "per_attempt"}, "plugins", i, "instances")
		for j, k := range p.Capabilities {
			c.capability(k, "plugins", i, "capabilities", j)
		}
		c.limits(i, p.Limits)
	}
}

// capability refuses one that is unknown, and an empty one, which oneOf takes for a key that is not stated.
func (c *checker) capability(name string, path ...any) {
	known := []string{"queue_peek", "conversation_end", "queue_enable"}
	if !slices.Contains(known, name) {
		c.bad(fmt.Sprintf("capabilities wants some of %s, has %q", strings.Join(known, ", "), name), path...)
	}
}

func (c *checker) limits(i int, l Limits) {
	if l.Time != nil && *l.Time <= 0 {
		c.bad("time wants a duration above 0", "plugins", i, "limits", "time")
	}
	if l.Memory != nil && (*l.Memory < wasmPage || *l.Memory > 4<<30) {
		c.bad("memory wants 64KiB (one page) to 4GiB", "plugins", i, "limits", "memory")
	}
	for _, s := range []struct {
		key string
		v   *Size
	}{{"output", l.Output}, {"reply", l.Reply}, {"effect_bytes", l.EffectBytes}} {
		if s.v != nil && *s.v < 1 {
			c.bad(s.key+" wants at least 1 byte", "plugins", i, "limits", s.key)
		}
	}
	c.atLeast(l.Fuel, 1, "plugins", i, "limits", "fuel")
	c.atLeast(l.Effects, 1, "plugins", i, "limits", "effects")
	c.atLeast(l.HostCalls, 1, "plugins", i, "limits", "host_calls")
}

// wasmPage is the unit of WebAssembly memory.
const wasmPage = 64 << 10
