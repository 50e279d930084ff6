package importrule

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// timeOfDay are the files that may read this host's clock, in the folders where the broker's clock alone decides what is due, and what
// each reads it for. What only measures how long something takes reads the monotonic clock, which nobody sets; what is shown decides
// nothing.
var timeOfDay = map[string]string{
	"broker/redisbroker/answer.go":    "how long an answer may take",
	"broker/redisbroker/connect.go":   "how long a call may wait",
	"broker/redisbroker/clock.go":     "how long ago the server's clock was seen",
	"broker/redisbroker/dialog.go":    "how long a call may wait",
	"broker/redisbroker/directory.go": "how old what is known of the directory is",
	"broker/redisbroker/failure.go":   "how long a call may wait",
	"broker/redisbroker/giveback.go":  "how long something is tried again",
	"broker/redisbroker/inspect.go":   "how long a round trip takes, and how far apart the clocks are, to be shown",
	"broker/redisbroker/durable.go":   "how often something is said",
	"broker/redisbroker/keepqueue.go": "how long a queue rests that could not be kept",
	"broker/redisbroker/receive.go":   "how long a call may wait",
	"broker/redisbroker/sender.go":    "how long a call without an answer is repeated",
	"cmd/runtime/monitor.go":          "how old what is shown is",
	"cmd/runtime/publish.go":          "how often monitors are published",
	"host/attempt.go":                 "when an attempt began, for its span",
	"host/clock.go":                   "how long ago the broker's clock was seen",
	"host/delivery.go":                "how long calls take, and since when nothing was heard",
	"host/keeper.go":                  "pauses between passes",
	"host/monitor.go":                 "pauses",
	"host/quiet.go":                   "lines a second",
	"host/reader.go":                  "how long a reader lives",
	"host/recess.go":                  "pauses",
	"host/slots.go":                   "how long attempts take",
	"host/sweep.go":                   "pauses",
	"host/trim.go":                    "since when an instance is idle",
}

// clocked are the folders that the rule is about.
var clocked = []string{"broker/redisbroker", "broker/cronspec", "host", "cmd/runtime"}

// wrongClocks are the files that look at this host's clock and are not known to, or are and do not.
func wrongClocks(files []source) []string {
	var bad []string
	for _, f := range files {
		_, known := timeOfDay[f.path]
		if f.test || known || !slices.Contains(clocked, f.dir) {
			continue
		}
		ast.Inspect(f.file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Now", "Since", "Until"}, s.Sel.Name) {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" {
					bad = append(bad, f.at(n)+" looks at this host's clock: nothing may be due by it. Ask the broker's, or say in timeOfDay what it is for")
				}
			}
			return true
		})
	}
	return bad
}

func TestNothingIsDueByTheHostsClock(t *testing.T) {
	for _, problem := range wrongClocks(tree(t)) {
		t.Error(problem)
	}
}

func TestWrongClocksAreFound(t *testing.T) {
	text := "package p\nimport \"time\"\nvar x = time.Now()\n"
	for path, bad := range map[string]bool{"host/x.go": true, "broker/redisbroker/x.go": true, "host/x_test.go": false, "tracing/x.go": false} {
		got := wrongClocks([]source{example(t, path, text)})
		if (len(got) > 0) != bad || bad && !strings.Contains(got[0], path) {
			t.Errorf("%s: got %q, want bad %v", path, got, bad)
		}
	}
}
