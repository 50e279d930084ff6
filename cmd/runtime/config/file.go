package config

import (
	"github.com/goccy/go-yaml/ast"
)

// File is one configuration file, checked. A nil pointer stands for a key that is not stated.
type File struct {
	Namespace    string         `yaml:"namespace"` // "": not stated
	Host         Host           `yaml:"host"`
	MessageTypes []MessageType  `yaml:"message_types"`
	Contracts    []Contract     `yaml:"contracts"`
	Queues       []Queue        `yaml:"queues"`
	Services     []Service      `yaml:"services"`
	Priorities   []Priority     `yaml:"priorities"`
	Topics       []Topic        `yaml:"topics"`
	Plugins      []Plugin       `yaml:"plugins"`
	Notify       []Notification `yaml:"event_notifications"`
	Schedules    []Schedule     `yaml:"schedules"`

	name string    // of the file, for error messages
	root *ast.File // for line numbers
	dir  string    // relative paths start here
}

// Host is what concerns the process, not the namespace.
type Host struct {
	Redis     string    `yaml:"redis"` // "": not stated
	Telemetry Telemetry `yaml:"telemetry"`
	Drain     *Duration `yaml:"drain"` // the host's default when nil
	Lease     *Duration `yaml:"lease"` // the broker's default when nil
	Cache     string    `yaml:"cache"` // folder of compiled plugins; "": the user's cache folder
}

// Telemetry names the exporters; "" switches one off.
type Telemetry struct {
	OTLP       string `yaml:"otlp"`
	Prometheus string `yaml:"prometheus"`
}

// MessageType is one entry of message_types.
type MessageType struct {
	Name       string   `yaml:"name"`
	Validation string   `yaml:"validation"` // "": none
	Schemas    []string `yaml:"schemas"`    // files, relative to the YAML file
}

// Contract is one entry of contracts.
type Contract struct {
	Name     string            `yaml:"name"`
	Messages map[string]string `yaml:"messages"` // type name to initiator, target or any
}

// Queue is one entry of queues.
type Queue struct {
	Name           string    `yaml:"name"`
	Retention      *Switch   `yaml:"retention"`
	Archive        *Switch   `yaml:"archive"`
	Poison         Poison    `yaml:"poison_message_handling"`
	MaxDelivery    *int      `yaml:"max_delivery_count"`
	Retry          Retry     `yaml:"retry"`
	LockDuration   *Duration `yaml:"lock_duration"`
	MaxMessageSize *Size     `yaml:"max_message_size"`
	DefaultTTL     *Duration `yaml:"default_message_time_to_live"`
	DeadLetterTTL  *Switch   `yaml:"dead_lettering_on_message_expiration"`
	OnDeadLetter   string    `yaml:"on_dead_letter"`
	AutoEnd        *Switch   `yaml:"auto_end"`
	Durable        *int      `yaml:"durable"`
	PriorityAging  *Duration `yaml:"priority_aging"`
}

// Poison is the poison_message_handling of a queue.
type Poison struct {
	Status    *Switch `yaml:"status"`
	Rollbacks *int    `yaml:"rollbacks"`
	Scope     string  `yaml:"scope"`
}

// Retry is the retry of a queue.
type Retry struct {
	Initial    *Duration `yaml:"initial"`
	Max        *Duration `yaml:"max"`
	Multiplier *float64  `yaml:"multiplier"`
	Jitter     *float64  `yaml:"jitter"`
}

// Service is one entry of services.
type Service struct {
	Name      string   `yaml:"name"`
	Queue     string   `yaml:"queue"`
	Contracts []string `yaml:"contracts"`
}

// Priority is one entry of priorities; a criterion that is not stated matches anything.
type Priority struct {
	Name     string `yaml:"name"`
	Contract string `yaml:"contract"`
	Local    string `yaml:"local_service"`
	Remote   string `yaml:"remote_service"`
	Level    int    `yaml:"level"`
}

// Topic is one entry of topics. This version refuses it.
type Topic struct {
	Name          string         `yaml:"name"`
	Subscriptions []Subscription `yaml:"subscriptions"`
}

// Subscription is one subscription of a topic.
type Subscription struct {
	Name  string `yaml:"name"`
	Rules []Rule `yaml:"rules"`
}

// Rule is one rule of a subscription.
type Rule struct {
	Name string `yaml:"name"`
	SQL  string `yaml:"sql"`
}

// Plugin is one entry of plugins.
type Plugin struct {
	Name           string            `yaml:"name"`
	Source         string            `yaml:"source"` // a Go package folder or a .wasm file
	Queue          string            `yaml:"queue"`
	MaxReaders     *int              `yaml:"max_queue_readers"` // the host's default when nil
	Top            *int              `yaml:"top"`               // the host's default when nil
	Instances      string            `yaml:"instances"`         // pooled (the default) or per_attempt
	MaxInvocations *int              `yaml:"max_invocations"`   // no limit when nil
	Limits         Limits            `yaml:"limits"`
	Config         map[string]string `yaml:"config"`       // what the plugin reads as its configuration
	Capabilities   []string          `yaml:"capabilities"` // what it may do to other queues
}

// Limits are the limits of a plugin; nil or 0 is the default of package guest.
type Limits struct {
	Memory      *Size     `yaml:"memory"`
	Time        *Duration `yaml:"time"`
	Fuel        *int      `yaml:"fuel"`
	Output      *Size     `yaml:"output"`
	Reply       *Size     `yaml:"reply"`
	Effects     *int      `yaml:"effects"`
	EffectBytes *Size     `yaml:"effect_bytes"`
	HostCalls   *int      `yaml:"host_calls"`
}

// Notification is one entry of event_notifications.
type Notification struct {
	Event string `yaml:"event"`
	Queue string `yaml:"queue"`
	To    string `yaml:"to"`
}

// Schedule is one entry of schedules.
type Schedule struct {
	Name string `yaml:"name"`
	Cron string `yaml:"cron"`
	Zone string `yaml:"time_zone"`
	To   string `yaml:"to"`
	Type string `yaml:"type"`
}
