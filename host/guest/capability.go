package guest

import (
	"slices"

	"parley/host/guest/meter"
	"parley/sdk/abi"
)

// Capability is something a plugin may do to queues other than its own, once its host grants it. The name is that of the
// function of module parley_v1 that needs it.
type Capability string

// The capabilities.
const (
	QueuePeek       Capability = "queue_peek"       // look at the messages of any queue
	ConversationEnd Capability = "conversation_end" // end a conversation of another queue with an error
	QueueEnable     Capability = "queue_enable"     // turn another queue ON
)

// Capabilities returns all of them.
func Capabilities() []Capability { return []Capability{QueuePeek, ConversationEnd, QueueEnable} }

// deny reports, and notes for the outcome, that the plugin lacks c.
func (in *instance) deny(c Capability) bool {
	if slices.Contains(in.plugin.opts.Capabilities, c) {
		return false
	}
	in.denied = c
	return true
}

// capabilitiesOf returns what the functions that a module imports need.
func capabilitiesOf(imports []meter.Import) []Capability {
	var needs []Capability
	for _, c := range Capabilities() {
		if slices.ContainsFunc(imports, func(i meter.Import) bool { return i.Module == abi.Module && i.Name == string(c) }) {
			needs = append(needs, c)
		}
	}
	return needs
}
