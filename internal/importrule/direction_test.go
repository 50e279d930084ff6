package importrule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// layer says what the non-test files of a folder, and of those below it that
// have no layer of their own, may import from this module.
type layer struct {
	dir     string
	imports []string // other layers, by their folder
	reason  string
}

// layers are the directions of imports:
// cmd/runtime → {redisbroker, guest, tracing} → host → broker → standard library.
// Tests may import anything of the module.
var layers = []layer{
	{"broker", nil, "the vocabulary and the pure rules stand alone, so that everything can share them"},
	{"broker/cronspec", []string{"broker"}, "a pure rule of the broker in a package of its own"},
	{"broker/filter", []string{"broker"}, "a pure rule of the broker in a package of its own"},
	{"broker/sbxml", []string{"broker", "broker/validate"}, "a pure rule of the broker in a package of its own"},
	{"broker/validate", []string{"broker"}, "a pure rule of the broker in a package of its own"},
	{"broker/brokertest", brokerParts(), "the conformance suite must fit any broker"},
	{"broker/redisbroker", brokerParts(), "an implementation knows the broker, never who uses it"},
	{"host", []string{"broker"}, "activation and delivery know no Redis and no wasm"},
	{"host/guest", []string{"broker", "host", "host/guest/meter", "sdk"}, "a runner of plugins is given to the host; the ABI is shared with the SDK"},
	{"host/guest/meter", nil, "a rewriter of modules is pure: bytes in, bytes out"},
	{"sdk", nil, "plugins' authors get the SDK alone"},
	{"plugins", []string{"sdk"}, "a plugin sees the SDK alone"},
	{"plugins/examples/internal", []string{"broker", "host", "host/guest", "sdk"}, "what the tests of the examples share runs plugins as a host does"},
	{"tracing", []string{"broker", "host"}, "tracing watches the host; nothing watches tracing"},
	{"cmd/runtime", append(brokerParts(), "broker/redisbroker", "host", "host/guest", "host/guest/meter", "plugins", "sdk", "tracing"), "the binary wires everything that is no test helper"},
	{"internal", append(brokerParts(), "broker/redisbroker", "host", "host/guest", "host/guest/meter", "sdk", "tracing"), "test helpers know everything below the binary"},
}

// brokerParts are the broker's vocabulary and pure rules.
func brokerParts() []string {
	return []string{"broker", "broker/cronspec", "broker/filter", "broker/sbxml", "broker/validate"}
}

// testOnly are packages that no binary may contain.
var testOnly = []string{"internal", "broker/brokertest", "plugins/examples/internal"}

// layerOf is the innermost layer that holds a folder.
func layerOf(dir string) (layer, bool) {
	var best layer
	for _, l := range layers {
		if under(dir, l.dir) && len(l.dir) > len(best.dir) {
			best = l
		}
	}
	return best, best.dir != ""
}

// wrongDirections are the imports against the direction of the layers.
func wrongDirections(files []source) []string {
	var bad []string
	for _, f := range files {
		l, known := layerOf(f.dir)
		if !known {
			bad = append(bad, fmt.Sprintf("%s: folder %s has no layer: give it one in layers, with its reason", f.path, f.dir))
			continue
		}
		if f.test {
			continue
		}
		for _, imported := range f.imports() {
			target, ours := strings.CutPrefix(imported, module+"/")
			if ours && !mayImport(f.dir, target, l) {
				bad = append(bad, fmt.Sprintf("%s imports %s, which %s may not: %s", f.path, imported, l.dir, l.reason))
			}
		}
	}
	return bad
}

func mayImport(from, target string, l layer) bool {
	if slices.ContainsFunc(testOnly, func(dir string) bool { return under(target, dir) }) {
		return slices.ContainsFunc(testOnly, func(dir string) bool { return under(from, dir) })
	}
	other, _ := layerOf(target)
	return other.dir == l.dir || slices.Contains(l.imports, other.dir)
}

func TestImportsPointOneWay(t *testing.T) {
	for _, problem := range wrongDirections(tree(t)) {
		t.Error(problem)
	}
}

func TestWrongDirectionsAreFound(t *testing.T) {
	for _, tc := range []struct {
		name, path, imports string
		bad                 bool
	}{
		{"the broker imports nothing of ours", "broker/x.go", "parley/host", true},
		{"the broker imports none of its parts", "broker/x.go", "parley/broker/filter", true},
		{"a part of the broker imports the broker", "broker/filter/x.go", "parley/broker", false},
		{"the implementation imports parts of the broker", "broker/redisbroker/x.go", "parley/broker/filter", false},
		{"the implementation has folders of its own", "broker/redisbroker/x.go", "parley/broker/redisbroker/script", false},
		{"the implementation knows no host", "broker/redisbroker/x.go", "parley/host", true},
		{"the host knows no implementation", "host/x.go", "parley/broker/redisbroker", true},
		{"a test of the host may use an implementation", "host/x_test.go", "parley/broker/redisbroker", false},
		{"the host knows no guest", "host/x.go", "parley/host/guest", true},
		{"the guest uses the meter", "host/guest/x.go", "parley/host/guest/meter", false},
		{"the meter knows nobody", "host/guest/meter/x.go", "parley/broker", true},
		{"a plugin sees the SDK", "plugins/examples/echo/main.go", "parley/sdk", false},
		{"a plugin sees no host", "plugins/examples/echo/main.go", "parley/host", true},
		{"the binary holds no test helper", "cmd/runtime/x.go", "parley/internal/redistest", true},
		{"the binary holds no conformance suite", "cmd/runtime/x.go", "parley/broker/brokertest", true},
		{"nobody imports the binary", "tracing/x.go", "parley/cmd/runtime", true},
		{"a new folder needs a layer", "newfolder/x.go", "fmt", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := wrongDirections([]source{example(t, tc.path, "package p\nimport _ \""+tc.imports+"\"\n")})
			if (len(got) > 0) != tc.bad {
				t.Errorf("%s importing %s: got %q, want bad %v", tc.path, tc.imports, got, tc.bad)
			}
		})
	}
}
