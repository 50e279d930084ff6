package brokertest

import (
	"slices"
	"testing"
)

// test is one test of the suite.
type test struct {
	name string
	run  func(*stage)
}

// Run runs the whole suite.
func Run(t *testing.T, open New) {
	for _, part := range []struct {
		name  string
		tests []test
	}{
		{"Holes", slices.Concat(holes, dialogHoles, wakeHoles, transmitHoles)},
	} {
		t.Run(part.name, func(t *testing.T) {
			for _, one := range part.tests {
				t.Run(one.name, func(t *testing.T) { one.run(newStage(t, open)) })
			}
		})
	}
}
