package redistest

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Embedded is an in-process server, the one that the embedded broker uses. The
// methods of miniredis set its clock (SetTime, FastForward) and inject errors
// (SetError).
type Embedded struct{ *miniredis.Miniredis }

// StartEmbedded runs an empty in-process server for the rest of the test.
func StartEmbedded(t testing.TB) Embedded {
	t.Helper()
	return Embedded{miniredis.RunT(t)}
}

// URL is the server's redis:// address.
func (e Embedded) URL() string { return "redis://" + e.Addr() }

// Client connects to the server and closes with the test; like
// [Server.Client] it never retries.
func (e Embedded) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(clientOptions(e.Addr(), ""))
	t.Cleanup(func() { _ = c.Close() })
	return c
}
