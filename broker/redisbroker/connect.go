package redisbroker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// leastMajor is the oldest version of Redis that Parley works on; that of Valkey begins above it.
const leastMajor = 7

// How long Open waits while the server loads its data, unless Options says otherwise, and how often it asks.
const (
	loadingWait = time.Minute
	loadingPoll = 100 * time.Millisecond
)

// node is what a look at one server told. What it did not tell is "".
type node struct {
	addr    string
	err     error // it could not be looked at
	product string
	version string
	mode    string // standalone, cluster or sentinel
	role    string // master or replica
	lacks   Rights
	policy  string // of eviction
}

// admit waits until the server answers, and refuses one on which Parley could not work. On a Cluster each master is asked: users and
// settings are its own. One that is away is left out, with a word, as long as another answers.
func (b *Broker) admit(ctx context.Context) error {
	nodes, err := b.lookAtNodes(ctx)
	if err != nil {
		return b.unreachable(ctx, err)
	}
	var away error
	for i := range nodes {
		n := &nodes[i]
		if n.err != nil && b.cluster && infrastructure(n.err) {
			away = n.err
			continue
		}
		if n.err != nil {
			return b.unreachable(ctx, n.err)
		}
	}
	if all := len(absent(nodes)) == len(nodes); all {
		return b.unreachable(ctx, away)
	}
	for i := range nodes {
		if n := &nodes[i]; n.err == nil {
			if err := b.judge(n); err != nil {
				return err
			}
			continue
		}
		b.opt.Log("a node of the Cluster does not answer: its version, rights and eviction policy could not be checked", "node", nodes[i].addr)
	}
	return nil
}

// absent returns the nodes that could not be looked at.
func absent(nodes []node) []node {
	var out []node
	for i := range nodes {
		if nodes[i].err != nil {
			out = append(out, nodes[i])
		}
	}
	return out
}

// judge refuses a server that answers and on which Parley could not work.
func (b *Broker) judge(n *node) error {
	at := redact(b.opt.URL)
	if b.cluster {
		at = n.addr
	}
	switch {
	case n.mode == "sentinel":
		return broker.ErrUnreachable.With("the server at %s is a Sentinel: use redis-sentinel://host:port/name-of-master in the URL", at)
	case n.mode == "cluster" && !b.cluster:
		return broker.ErrInvalid.With("the server at %s is a Cluster: use redis-cluster:// in the URL", at)
	case n.role != "" && n.role != "master":
		return isReplica(at)
	}
	if major, _, _ := strings.Cut(n.version, "."); n.version != "" {
		if v, err := strconv.Atoi(major); err == nil && v < leastMajor {
			return broker.ErrInvalid.With("the server at %s is %s %s: use Redis 7 or later, or Valkey", at, n.product, n.version)
		}
	}
	if !n.lacks.empty() {
		return b.refuseRights(n.lacks, at)
	}
	switch {
	case b.opt.AllowEviction, n.policy == "noeviction", n.product == embeddedProduct:
	case n.policy == "":
		b.opt.Log("the eviction policy could not be checked: see that maxmemory-policy is noeviction, or let the user see it with +info", "server", at)
	default:
		return broker.ErrEviction.With("maxmemory-policy is %s at %s", n.policy, at)
	}
	return nil
}

// embeddedProduct is what the embedded server calls itself; it has no users, no memory limit and no INFO about them.
const embeddedProduct = "miniredis"

// lookAtNodes looks at the server, or at each master of a Cluster, in the order of their addresses.
func (b *Broker) lookAtNodes(ctx context.Context) ([]node, error) {
	load := b.patientLoading()
	cc, ok := b.rdb.(*redis.ClusterClient)
	if !ok {
		n := b.askNode(ctx, b.rdb.(*redis.Client), load)
		return []node{n}, nil
	}
	var mu sync.Mutex // guards nodes
	var nodes []node
	err := load(ctx, func() error {
		return cc.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			n := b.askNode(ctx, c, load)
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, n)
			return nil
		})
	})
	sort.Slice(nodes, func(i, j int) bool { return nodes[i].addr < nodes[j].addr })
	if err == nil && len(nodes) == 0 {
		err = errors.New("the Cluster has no master")
	}
	return nodes, err
}

