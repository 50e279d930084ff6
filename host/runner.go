package host

import (
	"context"
	"errors"
	"time"

	"parley/broker"
)

// Runner runs one plugin. Run is safe for concurrent use: each call has an instance of its own while it runs.
type Runner interface {
	// Run makes one attempt at inv.Unit and says how it ended. It returns within the plugin's wall time limit plus
	// 100 ms, or twice that when an instance had to be started, and earlier when ctx ends (then the verdict is VerdictRelease
	// unless the handler had finished). It never panics and never keeps anything of inv after it returns.
	Run(ctx context.Context, inv *Invocation) Result
	// Digest is the sha256 of the module, in hexadecimal.
	Digest() string
	// Close frees compiled code and idle instances. Runs in flight end first.
	Close(ctx context.Context) error
}

// Invocation is what a Runner needs for one attempt.
type Invocation struct {
	Queue       string
	Unit        *broker.Unit
	Attempt     int    // 1 for the first delivery
	Traceparent string // W3C context of the attempt's span; "" when tracing is off
	Now         func() time.Time
	Effects     EffectChecker
}

// EffectChecker is the part of broker.Readers that staging needs.
type EffectChecker interface {
	// NewHandle makes the handle of a dialog that begins at queue; see broker.Readers.
	NewHandle(queue string) (string, error)
	// CheckEffect tells at staging time whether eff is known to fail; see broker.Readers.
	CheckEffect(ctx context.Context, unit *broker.Unit, eff *broker.Effect) error
}

// Result is how an attempt ended and what it left for people to look at.
type Result struct {
	Settlement broker.Settlement
	Fuel       uint64        // work units used; 0 when the plugin is not metered
	Elapsed    time.Duration // of the guest call
	Trap       string        // the trap's own text; "" when there was none
	Logs       []LogLine     // what the guest logged, bounded (field case 35)
	Spans      []GuestSpan   // custom spans the guest opened
	// Fault is nil, or why the attempt says nothing about the handler: it wraps ErrNotStarted or ErrNoAnswer. The verdict is
	// VerdictRelease then, and the host gives the plugin a rest, since the next attempt would end the same way.
	Fault error
}

// Faults of attempts; none of them counts for a message.
var (
	// ErrNotStarted is the fault of an attempt whose plugin failed before its handler was entered: it could not be instantiated or
	// initialized.
	ErrNotStarted = errors.New("the plugin does not start")
	// ErrNoAnswer is the fault of an attempt that was ended because the broker did not answer what the handler asked of it.
	ErrNoAnswer = errors.New("the broker did not answer the handler")
)

// LogLine is one line a guest logged, or one of its stdout or stderr.
type LogLine struct {
	Time   time.Time
	Level  int    // slog's numbers: −4 debug, 0 info, 4 warn, 8 error
	Stream string // "log", "stdout" or "stderr"
	Text   string
}

// GuestSpan is a span a guest opened inside its attempt.
type GuestSpan struct {
	Name       string
	Start, End time.Time
}
