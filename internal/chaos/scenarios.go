package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"parley/internal/redistest"
)

// scenario is one kind of fault under load.
type scenario struct {
	name    string
	server  []redistest.Option
	cluster bool
	lease   time.Duration // 0: 2 s
	shape   shape         // zero: normal
	every   time.Duration // between the end of one fault and the next
	fault   func(w *world, i int) error
}

var always = []redistest.Option{redistest.Persistent()}

// everysec is an append-only file that is written once a second, as most servers have it.
var everysec = []redistest.Option{redistest.Config("appendonly yes"), redistest.Config("appendfsync everysec")}

func scenarios() []scenario {
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
		{name: "every connection is killed (CLIENT KILL)", every: 300 * time.Millisecond, fault: func(w *world, _ int) error {
			return errors.Join(w.do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"), w.do("CLIENT", "KILL", "TYPE", "pubsub"))
		}},
		{name: "CLIENT PAUSE 2 s", every: 2 * time.Second, fault: func(w *world, _ int) error { return w.do("CLIENT", "PAUSE", 2000) }},
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
		{name: "a master of a Cluster is killed and comes back", cluster: true, server: always, every: 6 * time.Second, fault: func(w *world, i int) error {
			n := w.cluster.Nodes[i%len(w.cluster.Nodes)]
			n.Kill(w.t)
			return w.after(3*time.Second, func() error { n.Restart(w.t); w.cluster.AwaitUsable(w.t); return nil })
		}},
	}
}

// errNoFault says that a scenario has none: it only waits.
var errNoFault = errors.New("no fault")

// after waits and then undoes a fault, even when the run is ended meanwhile.
func (w *world) after(d time.Duration, undo func() error) error {
	w.rest(d)
	return undo()
}

func (w *world) pause(d time.Duration) error {
	w.server.Pause(w.t)
	return w.after(d, func() error { w.server.Resume(w.t); return nil })
}

// setting changes a setting of the server for a while.
func (w *world) setting(d time.Duration, name, to, back string) error {
	if err := w.do("CONFIG", "SET", name, to); err != nil {
		return err
	}
	return w.after(d, func() error { return w.do("CONFIG", "SET", name, back) })
}

// busy keeps the server in a script of somebody else, which is killed after three seconds.
func busy(w *world, _ int) error {
	ended := make(chan error, 1)
	other := w.server.Client(w.t)
	go func() { ended <- other.Do(w.t.ctx, "EVAL", "while true do end", 0).Err() }()
	return w.after(3*time.Second, func() error {
		for range 100 {
			if w.do("SCRIPT", "KILL") == nil {
				break
			}
			w.rest(20 * time.Millisecond)
		}
		<-ended // it was killed, or the client gave up
		return nil
	})
}

// losesWrites kills the server and brings it back without what it wrote since a moment ago.
func losesWrites(w *world, _ int) error {
	kept, err := w.appended()
	if err != nil {
		return err
	}
	w.rest(time.Duration(rand.IntN(700)) * time.Millisecond)
	w.server.Kill(w.t)
	name, err := w.appendFile()
	if err != nil {
		return err
	}
	all, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if int64(len(all)) > kept {
		w.lost = append(w.lost, all[kept:]...)
		if err := os.Truncate(name, kept); err != nil {
			return err
		}
	}
	w.server.Restart(w.t)
	return nil
}

// appendFile is the part of the append-only file that grows.
func (w *world) appendFile() (string, error) {
	list, err := filepath.Glob(filepath.Join(w.server.Dir(), "appendonlydir", "*.incr.aof"))
	if err != nil || len(list) != 1 {
		return "", fmt.Errorf("append-only files: %v, %v", list, err)
	}
	return list[0], nil
}

func (w *world) appended() (int64, error) {
	name, err := w.appendFile()
	if err != nil {
		return 0, err
	}
	s, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return s.Size(), nil
}
