package importrule

import (
	"fmt"
	"go/ast"
	"os"
	"slices"
	"strings"
	"testing"
)

// allowFile lists the exceptions, one a line: file, call, reason. An entry that
// nothing needs any more fails too.
const allowFile = "allowed.txt"

// forbidden are calls in tests, by their name behind the dot, with the reason.
var forbidden = map[string]string{
	"time.Sleep": "wait for a signal, or poll a condition as redistest.Eventually does",
	"Skip":       "a skipped test hides a hole: fail with the remedy",
	"Skipf":      "a skipped test hides a hole: fail with the remedy",
	"SkipNow":    "a skipped test hides a hole: fail with the remedy",
}

// excusedBy are imports that give a call another meaning in the files that have
// them.
var excusedBy = map[string]string{
	"time.Sleep": "testing/synctest",   // the clock of a bubble, which takes no time
	"Skip":       "pgregory.net/rapid", // discards one random step, not the test
	"Skipf":      "pgregory.net/rapid",
}

// call is one use of a forbidden function.
type call struct{ path, name, at string }

// forbiddenCalls looks in tests and in what only tests use.
func forbiddenCalls(files []source) []call {
	var calls []call
	for _, f := range files {
		if !f.test && !under(f.dir, "internal") && !under(f.dir, "broker/brokertest") {
			continue
		}
		ast.Inspect(f.file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			name := selector.Sel.Name
			if x, ok := selector.X.(*ast.Ident); ok && x.Name == "time" {
				name = "time." + name
			}
			_, bad := forbidden[name]
			if bad && !slices.Contains(f.imports(), excusedBy[name]) {
				calls = append(calls, call{f.path, name, f.at(selector)})
			}
			return true
		})
	}
	return calls
}

// unexcused are the calls that no entry allows, and the entries without a call.
func unexcused(calls []call, allowed string) []string {
	used, excuses := map[string]bool{}, map[string]bool{}
	var bad []string
	for line := range strings.Lines(allowed) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 3 {
			bad = append(bad, fmt.Sprintf("%s: %q needs a file, a call and a reason", allowFile, strings.TrimSpace(line)))
			continue
		}
		excuses[fields[0]+" "+fields[1]] = true
	}
	for _, c := range calls {
		key := c.path + " " + c.name
		used[key] = true
		if !excuses[key] {
			bad = append(bad, fmt.Sprintf("%s calls %s: %s", c.at, c.name, forbidden[c.name]))
		}
	}
	for key := range excuses {
		if !used[key] {
			bad = append(bad, fmt.Sprintf("%s: %s is allowed and no longer needed", allowFile, key))
		}
	}
	return bad
}

func TestTestsNeitherSleepNorSkip(t *testing.T) {
	allowed, err := os.ReadFile(allowFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range unexcused(forbiddenCalls(tree(t)), string(allowed)) {
		t.Error(problem)
	}
}

func TestSleepsAndSkipsAreFound(t *testing.T) {
	const text = "package p\nfunc f() { time.Sleep(1) }\n"
	for _, tc := range []struct {
		name, path, text, allowed string
		want                      int
	}{
		{"a sleep in a test", "host/x_test.go", text, "", 1},
		{"a sleep in a test helper", "internal/x.go", text, "", 1},
		{"a sleep in product code is not this rule's", "host/x.go", text, "", 0},
		{"a skip", "host/x_test.go", "package p\nfunc f() { t.Skipf(\"\") }\n", "", 1},
		{"a sleep by a bubble's clock", "host/x_test.go", "package p\nimport \"testing/synctest\"\nfunc f() { time.Sleep(1) }\n", "", 0},
		{"a random step discarded", "host/x_test.go", "package p\nimport \"pgregory.net/rapid\"\nfunc f() { t.Skip() }\n", "", 0},
		{"a test ended in a file of random tests", "host/x_test.go", "package p\nimport \"pgregory.net/rapid\"\nfunc f() { t.SkipNow() }\n", "", 1},
		{"an allowed sleep", "host/x_test.go", text, "host/x_test.go time.Sleep the peer polls\n", 0},
		{"an allowance without a reason", "host/x_test.go", text, "host/x_test.go time.Sleep\n", 2},
		{"an allowance for nothing", "host/x_test.go", "package p\n", "# why\nhost/x_test.go time.Sleep it did\n", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls := forbiddenCalls([]source{example(t, tc.path, tc.text)})
			if got := unexcused(calls, tc.allowed); len(got) != tc.want {
				t.Errorf("got %q, want %d", got, tc.want)
			}
		})
	}
}
