package main

import (
	"maps"
	"slices"

	"parley/broker"
)

// isDeadLetter reports whether path names a sub-queue, whose messages have a reason.
func isDeadLetter(path string) bool { return broker.ParsePath(path).Sub != broker.SubNone }

// deadLetterPath is the dead-letter queue of an entity; a path that names a sub-queue already stays what it is.
func deadLetterPath(path string) string {
	p := broker.ParsePath(path)
	if p.Sub == broker.SubNone {
		p.Sub = broker.SubDeadLetter
	}
	return p.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
