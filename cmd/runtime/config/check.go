package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/broker"
)

// checker collects nothing: the first thing wrong ends it, as the first line to repair.
type checker struct {
	f   *File
	err error
}

// bad records what is wrong at path, unless something was wrong before.
func (c *checker) bad(text string, path ...any) { c.refuse(errors.New(text), path...) }

func (c *checker) refuse(err error, path ...any) {
	if c.err == nil && err != nil {
		c.err = c.f.Refuse(err, path...)
	}
}

// queueName, serviceName and otherName refuse a missing or illegal name of an entry.
func (c *checker) queueName(list string, i int, key, value string) {
	c.name(list, i, key, value, broker.CheckQueueName)
}

func (c *checker) serviceName(list string, i int, key, value string) {
	c.name(list, i, key, value, broker.CheckServiceName)
}

func (c *checker) otherName(list string, i int, key, value string) {
	c.name(list, i, key, value, func(name string) error { return broker.CheckTypeName(one(list), name) })
}

func (c *checker) name(list string, i int, key, value string, check func(string) error) {
	if value == "" {
		c.bad(fmt.Sprintf("%s: %s is missing", one(list), key), list, i)
		return
	}
	c.refuse(check(value), list, i, key)
}

func (c *checker) unique(list string, i int, name string, seen map[string]bool) {
	if seen[name] {
		c.bad(fmt.Sprintf("%s %q is defined twice", one(list), name), list, i, "name")
	}
	seen[name] = true
}

// oneOf refuses value unless it is one of allowed; "" stands for a key that is not stated.
func (c *checker) oneOf(value string, allowed []string, path ...any) {
	if value != "" && !slices.Contains(allowed, value) {
		c.bad(fmt.Sprintf("%v wants one of %s, has %q", path[len(path)-1], strings.Join(allowed, ", "), value), path...)
	}
}

// atLeast refuses a stated number below least.
func (c *checker) atLeast(v *int, least int, path ...any) {
	if v != nil && *v < least {
		c.bad(fmt.Sprintf("%v wants a number from %d on, has %d", path[len(path)-1], least, *v), path...)
	}
}

// check makes every check that needs no broker.
func (f *File) check() error {
	c := &checker{f: f}
	if f.Namespace != "" {
		c.refuse(broker.CheckNamespace(f.Namespace), "namespace")
	}
	if d := f.Host.Lease; d != nil && (time.Duration(*d) < broker.MinLease || time.Duration(*d) > broker.MaxLease) {
		c.bad(fmt.Sprintf("lease wants %v to %v, has %v", broker.MinLease, broker.MaxLease, time.Duration(*d)), "host", "lease")
	}
	c.messageTypes()
	c.contracts()
	c.queues()
	c.services()
	c.priorities()
	c.plugins()
	c.later()
	return c.err
}

func (c *checker) messageTypes() {
	seen := map[string]bool{}
	for i, m := range c.f.MessageTypes {
		c.otherName("message_types", i, "name", m.Name)
		c.unique("message_types", i, m.Name, seen)
		c.oneOf(m.Validation, []string{"none", "empty", "well_formed_xml", "valid_xml", "well_formed_json", "json_schema"},
			"message_types", i, "validation")
		needs := m.Validation == "valid_xml" || m.Validation == "json_schema"
		if needs && len(m.Schemas) == 0 {
			c.bad(fmt.Sprintf("validation %s needs schemas: a list of files", m.Validation), "message_types", i, "validation")
		}
		if !needs && len(m.Schemas) > 0 {
			c.bad("schemas go with validation valid_xml or json_schema only", "message_types", i, "schemas")
		}
	}
}

func (c *checker) contracts() {
	seen := map[string]bool{}
	for i, k := range c.f.Contracts {
		c.otherName("contracts", i, "name", k.Name)
		c.unique("contracts", i, k.Name, seen)
		usable := false
		for _, t := range slices.Sorted(maps.Keys(k.Messages)) {
			c.refuse(broker.CheckTypeName("message type", t), "contracts", i, "messages", t)
			c.oneOf(k.Messages[t], []string{string(broker.ByInitiator), string(broker.ByTarget), string(broker.ByAny)},
				"contracts", i, "messages", t)
			usable = usable || k.Messages[t] != string(broker.ByTarget)
		}
		if !usable {
			c.refuse(broker.ErrContractEmpty.With("contract %q", k.Name), "contracts", i)
		}
	}
}

func (c *checker) services() {
	seen := map[string]bool{}
	for i, s := range c.f.Services {
		c.serviceName("services", i, "name", s.Name)
		c.unique("services", i, s.Name, seen)
		c.queueName("services", i, "queue", s.Queue)
	}
}

func (c *checker) priorities() {
	seen := map[string]bool{}
	for i, p := range c.f.Priorities {
		c.otherName("priorities", i, "name", p.Name)
		c.unique("priorities", i, p.Name, seen)
		if p.Level < 1 || p.Level > 10 {
			c.bad(fmt.Sprintf("level wants a number from 1 to 10, has %d", p.Level), "priorities", i, "level")
		}
	}
}

// later refuses what this version reads but cannot do, and checks what depends on the rest of the file.
func (c *checker) later() {
	if len(c.f.Topics) > 0 {
		c.refuse(broker.ErrNotAvailable.With("topics"), "topics")
	}
	for i, n := range c.f.Notify {
		c.queueName("event_notifications", i, "queue", n.Queue)
		c.serviceName("event_notifications", i, "to", n.To)
		if n.Event == "" {
			c.bad("event notification: event is missing", "event_notifications", i)
		}
		c.oneOf(n.Event, []string{broker.EventQueueDisabled, broker.EventQueueActivation}, "event_notifications", i, "event")
		for _, p := range c.f.Plugins {
			if n.Event == broker.EventQueueActivation && p.Queue == n.Queue {
				c.refuse(broker.ErrActivation.With("queue %q, plugin %q", n.Queue, p.Name), "event_notifications", i)
			}
		}
	}
	seen := map[string]bool{}
	for i, s := range c.f.Schedules {
		c.otherName("schedules", i, "name", s.Name)
		c.unique("schedules", i, s.Name, seen)
		c.serviceName("schedules", i, "to", s.To)
		if s.Cron == "" {
			c.bad(fmt.Sprintf("schedule %q: cron is missing", s.Name), "schedules", i)
		}
	}
}

// one is the name of one entry of a list.
func one(list string) string {
	switch list {
	case "priorities":
		return "priority"
	case "event_notifications":
		return "event notification"
	case "message_types":
		return "message type"
	}
	return strings.TrimSuffix(list, "s")
}
