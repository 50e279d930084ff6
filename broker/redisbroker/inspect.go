package redisbroker

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ServerInfo is what a look at a server found. A field that the server does not tell (a managed one may refuse CONFIG) is
// "" or −1.
type ServerInfo struct {
	URL               string // without credentials
	Product           string // redis or valkey
	Version           string
	Mode              string // standalone, cluster or sentinel
	Role              string // master or slave
	ClusterState      string // ok or fail; "" when it is no cluster
	EvictionPolicy    string
	MaxMemory         int64 // bytes; 0: no limit
	UsedMemory        int64 // bytes
	AppendOnly        string
	AppendSync        string
	Snapshots         string // the save rule; "" when off or unknown
	LastWriteFailed   bool   // the last append or snapshot to disk failed
	StreamNodeBytes   int64
	StreamNodeEntries int64
	Skew              time.Duration // the server's clock minus ours, less half a round trip
	Latency           time.Duration // of a PING, median
	Slowest           time.Duration // of the same PINGs
	Nodes             []NodeInfo    // the server, or each master of a Cluster that answers
}

// NodeInfo is what each master of a Cluster has of its own.
type NodeInfo struct {
	Addr           string
	Version        string
	EvictionPolicy string // "" when it does not tell
	Lacks          Rights // what the user needs and may not do
}

// pings is how many round trips the latency is taken from.
const pings = 50

// Inspect looks at the server of opt.URL and changes nothing. Unlike Open it accepts a server that Open would refuse, so
// that it can say what is wrong with it. Errors: broker.ErrUnreachable, broker.ErrInvalid for the URL.
func Inspect(ctx context.Context, opt Options) (ServerInfo, error) {
	info := ServerInfo{URL: redact(opt.URL)}
	u, cluster, err := parseURL(opt.URL)
	if err != nil {
		return info, err
	}
	var c conns
	rdb := c.newClient(u, cluster)
	defer func() { _ = rdb.Close() }()
	b := &Broker{opt: opt, ns: opt.Namespace, rdb: rdb, cluster: cluster}
	fault := b.fault
	nodes, err := b.lookAtNodes(ctx)
	if err == nil && len(absent(nodes)) == len(nodes) {
		err = nodes[0].err
	}
	if err != nil {
		return info, b.unreachable(ctx, err)
	}
	info.readNodes(nodes)
	if text, err := rdb.Info(ctx).Result(); err == nil { // else it does not tell
		info.readInfo(parseInfo(text))
	}
	info.readConfig(ctx, rdb)
	if info.Mode == "cluster" {
		if c, err := rdb.ClusterInfo(ctx).Result(); err == nil {
			info.ClusterState = parseInfo(c)["cluster_state"]
		}
	}
	if err := info.measure(ctx, rdb); err != nil {
		return info, fault("measure", err)
	}
	return info, nil
}

// readNodes takes over what a look at each node told; the worst of them stands for all.
func (s *ServerInfo) readNodes(nodes []node) {
	s.MaxMemory, s.UsedMemory = -1, -1
	for _, n := range nodes {
		if n.err != nil {
			continue
		}
		if s.Mode == "" {
			s.Product, s.Version, s.Mode, s.Role = n.product, n.version, n.mode, n.role
		}
		s.Nodes = append(s.Nodes, NodeInfo{n.addr, n.version, n.policy, n.lacks})
	}
}

// parseInfo reads the lines key:value that INFO and CLUSTER INFO answer with.
func parseInfo(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[k] = v
		}
	}
	return m
}

func (s *ServerInfo) readInfo(m map[string]string) {
	s.Product, s.Version = "redis", m["redis_version"]
	if v := m["valkey_version"]; v != "" {
		s.Product, s.Version = "valkey", v
	}
	s.Mode = m["redis_mode"]
	if s.Mode == "" {
		s.Mode = m["server_mode"]
	}
	s.Role = m["role"]
	s.EvictionPolicy = m["maxmemory_policy"]
	s.MaxMemory, s.UsedMemory = number(m["maxmemory"]), number(m["used_memory"])
	s.AppendOnly = map[string]string{"1": "yes", "0": "no"}[m["aof_enabled"]]
	s.LastWriteFailed = m["aof_last_write_status"] == "err" || m["rdb_last_bgsave_status"] == "err"
}

func (s *ServerInfo) readConfig(ctx context.Context, rdb redis.UniversalClient) {
	get := func(name string) string {
		v, err := rdb.ConfigGet(ctx, name).Result()
		if err != nil {
			return ""
		}
		return v[name]
	}
	s.AppendSync, s.Snapshots = get("appendfsync"), get("save")
	s.StreamNodeBytes, s.StreamNodeEntries = number(get("stream-node-max-bytes")), number(get("stream-node-max-entries"))
	if p := get("maxmemory-policy"); p != "" {
		s.EvictionPolicy = p
	}
}

// measure takes the clock and the latency. The clock is read in the quickest of a few tries, which bounds its error best.
func (s *ServerInfo) measure(ctx context.Context, rdb redis.UniversalClient) error {
	quickest := time.Duration(1<<63 - 1)
	for range 5 {
		start := time.Now()
		at, err := rdb.Time(ctx).Result()
		trip := time.Since(start)
		if err != nil {
			return err
		}
		if trip < quickest {
			quickest, s.Skew = trip, at.Sub(start.Add(trip/2))
		}
	}
	trips := make([]time.Duration, pings)
	for i := range trips {
		start := time.Now()
		if err := rdb.Ping(ctx).Err(); err != nil {
			return err
		}
		trips[i] = time.Since(start)
	}
	slices.Sort(trips)
	s.Latency, s.Slowest = trips[len(trips)/2], trips[len(trips)-1]
	return nil
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
