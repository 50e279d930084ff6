package redistest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Succeed makes a replica the master, with all that its master did in the last lag unknown to it. With cluster it takes over its
// master's slots, else it only stops following.
func (s *Server) Succeed(t testing.TB, lag time.Duration, cluster bool) {
	t.Helper()
	promote := []any{"REPLICAOF", "NO", "ONE"}
	if cluster {
		promote = []any{"CLUSTER", "FAILOVER", "TAKEOVER"}
	}
	// The second command of a pipeline runs before anything else is read: what came in while the first one slept is never applied.
	pipe := s.Client(t).Pipeline()
	pipe.Do(t.Context(), "DEBUG", "SLEEP", fmt.Sprintf("%.3f", lag.Seconds()))
	pipe.Do(t.Context(), promote...)
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatalf("redistest: failover: %v", err)
	}
}

// History is what a [Persistent] server has written down: for a test that asks whether something was ever there.
func (s *Server) History(t testing.TB) History {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.aof"))
	if err != nil || len(files) == 0 {
		t.Fatalf("redistest: the server is not persistent: %v", err)
	}
	var h History
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatalf("redistest: %v", err)
		}
		h = append(h, text...)
	}
	return h
}

// History is the text of a server's append-only files.
type History []byte

// Has reports whether text was ever written.
func (h History) Has(text string) bool { return bytes.Contains(h, []byte(text)) }

// AddReplica runs a node that follows node i for the rest of the test, and returns when it does.
func (c *Cluster) AddReplica(t testing.TB, i int, opts ...Option) *Server {
	t.Helper()
	bus, err := freePort()
	if err != nil {
		t.Fatalf("redistest: bus port: %v", err)
	}
	r := Start(t, append([]Option{
		Config("cluster-enabled yes"), Config(fmt.Sprintf("cluster-port %d", bus)), Config("cluster-node-timeout 2000"),
		Config("cluster-replica-no-failover yes"),
	}, opts...)...)
	client, ctx := r.Client(t), t.Context()
	master, err := c.Nodes[i].Client(t).Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	first := 0
	for _, line := range c.Nodes[0].opts.lines {
		_, _ = fmt.Sscanf(line, "cluster-port %d", &first)
	}
	if err := client.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", c.Nodes[0].port, first).Err(); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	Eventually(t, "the replica knows its master", func() bool {
		return client.Do(ctx, "CLUSTER", "REPLICATE", master).Err() == nil
	})
	r.AwaitReplica(t)
	for _, n := range c.Nodes { // so that all will believe a takeover
		other := n.Client(t)
		Eventually(t, "all know the replica", func() bool {
			nodes, err := other.Do(ctx, "CLUSTER", "NODES").Text()
			return err == nil && strings.Contains(nodes, r.Addr())
		})
	}
	return r
}
