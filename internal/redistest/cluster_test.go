package redistest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestClusterSpreadsKeysAndHealsAfterARestart(t *testing.T) {
	t.Parallel()
	cluster := StartCluster(t)
	opts, err := redis.ParseClusterURL(cluster.URL())
	if err != nil || !slices.Equal(opts.Addrs, cluster.Addrs()) {
		t.Fatalf("URL %s: got %v, %v, want every node", cluster.URL(), opts, err)
	}
	c := cluster.Client(t)
	for i := range 100 {
		if err := c.Set(t.Context(), "k"+strconv.Itoa(i), i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var sizes []int64
	if err := c.ForEachMaster(t.Context(), func(ctx context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, node.DBSize(ctx).Val())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(sizes) != masters || slices.Contains(sizes, 0) {
		t.Errorf("keys on each master: got %v, want some on each of %d", sizes, masters)
	}

	cluster.Nodes[1].Restart(t)
	cluster.AwaitUsable(t)
	if err := c.Set(t.Context(), "after", 1, 0).Err(); err != nil {
		t.Errorf("write after the restart of a node: %v", err)
	}
}
