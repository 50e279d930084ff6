package redistest

import (
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

var namespaces atomic.Uint64

// Namespace is a name that no other test of this binary uses: the test's name in
// lower case, cut to 40 characters, and a number. It has letters, digits and
// hyphens only.
func Namespace(t testing.TB) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + ('a' - 'A')
		default:
			return '-'
		}
	}, t.Name())
	if len(name) > 40 {
		name = name[:40]
	}
	return name + "-" + strconv.FormatUint(namespaces.Add(1), 10)
}
