package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker/redisbroker"
	"parley/internal/redistest"
)

// namespace is that of every scenario; each has a server of its own.
const namespace = "chaos"

// hostCount is how many hosts share the work.
const hostCount = 2

// world is what one scenario runs in.
type world struct {
	t       *tb
	server  *redistest.Server  // nil on a Cluster
	cluster *redistest.Cluster // nil on a single server
	proxy   *redistest.Proxy   // in front of the server: hosts and producers go through it; nil on a Cluster
	admin   *redis.Client      // straight to the server
	b       *redisbroker.Broker
	check   *redisbroker.Broker // straight to the server
	hosts   []*hostProcess
	dir     string
	lost    []byte // what of the append-only file the server lost
}

// tools are what all scenarios share.
type tools struct {
	command string // the released command
	plugin  string // ledger, compiled
	cache   string // of compiled plugins
}

const definitions = `
host: {lease: %s, drain: 10s, cache: %s}
queues:
  - {name: in}
  - {name: home}
  - {name: done}
services:
  - {name: //chaos/Ledger, queue: in, contracts: [DEFAULT]}
  - {name: //chaos/Home, queue: home, contracts: [DEFAULT]}
plugins:
  - {name: ledger, source: %s, queue: in, max_queue_readers: 8}
`

func newWorld(t *tb, s *scenario, with tools) (*world, error) {
	w := &world{t: t, dir: t.TempDir()}
	url := ""
	if s.cluster {
		w.cluster = redistest.StartCluster(t, s.server...)
		url = "redis-cluster://" + addresses(w.cluster)
	} else {
		w.server = redistest.Start(t, s.server...)
		w.proxy = redistest.NewProxy(t, w.server.Addr())
		w.admin = w.server.Client(t)
		url = w.proxy.URL()
	}
	file := filepath.Join(w.dir, "chaos.yaml")
	lease := s.lease
	if lease == 0 {
		lease = 2 * time.Second
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, definitions, lease, with.cache, with.plugin), 0o600); err != nil {
		return nil, err
	}
	for range hostCount {
		w.hosts = append(w.hosts, &hostProcess{binary: with.command, args: []string{"serve", "-f", file, "--redis", url, "--namespace", namespace}})
	}
	for _, h := range w.hosts {
		if err := h.start(t.ctx); err != nil {
			return nil, err
		}
		t.Cleanup(h.kill)
	}
	var err error
	if w.b, err = w.open(url); err != nil {
		return nil, err
	}
	if w.server != nil {
		url = w.server.URL()
	}
	w.check, err = w.open(url)
	return w, err
}

func addresses(c *redistest.Cluster) string {
	all := ""
	for i, a := range c.Addrs() {
		if i > 0 {
			all += ","
		}
		all += a
	}
	return all
}

func (w *world) open(url string) (*redisbroker.Broker, error) {
	ctx, cancel := context.WithTimeout(w.t.ctx, 10*time.Second)
	defer cancel()
	b, err := redisbroker.Open(ctx, redisbroker.Options{URL: url, Namespace: namespace, ClientName: "chaos"})
	if err == nil {
		w.t.Cleanup(func() { _ = b.Close() })
	}
	return b, err
}

// do runs one command on the server, straight.
func (w *world) do(args ...any) error { return w.admin.Do(w.t.ctx, args...).Err() }

// rest waits, or less when the run is ended.
func (w *world) rest(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.t.ctx.Done():
	}
}
