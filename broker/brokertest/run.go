package brokertest

import (
	"os"
	"slices"
	"strconv"
	"testing"
)

// test is one test of the suite.
type test struct {
	name string
	run  func(*stage)
}

// Run runs the whole suite.
func Run(t *testing.T, open New) {
	h := open(t)
	limited := limitedCases
	if h.Full == nil || h.StarvePool == nil {
		limited = nil
	}
	for _, part := range []struct {
		name  string
		tests []test
	}{
		{"Guarantees", guarantees},
		{"Holes", slices.Concat(holes, dialogHoles, wakeHoles, transmitHoles)},
		{"Rules", slices.Concat(receiveRules, sendRules, poisonRules, timerRules, lifetimeRules, contractRules, retentionRules, priorityRules,
			transmitRules, scheduleRules, clockRules, endRules, groupRules, parkRules, activationRules, externalRules, tokenRules)},
		{"Several", slices.Concat(severalRules, singleRules)},
		{"Found", found},
		{"Broken", brokenEntries},
		{"Cases", slices.Concat(cases, dialogCases, limited)},
	} {
		t.Run(part.name, func(t *testing.T) {
			for _, one := range part.tests {
				t.Run(one.name, func(t *testing.T) { one.run(newStage(t, open)) })
			}
		})
	}
	orders := orderCasesReal
	if h.Full == nil {
		orders = orderCasesEmbedded
	}
	if testing.Short() {
		orders /= 10
	}
	t.Run("TestSM_5_receive_order", func(t *testing.T) { huntOrder(t, open, orders) })
	t.Run("Random", func(t *testing.T) { Hunt(t, open, wantedSteps(t)) })
}

// RunDialogs runs the rules about dialogs alone, for one more kind of store.
func RunDialogs(t *testing.T, open New) {
	for _, one := range slices.Concat(receiveRules, sendRules, timerRules, lifetimeRules, contractRules, retentionRules, priorityRules,
		transmitRules, endRules, groupRules, parkRules, activationRules, tokenRules) {
		t.Run(one.name, func(t *testing.T) { one.run(newStage(t, open)) })
	}
}

// wantedSteps is how many random steps a run makes: 1,000, a tenth of it with -short, or what PARLEY_RANDOM_STEPS says (make random: 10,000).
func wantedSteps(t testing.TB) int {
	if v := os.Getenv("PARLEY_RANDOM_STEPS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("PARLEY_RANDOM_STEPS is %q: give a number of steps", v)
		}
		return n
	}
	if testing.Short() {
		return randomSteps / 100
	}
	return randomSteps / 10
}
