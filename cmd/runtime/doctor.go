package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/broker"
	"parley/broker/redisbroker"
)

func (a *app) doctorCommand() *cobra.Command {
	var acl bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether a Redis is fit: version, eviction, rights, persistence, cluster, clock, latency",
		Long: `Check whether a Redis is fit: version, eviction, rights of the user, persistence, cluster, clock, latency. On a Cluster
each master is asked for what it has of its own. Nothing is changed.

With --acl nothing is checked, and Redis is not needed: it prints the ACL SETUSER that gives the user of the address what Parley
needs for the namespace and nothing beyond. Its password is for you to add (>password, or a hash).

The exit code is 0 if nothing is an error (warnings are none), 2 if a setting must be changed.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt, err := a.connectOptions("", "")
			if err != nil {
				return err
			}
			at := redisbroker.Options{URL: opt.url, Namespace: opt.namespace, Log: a.warn}
			if acl {
				return a.printRights(cmd, at)
			}
			info, err := redisbroker.Inspect(cmd.Context(), at)
			if err != nil {
				return err
			}
			findings := diagnose(&info, opt.allowEviction)
			p := a.rows(cmd, "CHECK", "LEVEL", "VALUE", "ADVICE")
			var bad []string
			for _, f := range findings {
				p.row(f, f.Check, f.Level, f.Value, f.Advice)
				if f.Level == levelError {
					bad = append(bad, f.Check+" is "+f.Value+": "+f.Advice)
				}
			}
			if err := p.end(""); err != nil || len(bad) == 0 {
				return err
			}
			return broker.ErrInvalid.With("%s is not fit: %s", info.URL, strings.Join(bad, "; "))
		},
	}
	cmd.Flags().BoolVar(&acl, "acl", false, "print the ACL SETUSER with the least rights that Parley needs")
	return cmd
}

// printRights prints what a user needs, as a command for redis-cli.
func (a *app) printRights(cmd *cobra.Command, opt redisbroker.Options) error {
	r, err := redisbroker.LeastRights(opt)
	if err != nil {
		return err
	}
	if a.global.output == "json" {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(rightsJSON{r.User, r.Line(), r.Commands, r.Keys, r.Channels, redisbroker.Wishes()})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n# so that the eviction policy can be checked, and doctor sees more, add: +%s\n", r.Line(),
		strings.Join(redisbroker.Wishes(), " +"))
	return err
}

// rightsJSON is doctor --acl.
type rightsJSON struct {
	User     string   `json:"user"`
	Line     string   `json:"line"`
	Commands []string `json:"commands"`
	Keys     []string `json:"keys"`
	Channels []string `json:"channels"`
	Advised  []string `json:"advised"`
}

// Levels of a finding.
const (
	levelOK      = "ok"
	levelWarning = "warning"
	levelError   = "error"
)

// What doctor compares with.
const (
	leastMajor     = 7
	greatestSkew   = time.Second
	slowLatency    = 2 * time.Millisecond
	slowestLatency = 50 * time.Millisecond
	streamNodeMax  = 4 << 10 // the default; at 16 times it, plain delivery was measured 30 % slower
	fullShare      = 0.8
)

// diagnose judges what was found. It is pure.
func diagnose(s *redisbroker.ServerInfo, allowEviction bool) []findingJSON {
	return []findingJSON{
		versionFinding(s), evictionFinding(s, allowEviction), rightsFinding(s), memoryFinding(s), persistenceFinding(s), diskFinding(s),
		clusterFinding(s), roleFinding(s), clockFinding(s), latencyFinding(s), streamFinding(s),
	}
}

func versionFinding(s *redisbroker.ServerInfo) findingJSON {
	f := findingJSON{"version", levelOK, s.Product + " " + s.Version, ""}
	major, _, _ := strings.Cut(s.Version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < leastMajor {
		f.Level, f.Advice = levelError, "use Redis 7 or later, or Valkey"
	}
	for _, node := range s.Nodes {
		major, _, _ := strings.Cut(node.Version, ".")
		if n, err := strconv.Atoi(major); f.Level == levelOK && err == nil && n < leastMajor {
			f.Value, f.Level, f.Advice = node.Version+" at "+node.Addr, levelError, "use Redis 7 or later, or Valkey, on every node"
		}
	}
	return f
}

// rightsFinding names what the user may not do, on the first node where it lacks something.
func rightsFinding(s *redisbroker.ServerInfo) findingJSON {
	for _, n := range s.Nodes {
		if lacks := n.Lacks.String(); lacks != "" {
			return findingJSON{"rights", levelError, "user " + n.Lacks.User + " lacks " + lacks + " at " + n.Addr, "add: " + n.Lacks.Line()}
		}
	}
	return findingJSON{"rights", levelOK, "all that Parley needs", ""}
}

func evictionFinding(s *redisbroker.ServerInfo, allowed bool) findingJSON {
	policy := s.EvictionPolicy
	f := findingJSON{"eviction", levelOK, policy, ""}
	for _, n := range s.Nodes { // the worst of all
		if len(s.Nodes) > 1 && n.EvictionPolicy != "noeviction" && (policy == "noeviction" || policy == "") {
			policy = n.EvictionPolicy
			f.Value = policy + " at " + n.Addr
		}
	}
	switch {
	case policy == "":
		f.Value, f.Level, f.Advice = "unknown", levelWarning, "it could not be checked: make sure that maxmemory-policy is noeviction, or let the user see it (+info)"
	case policy != "noeviction" && allowed:
		f.Level, f.Advice = levelWarning, "messages may be lost; allowed by --allow-eviction"
	case policy != "noeviction":
		f.Level, f.Advice = levelError, "Redis may throw messages away: set maxmemory-policy noeviction"
	}
	return f
}

func memoryFinding(s *redisbroker.ServerInfo) findingJSON {
	f := findingJSON{"memory", levelOK, fmt.Sprintf("%d MiB used, limit %d MiB", s.UsedMemory>>20, s.MaxMemory>>20), ""}
	switch {
	case s.MaxMemory < 0:
		f.Value, f.Level, f.Advice = "unknown", levelWarning, "it could not be checked: let the user see it (+info)"
	case s.MaxMemory == 0:
		f.Value, f.Level = fmt.Sprintf("%d MiB used, no limit", s.UsedMemory>>20), levelWarning
		f.Advice = "set maxmemory below what the machine has: a full Redis refuses messages, a full machine kills Redis"
	case float64(s.UsedMemory) > fullShare*float64(s.MaxMemory):
		f.Level, f.Advice = levelWarning, "Redis is nearly full: raise maxmemory, or drain queues and dead letters"
	}
	return f
}

func persistenceFinding(s *redisbroker.ServerInfo) findingJSON {
	f := findingJSON{"persistence", levelOK, "append-only file, appendfsync " + s.AppendSync, ""}
	switch {
	case s.AppendOnly == "":
		f.Value, f.Level, f.Advice = "unknown", levelWarning, "it could not be checked: let the user see it (+info +config|get)"
	case s.AppendOnly != "yes":
		f.Value, f.Level = "no append-only file", levelWarning
		f.Advice = "accepted messages are lost when Redis ends: set appendonly yes"
		if s.Snapshots != "" {
			f.Value = "snapshots only (" + s.Snapshots + ")"
		}
	case s.AppendSync == "no":
		f.Level, f.Advice = levelWarning, "half a minute of messages may be lost with the machine: set appendfsync everysec or always"
	}
	return f
}

func diskFinding(s *redisbroker.ServerInfo) findingJSON {
	if s.LastWriteFailed {
		return findingJSON{"disk", levelError, "the last write to disk failed", "look at the disk and the log of Redis: it may refuse writes"}
	}
	return findingJSON{"disk", levelOK, "the last write to disk succeeded", ""}
}

func clusterFinding(s *redisbroker.ServerInfo) findingJSON {
	f := findingJSON{"cluster", levelOK, s.Mode, ""}
	if s.Mode != "cluster" {
		return f
	}
	f.Value = "cluster, state " + firstOf(s.ClusterState, "unknown")
	if s.ClusterState != "ok" {
		f.Level, f.Advice = levelError, "the cluster does not serve all slots: look at CLUSTER INFO"
	}
	if !strings.HasPrefix(s.URL, "redis-cluster://") {
		f.Level, f.Advice = levelError, "write the address redis-cluster://host:port"
	}
	return f
}

func roleFinding(s *redisbroker.ServerInfo) findingJSON {
	if s.Role != "" && s.Role != "master" {
		return findingJSON{"role", levelError, "replica", "a replica cannot be written to: connect to its master, or through Sentinel"}
	}
	return findingJSON{"role", levelOK, firstOf(s.Role, "unknown"), ""}
}

func clockFinding(s *redisbroker.ServerInfo) findingJSON {
	f := findingJSON{"clock", levelOK, fmt.Sprintf("%+d ms from this machine's", s.Skew.Milliseconds()), ""}
	if s.Skew.Abs() > greatestSkew {
		f.Level, f.Advice = levelWarning, "times in logs and traces of this machine do not match the clock of Redis, by which messages, timers, schedules and locks go: set the clocks"
	}
	return f
}

func latencyFinding(s *redisbroker.ServerInfo) findingJSON {
	f := findingJSON{"latency", levelOK, fmt.Sprintf("%v median, %v at most", s.Latency.Round(time.Microsecond), s.Slowest.Round(time.Microsecond)), ""}
	if s.Latency > slowLatency || s.Slowest > slowestLatency {
		f.Level, f.Advice = levelWarning, "put host and Redis closer together, and look for slow commands of others with SLOWLOG GET"
	}
	return f
}

func streamFinding(s *redisbroker.ServerInfo) findingJSON {
	f := findingJSON{"stream nodes", levelOK, fmt.Sprintf("stream-node-max-bytes %d", s.StreamNodeBytes), ""}
	switch {
	case s.StreamNodeBytes < 0:
		f.Value = "unknown"
	case s.StreamNodeBytes == 0 || s.StreamNodeBytes > streamNodeMax:
		f.Level, f.Advice = levelWarning, "large nodes make every delivery slower: set stream-node-max-bytes 4096"
	}
	return f
}
