// Package measure runs one workload of one contender against a private Redis
// server and says how fast it was and what it cost.
package measure

import (
	"context"
	"errors"
	"strings"
	"time"
)

// BodySize is the length in bytes of every message body.
const BodySize = 256

// ErrNotRun is wrapped by Workload.Open when the machine lacks what the
// contender needs. The run goes on without it and the report says why.
var ErrNotRun = errors.New("not run")

// Side is one contender doing one workload. Its methods are called in the order
// they stand here, from one goroutine, each under a time limit in ctx that it
// must obey. Any error fails the whole run.
type Side interface {
	// Prepare fills in n messages (or sets up n samples). It is not timed.
	Prepare(ctx context.Context, n int) error
	// Run does the timed work. It returns nil only once all n messages went through.
	Run(ctx context.Context) error
	// Verify checks on the server that nothing was lost, doubled or left over. It is not timed.
	Verify(ctx context.Context) error
	// Close ends everything the side started.
	Close() error
}

// Sampler is a Side that measures the time of single messages.
type Sampler interface {
	// Samples returns one duration a message, in the order they were taken.
	Samples() []time.Duration
}

// Burner is a Side whose work happens in a process of its own.
type Burner interface {
	// CPU returns what that process has used so far.
	CPU() (time.Duration, error)
}

// Kind says which figure of a measurement counts.
type Kind string

// The figures a workload can be about.
const (
	Rate    Kind = "rate"    // messages a second
	Latency Kind = "latency" // median in microseconds
	Memory  Kind = "memory"  // bytes in Redis for each message that waits after Prepare
	Idle    Kind = "idle"    // percent of one core that the host uses during Run
)

// Workload is something a contender can be asked to do.
type Workload struct {
	// Name identifies the workload in rows and in the output.
	Name string
	// Does says exactly what happens: readers, COUNT, fields.
	Does string
	Kind Kind
	// Count is the number of messages or samples.
	Count int
	// Profile is a folder for profiles of the timed part; "": none are made.
	Profile string
	// Open connects to the server at addr (host:port).
	Open func(ctx context.Context, addr string) (Side, error)
}

// Body returns the message body that all contenders send.
func Body() string {
	const line = `{"event":"order","id":"0123456789abcdef","note":"measured"} `
	return strings.Repeat(line, BodySize/len(line)+1)[:BodySize]
}
