package redisbroker

import (
	"context"
	goflag "flag"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker/brokertest"
	"parley/internal/redistest"
)

func TestMain(m *testing.M) {
	if os.Getenv(asTransmitter) != "" {
		transmitterMain()
	}
	redistest.Main(m)
}

func TestConformanceReal(t *testing.T) { conforms(t, openReal) }

func TestConformanceEmbedded(t *testing.T) { conforms(t, openEmbedded) }

// conforms runs the suite, beside that on the other server, and wants both kinds of turns to have been at work in it.
func conforms(t *testing.T, on func(patch func(name, source string) string, plain *atomic.Int64) brokertest.New) {
	t.Parallel()
	var plain atomic.Int64
	brokertest.Run(t, on(nil, &plain))
	if n := plain.Load(); n < 50 && !t.Failed() && flagOf("test.run")+flagOf("test.skip") == "" {
		t.Errorf("%d turns of plain messages were made: the suite says nothing about them", n)
	}
}

// flagOf is the value of a flag of the test binary.
func flagOf(name string) string { return goflag.Lookup(name).Value.String() }

// openReal opens namespaces on the private server of this test binary. plain, unless nil, counts turns of plain messages.
func openReal(patch func(name, source string) string, plain *atomic.Int64) brokertest.New {
	return func(t testing.TB) brokertest.Harness {
		s := redistest.Shared(t)
		h, l := newHarness(t, s.URL(), patch)
		l.wire.plain = plain
		h.Usage = func() (int, int64) { return l.usage(t, true) }
		h.Real = true
		h.Full = func(full bool) { l.full(t, full) }
		h.StarvePool = func(n int) brokertest.Broker { return l.starved(t, s.Addr(), n) }
		return h
	}
}

// openEmbedded opens an in-process server for each namespace.
func openEmbedded(patch func(name, source string) string, plain *atomic.Int64) brokertest.New {
	return func(t testing.TB) brokertest.Harness {
		h, l := newHarness(t, redistest.StartEmbedded(t).URL(), patch)
		l.wire.plain = plain
		return h
	}
}

// lab is what stands behind a Harness.
type lab struct {
	opt   Options
	b     *Broker
	clock atomic.Int64
	wire  *wire // under b

	advance func(time.Duration) // moves the clock of a lab that another one made
}

func newHarness(t testing.TB, url string, patch func(name, source string) string) (brokertest.Harness, *lab) {
	l := &lab{}
	l.clock.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixMilli())
	l.opt = Options{URL: url, Namespace: redistest.Namespace(t), Now: l.clock.Load, PatchScript: patch}
	l.b = l.open(t)
	w := &wire{scripts: l.b.scripts}
	l.wire = w
	l.b.rdb.AddHook(w)
	return brokertest.Harness{
		Broker:    l.b,
		Peer:      l.open(t),
		Advance:   func(d time.Duration) { l.clock.Add(d.Milliseconds()) },
		LoseReply: w.loseReply,
		LoseCall:  w.loseCall,
		HoldCall:  w.hold,
		Calm:      w.calm,
		LoseEntry: func(queue, ref string) { l.loseEntry(t, queue, ref) },
		Spoil:     func(queue string, fields map[string]string) { l.spoil(t, queue, fields) },
		Write: func(queue, stream, id string, fields ...string) error {
			args := []any{"XADD", l.b.prefix(queue) + stream, id}
			for _, f := range fields {
				args = append(args, f)
			}
			return l.b.rdb.Do(context.Background(), args...).Err()
		},
		SetCounter: func(queue, name string, n int) { l.do(t, "HSET", l.b.prefix(queue)+"meta", name, n) },
		LoseGroup:  func(queue string) { l.do(t, "XGROUP", "DESTROY", l.b.prefix(queue)+"s:5", "w") },
		Flush:      func() { l.do(t, "FLUSHALL") },
		Usage:      func() (int, int64) { return l.usage(t, false) }, // what the embedded server says of bytes is a guess
	}, l
}

func (l *lab) open(t testing.TB) *Broker {
	t.Helper()
	b, err := Open(t.Context(), l.opt)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

func (l *lab) do(t testing.TB, args ...any) {
	t.Helper()
	if err := l.b.rdb.Do(context.Background(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

func (l *lab) loseEntry(t testing.TB, queue, ref string) {
	lane, id := "5", ref
	if n, l, ok := strings.Cut(ref, "/"); ok {
		if lane, id = l, n; l == "t" || l == "e" {
			lane = "sys"
		}
	}
	l.do(t, "XDEL", l.b.prefix(queue)+"s:"+lane, id)
}

func (l *lab) spoil(t testing.TB, queue string, fields map[string]string) {
	args := []any{"XADD", l.b.prefix(queue) + "s:5", "*"}
	for k, v := range fields {
		args = append(args, k, v)
	}
	l.do(t, args...)
}

// usage counts the keys of the namespace, whichever entity they belong to, and if asked to weighs them.
func (l *lab) usage(t testing.TB, weigh bool) (keys int, bytes int64) {
	t.Helper()
	ctx := context.Background()
	for _, prefix := range []string{"{" + l.b.ns + "}", "{" + l.b.ns + "/"} {
		err := l.b.eachKey(ctx, prefix, func(some []string) error {
			keys += len(some)
			if !weigh {
				return nil
			}
			cmds, err := l.b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
				for _, k := range some {
					p.MemoryUsage(ctx, k, 0)
				}
				return nil
			})
			for _, c := range cmds {
				bytes += c.(*redis.IntCmd).Val()
			}
			return err
		})
		if err != nil {
			t.Fatalf("usage: %v", err)
		}
	}
	return keys, bytes
}

func (l *lab) full(t testing.TB, full bool) {
	limit := "0"
	if full {
		limit = "1"
	}
	l.do(t, "CONFIG", "SET", "maxmemory", limit)
	if full {
		t.Cleanup(func() { l.do(t, "CONFIG", "SET", "maxmemory", "0") })
	}
}

// starved opens one more client with n connections.
func (l *lab) starved(t testing.TB, addr string, n int) *Broker {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, PoolSize: n, ContextTimeoutEnabled: true})
	b, err := start(t.Context(), l.opt, rdb, false)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}
