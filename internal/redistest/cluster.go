package redistest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// masters is the smallest cluster that Redis calls one.
const masters = 3

// slots is the number of hash slots of a Redis Cluster.
const slots = 16384

// Cluster is a Redis Cluster of three masters without replicas on loopback. Its
// nodes can be killed, paused and restarted one by one.
type Cluster struct{ Nodes []*Server }

// StartCluster runs a cluster for the rest of the test and returns when every
// node says that it is usable.
func StartCluster(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	c := &Cluster{}
	for range masters {
		bus, err := freePort()
		if err != nil {
			t.Fatalf("redistest: bus port: %v", err)
		}
		c.Nodes = append(c.Nodes, Start(t, append([]Option{
			Config("cluster-enabled yes"),
			Config(fmt.Sprintf("cluster-port %d", bus)),
			Config("cluster-node-timeout 2000"),
		}, opts...)...))
	}
	for i, node := range c.Nodes {
		if err := c.join(t.Context(), node.Client(t), i); err != nil {
			t.Fatalf("redistest: cluster node %d: %v", i, err)
		}
	}
	c.AwaitUsable(t)
	return c
}

// join gives node i its share of the slots and introduces it to the first one.
func (c *Cluster) join(ctx context.Context, node *redis.Client, i int) error {
	// Without an epoch of their own the nodes would settle it among themselves,
	// one gossip round after the other.
	if err := node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
		return err
	}
	first, last := i*slots/masters, (i+1)*slots/masters-1
	if err := node.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", first, last).Err(); err != nil {
		return err
	}
	if i == 0 {
		return nil
	}
	bus := 0
	for _, line := range c.Nodes[0].opts.lines {
		_, _ = fmt.Sscanf(line, "cluster-port %d", &bus)
	}
	return node.Do(ctx, "CLUSTER", "MEET", "127.0.0.1", c.Nodes[0].port, bus).Err()
}

// AwaitUsable waits until every node calls the cluster usable and knows all
// slots. A new cluster, and one whose node restarted, is not at once.
func (c *Cluster) AwaitUsable(t testing.TB) {
	t.Helper()
	for _, node := range c.Nodes {
		client := node.Client(t)
		Eventually(t, "cluster_state:ok on "+node.Addr(), func() bool {
			info, err := client.ClusterInfo(t.Context()).Result()
			return err == nil &&
				strings.Contains(info, "cluster_state:ok") &&
				strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d", slots)) &&
				strings.Contains(info, fmt.Sprintf("cluster_size:%d", masters))
		})
	}
}

// Addrs are the nodes' addresses.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr()
	}
	return addrs
}

// URL names every node, in the form that redis.ParseClusterURL reads.
func (c *Cluster) URL() string {
	return c.Nodes[0].URL() + "?addr=" + strings.Join(c.Addrs()[1:], "&addr=")
}

// Client connects to the cluster and closes with the test. It follows
// redirections, as every cluster client must, and retries nothing else.
func (c *Cluster) Client(t testing.TB) *redis.ClusterClient {
	t.Helper()
	one := clientOptions("", c.Nodes[0].opts.password)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                    c.Addrs(),
		Password:                 one.Password,
		MaxRetries:               one.MaxRetries,
		DialerRetries:            one.DialerRetries,
		ContextTimeoutEnabled:    one.ContextTimeoutEnabled,
		MaintNotificationsConfig: one.MaintNotificationsConfig,
	})
	t.Cleanup(func() { _ = client.Close() })
	return client
}