// patientLoading returns what makes a call again while the server is loading its data, all calls together no longer than the wait of
// Options. It says once that it waits.
func (b *Broker) patientLoading() func(ctx context.Context, call func() error) error {
	limit := b.opt.Loading
	if limit == 0 {
		limit = loadingWait
	}
	until := time.Now().Add(limit)
	var say sync.Once
	return func(ctx context.Context, call func() error) error {
		for {
			err := call()
			if err == nil || !strings.Contains(err.Error(), "LOADING ") {
				return err
			}
			say.Do(func() {
				b.log("Redis is loading its data: waiting for it", "server", redact(b.opt.URL), "at_most", limit)
			})
			if pauseFor(ctx, loadingPoll); ctx.Err() != nil || time.Now().After(until) {
				return broker.ErrUnreachable.With("connect: Redis at %s is still loading its data after %v; try again when it has", redact(b.opt.URL), limit)
			}
		}
	}
}

func (b *Broker) log(msg string, args ...any) {
	if b.opt.Log != nil {
		b.opt.Log(msg, args...)
	}
}

// askNode asks one server what it is, and what its user may do.
func (b *Broker) askNode(ctx context.Context, c *redis.Client, load func(context.Context, func() error) error) node {
	n := node{addr: c.Options().Addr}
	var lacks, hello *redis.Cmd
	n.err = load(ctx, func() error {
		lacks = b.rightsCall(ctx, c.Options().DB)
		hello = redis.NewCmd(ctx, "hello", c.Options().Protocol)
		_, failed := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			_ = p.Process(ctx, hello)
			return p.Process(ctx, lacks)
		})
		switch err := lacks.Err(); {
		case isNil(err):
			return nil
		case err == nil && lacks.Val() == nil: // not a command was sent
			return failed
		default:
			return err
		}
	})
	n.readHello(hello)
	if n.err != nil {
		if n.mode == "sentinel" { // it knows no scripts
			n.err = nil
		}
		return n
	}
	user := c.Options().Username
	if user == "" {
		user = "default"
	}
	n.lacks, n.err = b.lacking(lacks, user)
	n.policy = evictionPolicy(ctx, c, n.takeWishes())
	return n
}

// takeWishes takes out of what the user lacks what it does not need, and returns which of that it may.
func (n *node) takeWishes() map[string]bool {
	may := map[string]bool{}
	for _, w := range wishes {
		may[w] = true
	}
	n.lacks.Commands = slices.DeleteFunc(n.lacks.Commands, func(c string) bool {
		wished := may[c]
		if wished {
			may[c] = false
		}
		return wished
	})
	return may
}

// readHello reads what the answer to HELLO tells. Some proxies do not know it.
func (n *node) readHello(cmd *redis.Cmd) {
	said := map[string]string{}
	switch v := cmd.Val().(type) {
	case map[any]any:
		for k, x := range v {
			said[fmt.Sprint(k)] = fmt.Sprint(x)
		}
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			said[fmt.Sprint(v[i])] = fmt.Sprint(v[i+1])
		}
	}
	n.product, n.version, n.mode, n.role = said["server"], said["version"], said["mode"], said["role"]
}

// evictionPolicy asks for it in the ways that the user may go. To ask without the right would leave a line in the server's ACL LOG.
func evictionPolicy(ctx context.Context, c *redis.Client, may map[string]bool) string {
	if may["info"] {
		if text, err := c.Info(ctx, "memory").Result(); err == nil {
			if p := parseInfo(text)["maxmemory_policy"]; p != "" {
				return p
			}
		}
	}
	if may["config|get"] {
		if v, err := c.ConfigGet(ctx, "maxmemory-policy").Result(); err == nil {
			return v["maxmemory-policy"]
		}
	}
	return ""
}
