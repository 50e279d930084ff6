package broker

import "strings"

const (
	segDeadLetter    = "$DeadLetterQueue"
	segTransfer      = "$Transfer"
	segSubscriptions = "Subscriptions"
)

// SubQueue names a sub-queue of an entity.
type SubQueue uint8

// The sub-queues every queue and subscription has (EN-1).
const (
	SubNone       SubQueue = iota // the entity itself
	SubDeadLetter                 // its dead-letter queue
	SubTransfer                   // its transfer dead-letter queue
)

// Path is an entity path, split.
type Path struct {
	Entity string // the queue, or topic/Subscriptions/name
	Sub    SubQueue
}

// ParsePath splits a path. Sub-queue segments match in any case (EN-2); the transfer form is tried first, since it ends like
// the other.
func ParsePath(path string) Path {
	rest, ok := cutFold(path, "/"+segDeadLetter)
	if !ok {
		return Path{Entity: path}
	}
	if e, ok := cutFold(rest, "/"+segTransfer); ok {
		return Path{Entity: e, Sub: SubTransfer}
	}
	return Path{Entity: rest, Sub: SubDeadLetter}
}

// String returns the path in its printed form.
func (p Path) String() string {
	switch p.Sub {
	case SubDeadLetter:
		return FormatDeadLetterPath(p.Entity)
	case SubTransfer:
		return FormatTransferDeadLetterPath(p.Entity)
	}
	return p.Entity
}

// FormatDeadLetterPath returns the path of the dead-letter queue of an entity: queue/$DeadLetterQueue.
func FormatDeadLetterPath(entity string) string { return entity + "/" + segDeadLetter }

// FormatTransferDeadLetterPath returns the path of the transfer dead-letter queue of an entity:
// queue/$Transfer/$DeadLetterQueue.
func FormatTransferDeadLetterPath(entity string) string {
	return entity + "/" + segTransfer + "/" + segDeadLetter
}

// FormatSubscriptionPath returns the path of a subscription: topic/Subscriptions/name.
func FormatSubscriptionPath(topic, subscription string) string {
	return topic + "/" + segSubscriptions + "/" + subscription
}

func cutFold(s, suffix string) (string, bool) {
	if n := len(s) - len(suffix); n >= 0 && strings.EqualFold(s[n:], suffix) {
		return s[:n], true
	}
	return s, false
}
