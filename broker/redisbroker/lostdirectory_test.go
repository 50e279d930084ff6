package redisbroker

import (
	"encoding/json"
	"testing"

	"parley/broker"
	"parley/internal/redistest"
)

func queuesNamed(names ...string) (d broker.Definitions) {
	for _, n := range names {
		d.Queues = append(d.Queues, broker.DefaultQueue(n, false))
	}
	return d
}

// TestLostDirectory loses the slot of the namespace alone: queues keep the numbers with which their handles begin, others get new ones,
// and a client that knew the directory before sees what is in it now.
func TestLostDirectory(t *testing.T) {
	for server, url := range map[string]string{"real": redistest.Shared(t).URL(), "embedded": redistest.StartEmbedded(t).URL()} {
		t.Run(server, func(t *testing.T) {
			_, l := newHarness(t, url, nil)
			l.apply(t, queuesNamed("a", "b"))
			l.do(t, "DEL", l.b.nsKey("entities"), l.b.nsKey("version"), l.b.nsKey("queue_number"))
			x := &lab{opt: l.opt}
			x.b = l.open(t)
			x.apply(t, queuesNamed("c", "b", "a"))
			for name, want := range map[string]string{"a": "00000001", "b": "00000002", "c": "00000003"} {
				if e, err := l.b.queueEntry(t.Context(), name); err != nil || e.Number != want {
					t.Errorf("queue %s as the earlier client sees it: number %q, %v; want %s", name, e.Number, err, want)
				}
			}
		})
	}
}

// TestNewConnectionForgetsTheDirectory: behind it there may be another history under the version that is known.
func TestNewConnectionForgetsTheDirectory(t *testing.T) {
	s := redistest.Start(t)
	_, l := newHarness(t, s.URL(), nil)
	l.apply(t, queuesNamed("a"))
	if _, err := l.b.Keep(t.Context()); err != nil { // listens from here on
		t.Fatal(err)
	}
	redistest.Eventually(t, "the subscription", func() bool {
		l.b.hub.mu.Lock()
		defer l.b.hub.mu.Unlock()
		return l.b.hub.ready
	})
	if err := l.b.dir.load(t.Context(), l.b); err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(queueEntry{Number: "00000007", Settings: broker.DefaultQueue("z", false)})
	if err != nil {
		t.Fatal(err)
	}
	l.do(t, "HSET", l.b.nsKey("entities"), "q/z", j)
	if _, err := l.b.queueEntry(t.Context(), "z"); err == nil {
		t.Fatal("the directory was read again though its version is known")
	}
	l.do(t, "CLIENT", "KILL", "TYPE", "pubsub")
	redistest.Eventually(t, "the directory to be read again", func() bool {
		_, err := l.b.queueEntry(t.Context(), "z")
		return err == nil
	})
}
