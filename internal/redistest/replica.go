package redistest

import (
	"fmt"
	"strings"
	"testing"
)

// StartReplica runs a server that follows s for the rest of the test, and returns when it has all that s holds.
func (s *Server) StartReplica(t testing.TB, opts ...Option) *Server {
	t.Helper()
	r := Start(t, append([]Option{Config(fmt.Sprintf("replicaof 127.0.0.1 %d", s.port))}, opts...)...)
	r.AwaitReplica(t)
	return r
}

// AwaitReplica waits until a server that follows another is connected to it.
func (s *Server) AwaitReplica(t testing.TB) {
	t.Helper()
	c := s.Client(t)
	Eventually(t, "a replica at "+s.Addr(), func() bool {
		info, err := c.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})
}
