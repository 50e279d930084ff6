package main

import (
	"maps"
	"slices"

	"parley/broker"
)

// isDeadLetter reports whether path names a sub-queue, whose messages have a reason.
func isDeadLetter(path string) bool { return broker.ParsePath(path).Sub != broker.SubNone }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
