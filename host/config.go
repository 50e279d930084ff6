package host

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"parley/broker"
)

// Defaults of Config and PluginConfig: the one place they are stated.
const (
	DefaultMaxReaders = 4
	DefaultTop        = 1
	DefaultDrain      = 30 * time.Second
	DefaultLinger     = time.Second
	DefaultSweep      = 5 * time.Second
)

// MaxReadersLimit is the greatest MaxReaders (AC-1).
const MaxReadersLimit = 32767

// NoReaders as MaxReaders configures a queue on which nothing is started (AC-1: MAX_QUEUE_READERS 0).
const NoReaders = -1

// Errors of New and Run.
var (
	// ErrConfig is returned by New, joined with every problem it found.
	ErrConfig = errors.New("host: the configuration is not valid")
	// ErrRan is returned by Run when the Host has been run before: a Host runs once.
	ErrRan = errors.New("host: a host runs once")
	// ErrNoPlugin is returned for a queue that no plugin of this host is activated on.
	ErrNoPlugin = errors.New("host: no plugin is activated on the queue")
)

// Config is what a Host needs.
type Config struct {
	// Readers opens readers. If it is a Sweeper too, idle queues are swept without opening a reader on each.
	Readers broker.Readers
	// Waker tells which queues have work.
	Waker broker.Waker
	// Keeper does the housekeeping; nil: this host does none.
	Keeper broker.Keeper
	// Plugins says what runs on which queue; at most one plugin a queue.
	Plugins []PluginConfig
	// Drain is how long Run lets running attempts finish after its context ended. Defaults to 30 s; <0: not at all.
	Drain time.Duration
	// Lease is how long a reader lives in Redis without a sign of life: broker.MinLease to broker.MaxLease. Defaults to
	// broker.DefaultLease.
	Lease time.Duration
	// Linger is how long an idle reader stays before it is closed. Defaults to 1 s, and is never more than half the lease: an idle
	// reader gives no sign of life.
	Linger time.Duration
	// Sweep is how often idle queues are looked at for a lost wake-up. Defaults to 5 s.
	Sweep time.Duration
	// Observer sees every attempt. Defaults to none, which costs nothing.
	Observer Observer
	// Restore is called, at most once a second, when the broker does not know a queue of Plugins (a flush): it should
	// define the entities again. Defaults to none.
	Restore RestoreFunc
	// Log receives state changes and trouble. Defaults to slog.Default().
	Log *slog.Logger
	// Name is shown to people who look at Redis. Defaults to the host's name and the process id.
	Name string
}

// PluginConfig activates one plugin on one queue.
type PluginConfig struct {
	// Name of the plugin, for people.
	Name string
	// Queue whose messages it handles.
	Queue string
	// Runner runs it.
	Runner Runner
	// MaxReaders is how many slots all hosts together may have on the queue (max_queue_readers). Defaults to 4;
	// NoReaders: nothing is started.
	MaxReaders int
	// Top is the greatest number of messages in one unit of work. Defaults to 1.
	Top int
	// NoState says that the plugin never reads state, so that none is fetched.
	NoState bool
}

func (c Config) withDefaults() Config {
	c.Drain = orDefault(c.Drain, DefaultDrain)
	c.Lease = orDefault(c.Lease, broker.DefaultLease)
	c.Linger = min(orDefault(c.Linger, DefaultLinger), c.Lease/2)
	c.Sweep = orDefault(c.Sweep, DefaultSweep)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			name = "host"
		}
		c.Name = fmt.Sprintf("%s:%d", name, os.Getpid())
	}
	plugins := make([]PluginConfig, len(c.Plugins))
	for i, p := range c.Plugins {
		p.MaxReaders = orDefault(p.MaxReaders, DefaultMaxReaders)
		p.Top = orDefault(p.Top, DefaultTop)
		plugins[i] = p
	}
	c.Plugins = plugins
	return c
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// validate joins every problem, each naming its plugin.
func (c *Config) validate() error {
	var errs []error
	if c.Readers == nil {
		errs = append(errs, errors.New("the readers are missing"))
	}
	if c.Waker == nil {
		errs = append(errs, errors.New("the waker is missing"))
	}
	if c.Lease < broker.MinLease || c.Lease > broker.MaxLease {
		errs = append(errs, fmt.Errorf("the lease wants %v to %v, has %v", broker.MinLease, broker.MaxLease, c.Lease))
	}
	if c.Linger < 0 || c.Sweep < 0 {
		errs = append(errs, errors.New("linger and sweep may not be negative"))
	}
	taken := make(map[string]string, len(c.Plugins))
	for i := range c.Plugins {
		p := &c.Plugins[i]
		if err := p.validate(); err != nil {
			errs = append(errs, fmt.Errorf("plugin %q: %w", p.Name, err))
		}
		if other, ok := taken[p.Queue]; ok {
			errs = append(errs, fmt.Errorf("plugin %q: plugin %q is activated on queue %q already", p.Name, other, p.Queue))
		}
		taken[p.Queue] = p.Name
	}
	if len(errs) == 0 {
		return nil
	}
	return errors.Join(append([]error{ErrConfig}, errs...)...)
}

func (p *PluginConfig) validate() error {
	switch {
	case p.Queue == "":
		return errors.New("the queue is missing")
	case p.Runner == nil:
		return errors.New("the runner is missing")
	case p.MaxReaders < NoReaders || p.MaxReaders > MaxReadersLimit:
		return fmt.Errorf("max readers %d is outside 0…%d", p.MaxReaders, MaxReadersLimit)
	case p.Top < 1:
		return fmt.Errorf("top %d is below 1", p.Top)
	}
	return nil
}
