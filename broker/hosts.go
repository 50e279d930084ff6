package broker

import (
	"context"
	"time"
)

// HostReport is what a host tells operators of itself.
type HostReport struct {
	Name     string // of the host and its process
	Monitors []MonitorReport
}

// MonitorReport is the queue monitor of one host on one queue (AC-18). Counters count from the start of the host.
type MonitorReport struct {
	Queue      string `json:"queue"`
	Plugin     string `json:"plugin"`
	State      string `json:"state"` // INACTIVE, NOTIFIED or RECEIVES_OCCURRING (AC-6)
	Off        bool   `json:"off,omitempty"`
	Paused     bool   `json:"paused,omitempty"` // activation is off
	MaxReaders int    `json:"max"`              // slots all hosts together may have
	Readers    int    `json:"readers"`          // open here
	Slots      int    `json:"slots"`            // granted here
	Running    int    `json:"running"`          // attempts that run now
	Waiting    int64  `json:"waiting"`          // messages ready on the queue at the last turn

	ReadersStarted int64 `json:"started"`
	ReadersStopped int64 `json:"stopped"`
	LimitReached   int64 `json:"limited"` // starts that the limit refused (AC-11)
	Errors         int64 `json:"errors"`
	LeaseLosses    int64 `json:"lease_losses"`
	Units          int64 `json:"units"` // attempts handed out
	Committed      int64 `json:"committed"`
	RolledBack     int64 `json:"rolled_back"` // those that turned the queue OFF or were refused included
	DeadLettered   int64 `json:"dead_lettered"`
	Lost           int64 `json:"lost"`

	Recess        string    `json:"recess,omitempty"`     // why the plugin cannot handle messages, which wait uncounted; "": it can
	RecessEnds    time.Time `json:"recess_ends"`          // when it is tried again
	LastError     string    `json:"last_error,omitempty"` // "" when the last call succeeded
	LastActivated time.Time `json:"last_activated"`       // zero: never
	LastEmpty     time.Time `json:"last_empty"`           // zero: never
}

// Hosts is where hosts publish their queue monitors and operators read them.
type Hosts interface {
	// PublishHost stores the monitors of h that are given, beside those stored before, and keeps all of them for ttl. Without
	// monitors it only prolongs.
	PublishHost(ctx context.Context, h HostReport, ttl time.Duration) error
	// ForgetHost removes what the host of that name published. It is no error when there is nothing.
	ForgetHost(ctx context.Context, name string) error
	// ListHosts returns every host that published within its ttl, sorted by name, their monitors sorted by queue.
	ListHosts(ctx context.Context) ([]HostReport, error)
}
