package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// scenarios returns all of them, kind by kind.
func scenarios() []scenario {
	return slices.Concat(hostFaults(), serverFaults(), refusals(), networkFaults(), unusualLoads(), clusterFaults())
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
