package guest

import (
	"os"
	"testing"

	"parley/host"
)

// deterministic makes attempts of fresh deterministic instances at one body.
func deterministic(t *testing.T, wasm []byte, body string) func() host.Result {
	p := load(t, wasm, Options{Instances: PerAttempt, Deterministic: true})
	return func() host.Result {
		inv := invocation(plain(body))
		inv.Now = dialogInvocation().Now
		return p.Run(t.Context(), inv)
	}
}

// TestFuelIsDeterministic: fresh deterministic instances use the same fuel for the same input, in every language.
func TestFuelIsDeterministic(t *testing.T) {
	text, err := os.ReadFile(payload)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		wasm []byte
		body string
	}{
		{"C", benchGuest(t, "c"), string(text)},
		{"Zig", benchGuest(t, "zig"), string(text)},
		{"AssemblyScript", benchGuest(t, "as"), string(text)},
		{"Go", benchGuest(t, "go"), string(text)},
		{"Go, github-triage", goGuest(t, triage), string(text)},
		{"text form", wat(t, "trouble"), "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			attempt := deterministic(t, c.wasm, c.body)
			first := attempt()
			wantCommit(t, first)
			if first.Fuel == 0 {
				t.Error("no fuel was counted")
			}
			for range 4 {
				if r := attempt(); r.Fuel != first.Fuel {
					t.Errorf("%d units, then %d", first.Fuel, r.Fuel)
				}
			}
			// Another load, with another pool, cache and memory, counts the same.
			if r := deterministic(t, c.wasm, c.body)(); r.Fuel != first.Fuel {
				t.Errorf("%d units, %d after loading again", first.Fuel, r.Fuel)
			}
		})
	}
}

// TestFuelOfReusedInstances: guests without a runtime of their own use the same fuel when an instance is used again. Go
// guests do not, which docs/metering.md says.
func TestFuelOfReusedInstances(t *testing.T) {
	text, err := os.ReadFile(payload)
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range []string{"c", "zig", "as"} {
		p := load(t, benchGuest(t, language), Options{})
		first := attemptOf(t, p, string(text))
		wantCommit(t, first)
		for range 4 {
			if r := attemptOf(t, p, string(text)); r.Fuel != first.Fuel {
				t.Errorf("%s: %d units, then %d", language, first.Fuel, r.Fuel)
			}
		}
	}
}
