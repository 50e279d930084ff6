// Package importrule holds the tests that keep the shape of this repository:
// which package may import which, who owns each dependency, names, doc comments,
// file length, and tests that neither sleep nor skip. Each rule stands in a table
// with its reason, and each check is itself tested on source that breaks it.
package importrule
