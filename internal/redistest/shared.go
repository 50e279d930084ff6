package redistest

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// shared is the test binary's own server; started by the first test that asks.
var shared struct {
	mu     sync.Mutex // guards the fields below
	server *Server
	err    error
}

// Shared is the one private server of this test binary. It outlives the test:
// use keys under a [Namespace], and [Start] for anything that flushes, kills or
// reconfigures. It keeps nothing on disk.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = startShared()
	}
	if shared.err != nil {
		t.Fatalf("redistest: %v", shared.err)
	}
	if !shared.server.alive() {
		t.Fatalf("redistest: an earlier test ended the shared redis-server:\n%s", shared.server.Log())
	}
	return shared.server
}

// startShared gives the server a folder that is already gone from the file
// system when it runs, so that a killed test process leaves nothing behind.
func startShared() (*Server, error) {
	dir, err := os.MkdirTemp("", "parley-redis-")
	if err != nil {
		return nil, fmt.Errorf("folder for redis-server: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return newServer(dir, nil)
}

// Main runs the tests of a package and then ends the shared server by its
// process id. Use it as the body of TestMain; on Linux it may be left out, since
// the kernel ends the server with the test process.
func Main(m *testing.M) {
	code := m.Run()
	shared.mu.Lock()
	if shared.server != nil {
		shared.server.stop()
	}
	shared.mu.Unlock()
	os.Exit(code)
}
