package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"parley/internal/redistest"
)

// hostFaults are what may happen to the processes that handle messages.
func hostFaults() []scenario {
	return []scenario{
		{name: "nothing goes wrong", every: time.Second, fault: func(*world, int) error { return errNoFault }},
		{name: "a host is killed (kill -9)", every: 2 * time.Second, fault: func(w *world, i int) error {
			return w.hosts[i%hostCount].restart(w.t.ctx, syscall.SIGKILL)
		}},
		{name: "a host stands still past its lease (SIGSTOP 4 s)", every: 2 * time.Second, fault: func(w *world, i int) error {
			p := w.hosts[i%hostCount].cmd.Process
			return errors.Join(p.Signal(syscall.SIGSTOP), w.after(4*time.Second, func() error { return p.Signal(syscall.SIGCONT) }))
		}},
		{name: "a host is asked to stop (SIGTERM)", every: time.Second, fault: func(w *world, i int) error {
			return w.hosts[i%hostCount].restart(w.t.ctx, syscall.SIGTERM)
		}},
	}
}

// serverFaults are what may happen to the process of Redis.
func serverFaults() []scenario {
	return []scenario{
		{name: "Redis is killed and comes back", server: always, every: 4 * time.Second, fault: func(w *world, _ int) error {
			w.server.Kill(w.t)
			return w.after(time.Second/2, func() error { w.server.Restart(w.t); return nil })
		}},
		{name: "Redis loses its last writes (power loss)", server: everysec, every: 4 * time.Second, fault: losesWrites},
		{name: "Redis stands still (SIGSTOP 3 s)", every: 3 * time.Second, fault: func(w *world, _ int) error { return w.pause(3 * time.Second) }},
		{name: "Redis stands still past the lease (SIGSTOP 11 s)", lease: 10 * time.Second, every: 4 * time.Second, fault: func(w *world, _ int) error {
			return w.pause(11 * time.Second)
		}},
		{name: "Redis rewrites its append-only file", server: always, every: 500 * time.Millisecond, fault: func(w *world, _ int) error {
			_ = w.do("BGREWRITEAOF") // one may be under way
			return nil
		}},
	}
}

// refusals are what other clients of Redis may do to it.
func refusals() []scenario {
	return []scenario{
		{
			name: "Redis is busy with another script (3 s)", lease: 10 * time.Second, every: 3 * time.Second, fault: busy,
			server: []redistest.Option{redistest.Config("busy-reply-threshold 50")},
		},
		{name: "Redis refuses writes (NOREPLICAS 1 s)", every: 2 * time.Second, fault: func(w *world, _ int) error {
			return w.setting(time.Second, "min-replicas-to-write", "1", "0")
		}},
		{name: "Redis is full (2 s)", every: 3 * time.Second, fault: func(w *world, _ int) error {
			return w.setting(2*time.Second, "maxmemory", "1mb", "0")
		}},
		{name: "CLIENT PAUSE 2 s", every: 2 * time.Second, fault: func(w *world, _ int) error { return w.do("CLIENT", "PAUSE", 2000) }},
		{name: "scripts are flushed", every: 200 * time.Millisecond, fault: func(w *world, _ int) error { return w.do("SCRIPT", "FLUSH") }},
		{name: "a consumer group is destroyed", every: 3 * time.Second, fault: func(w *world, _ int) error {
			return w.do("XGROUP", "DESTROY", "{"+namespace+"/in}:s:5", "w")
		}},
		{name: "audit runs beside", every: 100 * time.Millisecond, fault: func(w *world, _ int) error {
			rep, err := w.check.Audit(w.t.ctx)
			if err == nil && len(rep.Differences) > 0 {
				err = fmt.Errorf("audit of a live queue: %+v", rep.Differences[0])
			}
			return err
		}},
	}
}

// networkFaults are what may happen on the way to Redis.
func networkFaults() []scenario {
	return []scenario{
		{name: "every connection is killed (CLIENT KILL)", every: 300 * time.Millisecond, fault: func(w *world, _ int) error {
			return errors.Join(w.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"), w.do("CLIENT", "KILL", "TYPE", "pubsub"))
		}},
		{name: "connections are cut in the middle of replies", every: 150 * time.Millisecond, fault: func(w *world, i int) error {
			if i%2 == 0 {
				w.proxy.CutReply(redistest.Nth(1+rand.IntN(5), redistest.Command("EVALSHA")))
			} else {
				w.proxy.CutReply(redistest.Nth(1+rand.IntN(5), func([]string) bool { return true }))
			}
			return nil
		}},
		{name: "requests are cut", every: 150 * time.Millisecond, fault: func(w *world, _ int) error {
			w.proxy.CutRequest(redistest.Nth(1+rand.IntN(5), func([]string) bool { return true }))
			return nil
		}},
		{name: "the network goes silent (3 s)", every: 3 * time.Second, fault: func(w *world, _ int) error {
			w.proxy.Stall()
			return w.after(3*time.Second, func() error { w.proxy.Resume(); return nil })
		}},
		{name: "the server cannot be reached (2 s)", every: 3 * time.Second, fault: func(w *world, _ int) error {
			w.proxy.Down()
			return w.after(2*time.Second, func() error { w.proxy.Up(); return nil })
		}},
	}
}

// unusualLoads have other messages or handlers than the rest.
func unusualLoads() []scenario {
	return []scenario{
		{
			name: "bodies of 200 KB", shape: shape{sessions: 20, dialogs: 10, perSecond: 100, pad: 200_000}, every: time.Second,
			fault: func(*world, int) error { return errNoFault },
		},
		{
			name: "handlers of 0 to 700 ms, a host is killed", shape: shape{sessions: 60, dialogs: 30, perSecond: 8, work: 700 * time.Millisecond}, every: 2 * time.Second,
			fault: func(w *world, i int) error { return w.hosts[i%hostCount].restart(w.t.ctx, syscall.SIGKILL) },
		},
		{
			name: "handlers of 0 to 700 ms, Redis loses its last writes", server: everysec,
			shape: shape{sessions: 60, dialogs: 30, perSecond: 8, work: 700 * time.Millisecond}, every: 4 * time.Second, fault: losesWrites,
		},
	}
}

// clusterFaults are what may happen to nodes of a Cluster.
func clusterFaults() []scenario {
	return []scenario{
		{name: "a master of a Cluster is killed and comes back", cluster: true, server: always, every: 6 * time.Second, fault: func(w *world, i int) error {
			n := w.cluster.Nodes[i%len(w.cluster.Nodes)]
			n.Kill(w.t)
			return w.after(3*time.Second, func() error { n.Restart(w.t); w.cluster.AwaitUsable(w.t); return nil })
		}},
	}
}
