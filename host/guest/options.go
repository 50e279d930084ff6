package guest

import (
	"fmt"
	"log/slog"
	"slices"

	"parley/broker"
)

// Instances says how long an instance lives.
type Instances string

// The instance policies.
const (
	Pooled     Instances = "pooled"      // used again as long as its attempts commit
	PerAttempt Instances = "per_attempt" // a fresh one for every attempt
)

// Options configures Load. The zero value of each field is its default.
type Options struct {
	Name           string            // of the plugin, for logs and errors
	Limits         Limits            // DefaultLimits where zero
	Config         map[string]string // what the function config answers
	CacheDir       string            // where compiled code is kept, mode 0700; "": nowhere
	Instances      Instances         // "": Pooled
	MaxInvocations int               // an instance is closed after so many attempts; 0: never for that reason
	MaxInstances   int               // Run waits while so many instances run; 0: as many as there are callers
	Log            *slog.Logger      // gets guests' log lines, at most 100 a second; nil: nobody does
	Capabilities   []Capability      // what the plugin may do to other queues; none unless listed
	Peeker         broker.Peeker     // answers queue_peek; nil: it answers ERR_NOT_AVAILABLE
	Retainer       broker.Retainer   // answers dialog_retained; nil: it answers ERR_NOT_AVAILABLE
	Deterministic  bool              // fixed random bytes and a clock that only counts its readings: same fuel for the same input
}

func (o Options) withDefaults() (Options, error) {
	o.Limits = o.Limits.withDefaults()
	if o.Instances == "" {
		o.Instances = Pooled
	}
	if o.Instances != Pooled && o.Instances != PerAttempt {
		return o, fmt.Errorf("instances is %q: it must be %q or %q", o.Instances, Pooled, PerAttempt)
	}
	if o.MaxInvocations < 0 || o.MaxInstances < 0 {
		return o, fmt.Errorf("max_invocations and max_instances must not be negative")
	}
	for _, c := range o.Capabilities {
		if !slices.Contains(Capabilities(), c) {
			return o, fmt.Errorf("capability %q is unknown: use %v", c, Capabilities())
		}
	}
	return o, o.Limits.check()
}
