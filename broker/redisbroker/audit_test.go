package redisbroker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
	"parley/internal/redistest"
)

// onBothServers runs f with a broker on the real server and on the embedded one.
func onBothServers(t *testing.T, f func(t *testing.T, b *Broker)) {
	t.Helper()
	for _, s := range []struct{ name, url string }{{"real", redistest.Shared(t).URL()}, {"embedded", redistest.StartEmbedded(t).URL()}} {
		t.Run(s.name, func(t *testing.T) {
			b, err := Open(t.Context(), Options{URL: s.url, Namespace: redistest.Namespace(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close() })
			f(t, b)
		})
	}
}

// auditQueue makes queue q with four messages of session x (one in a reader's hands, three behind it), two plain ones, one
// scheduled, and a dead letter.
func auditQueue(t *testing.T, b *Broker) broker.Reader {
	t.Helper()
	ctx := t.Context()
	if _, err := b.Apply(ctx, broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("q", false)}}, false); err != nil {
		t.Fatal(err)
	}
	send := func(m broker.Outgoing) {
		if _, err := b.Send(ctx, "q", m); err != nil {
			t.Fatal(err)
		}
	}
	send(broker.Outgoing{Body: []byte("bad")})
	for i := range 4 {
		send(broker.Outgoing{SessionID: "x", Body: fmt.Appendf(nil, "x%d", i)})
	}
	r, err := b.OpenReader(ctx, "q", broker.ReaderOptions{Slots: 2, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := r.Turn(ctx, broker.TurnRequest{Free: []int{0, 1}, Empty: 2, Top: 1})
	if err != nil || len(rep.Units) != 2 {
		t.Fatalf("%d units, %v", len(rep.Units), err)
	}
	i := slices.IndexFunc(rep.Units, func(u *broker.Unit) bool { return u.Group == "" })
	settle := []broker.Settlement{{Unit: rep.Units[i], Verdict: broker.VerdictDeadLetter, Reason: "Mine"}}
	for again := true; again; settle = nil { // the free slot files what waits behind x0
		rep, err = r.Turn(ctx, broker.TurnRequest{Settle: settle, Free: []int{0}, Empty: 1, Top: 1})
		if err != nil || len(rep.Units) != 0 {
			t.Fatalf("%d units, %v", len(rep.Units), err)
		}
		again = rep.Again
	}
	send(broker.Outgoing{Body: []byte("p0")})
	send(broker.Outgoing{Body: []byte("p1")})
	send(broker.Outgoing{Body: []byte("later"), Delay: time.Hour})
	return r
}

// receiveAll returns what can be received from q, in order, and commits it.
func receiveAll(t *testing.T, b *Broker) []string {
	t.Helper()
	if err := b.promote(t.Context(), b.prefix("q")); err != nil {
		t.Fatal(err)
	}
	r, err := b.OpenReader(t.Context(), "q", broker.ReaderOptions{Slots: 1, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	req := broker.TurnRequest{Free: []int{0}, Empty: 1, Top: 1}
	for range 30 {
		rep, err := r.Turn(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		req.Settle = nil
		for _, u := range rep.Units {
			out = append(out, string(u.Messages[0].Body))
			req.Settle = append(req.Settle, broker.Settlement{Unit: u, Verdict: broker.VerdictCommit})
		}
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out
}

// Each kind of damage is found, by name, and mended: afterwards nothing differs and every message that is left can be received, in
// the order of its session.
func TestAuditFindsAndRepairs(t *testing.T) {
	all := []string{"p0", "p1", "x0", "x1", "x2", "x3"}
	less := func(gone ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(gone, s) })
	}
	for _, c := range []struct {
		name   string
		damage [][]any
		rule   string
		left   []string
	}{
		{"a counter", [][]any{{"HINCRBY", "meta", "ready", -103}}, "counter ready", all},
		{"two counters", [][]any{{"HSET", "meta", "locked", 7, "retrying", 2}}, "counter locked", all},
		{"a counter of the dead-letter queue", [][]any{{"HSET", "d:meta", "ready", 5}}, "counter ready", all},
		{"the counter of retained messages", [][]any{{"HSET", "meta", "retained", 5}}, "counter retained", all},
		{"a lock of a reader that is not there", [][]any{{"ZREM", "rd", "$reader"}}, "is held by a registered reader", all},
		{"a lock that counts wrongly", [][]any{{"HSET", "lock", "s:x", "$reader+9"}}, "counts its backlog", all},
		{"a lock that is gone", [][]any{{"HDEL", "lock", "s:x"}}, "has a lock", all},
		{"a lock for nothing", [][]any{{"HSET", "lock", "s:y", "r:nobody+2"}}, "lock of s:y", all},
		{"a group that is ready for nothing", [][]any{{"ZADD", "ready", 1, "s:z"}}, "ready group s:z", all},
		{"a list that is gone", [][]any{{"DEL", "b:s:x:s"}}, "astray", all},
		{"a reference that is gone from its list", [][]any{{"LREM", "b:s:x:s", 1, "3-0"}}, "astray", all},
		{"a reference to nothing", [][]any{{"RPUSH", "b:s:x:s", "99-0"}}, "names messages that are there", all},
		{"a reference twice", [][]any{{"RPUSH", "b:s:x:s", "4-0"}}, "in one place", all},
		{"a message in a unit and in a list", [][]any{{"LPUSH", "b:s:x:s", "2-0"}}, "in one place", all},
		{"a pause of nothing", [][]any{{"ZADD", "retry", 5e12, "77-0"}}, "a pause is kept", all},
		{"an entry that is gone from the stream", [][]any{{"XDEL", "s:5", "3-0"}}, "is there", less("x1")},
		{"a message that nobody has any more", [][]any{{"XACK", "s:5", "w", "3-0"}, {"LREM", "b:s:x:s", 1, "3-0"}}, "astray", all},
		{"a scheduled message without its body", [][]any{{"DEL", "schm"}}, "scheduled message", all},
		{"a scheduled message without its instant", [][]any{{"DEL", "sch"}}, "scheduled message", append(slices.Clone(all), "later")},
		{"the index of the dead-letter queue", [][]any{{"DEL", "d:ix"}}, "the index of a sub-queue", all},
	} {
		t.Run(c.name, func(t *testing.T) {
			onBothServers(t, func(t *testing.T, b *Broker) {
				r := auditQueue(t, b)
				clean(t, b)
				for _, cmd := range c.damage {
					args := []any{cmd[0], b.prefix("q") + cmd[1].(string)}
					for _, a := range cmd[2:] {
						if s, ok := a.(string); ok {
							a = strings.ReplaceAll(s, "$reader", r.Name())
						}
						args = append(args, a)
					}
					if err := b.rdb.Do(t.Context(), args...).Err(); err != nil {
						t.Fatal(args, err)
					}
				}
				rep, err := b.Audit(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if !slices.ContainsFunc(rep.Differences, func(d broker.Difference) bool { return strings.Contains(d.Rule+d.Got, c.rule) }) {
					t.Fatalf("audit does not say %q: %+v", c.rule, rep)
				}
				rep, err = b.Repair(t.Context())
				if err != nil || !rep.Clean() || len(rep.Repaired) == 0 {
					t.Fatalf("repair: %v, %+v", err, rep)
				}
				clean(t, b)
				wantEvent(t, b, "repaired")
				_ = r.Close(context.WithoutCancel(t.Context()))
				got := receiveAll(t, b)
				slices.Sort(got) // sessions are in order by their names, plain messages have none
				want := slices.Clone(c.left)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("received %v, want %v", got, want)
				}
				clean(t, b)
			})
		})
	}
}

func clean(t *testing.T, b *Broker) {
	t.Helper()
	rep, err := b.Audit(t.Context())
	if err != nil || !rep.Clean() {
		t.Fatalf("audit: %v, %+v", err, rep)
	}
}

func wantEvent(t *testing.T, b *Broker, kind string) {
	t.Helper()
	found := false
	err := b.Events(t.Context(), false, func(e broker.Event) bool {
		found = found || e.Type == kind
		return !found
	})
	if err != nil || !found {
		t.Errorf("event %s: %v, %v", kind, found, err)
	}
}

// A session whose backlog was lost is received in its order.
func TestRepairKeepsOrder(t *testing.T) {
	onBothServers(t, func(t *testing.T, b *Broker) {
		r := auditQueue(t, b)
		b.rdb.Del(t.Context(), b.prefix("q")+"b:s:x:s")
		b.rdb.ZRem(t.Context(), b.prefix("q")+"rd", r.Name())
		if rep, err := b.Repair(t.Context()); err != nil || !rep.Clean() {
			t.Fatalf("%v, %+v", err, rep)
		}
		got := slices.DeleteFunc(receiveAll(t, b), func(s string) bool { return s[0] != 'x' })
		if want := []string{"x0", "x1", "x2", "x3"}; !slices.Equal(got, want) {
			t.Errorf("received %v, want %v", got, want)
		}
	})
}

// movingHook moves a queue's change counter during each look.
type movingHook struct {
	redis.Hook
	b *Broker
	n int
}

func (h *movingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "time" && h.n > 0 { // each look asks for the time once
			h.n--
			bump := redis.NewIntCmd(ctx, "hincrby", h.b.prefix("q")+"meta", "chg", 1)
			if err := next(ctx, bump); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}
}

func (h *movingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (h *movingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

// A queue that changes during every look is said to be not settled, whatever is wrong with it; one that stands still in time is
// compared.
func TestAuditOfAQueueThatMoves(t *testing.T) {
	onBothServers(t, func(t *testing.T, b *Broker) {
		auditQueue(t, b)
		h := &movingHook{b: b}
		b.rdb.AddHook(h)
		for _, c := range []struct {
			moves     int
			unsettled bool
		}{{auditLooks - 1, false}, {auditLooks, true}} {
			h.n = c.moves
			rep, err := b.Audit(t.Context(), "q")
			if err != nil || len(rep.Differences) > 0 || slices.Contains(rep.Unsettled, "q") != c.unsettled {
				t.Errorf("moved in %d looks: %v, %+v", c.moves, err, rep)
			}
			h.n = 0
		}
		b.rdb.HSet(t.Context(), b.prefix("q")+"meta", "ready", 99)
		h.n = 1000
		rep, err := b.Repair(t.Context(), "q")
		if err != nil || rep.Clean() || len(rep.Repaired) > 0 {
			t.Errorf("repair of a queue that moves: %v, %+v", err, rep)
		}
		h.n = 0
	})
}

func TestAuditOfNothing(t *testing.T) {
	onBothServers(t, func(t *testing.T, b *Broker) {
		if _, err := b.Audit(t.Context()); !errors.Is(err, broker.ErrUnknownEntity) {
			t.Errorf("a namespace without queues: %v", err)
		}
		auditQueue(t, b)
		if _, err := b.Audit(t.Context(), "q", "nope"); !errors.Is(err, broker.ErrUnknownEntity) {
			t.Errorf("a queue that is not there: %v", err)
		}
		rep, err := b.Audit(t.Context())
		if want := (broker.AuditReport{Queues: 1, Messages: 8}); err != nil || fmt.Sprint(rep) != fmt.Sprint(want) {
			t.Errorf("%v, %+v, want %+v", err, rep, want)
		}
		b.rdb.Del(t.Context(), b.prefix("q")+"meta")
		if rep, err := b.Audit(t.Context()); err != nil || rep.Clean() {
			t.Errorf("a queue whose keys are gone: %v, %+v", err, rep)
		}
	})
}

// ownServer starts a server that nobody shares, so that its statistics are this test's, with a queue q.
func ownServer(t *testing.T) (*redistest.Server, *Broker) {
	t.Helper()
	s := redistest.Start(t)
	b, err := Open(t.Context(), Options{URL: s.URL(), Namespace: "n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if _, err := b.Apply(t.Context(), broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("q", false)}}, false); err != nil {
		t.Fatal(err)
	}
	return s, b
}

// What audit reads does not grow with the bodies, and no command of it reads more than a bounded piece.
func TestAuditLeavesBodiesWhereTheyAre(t *testing.T) {
	s, b := ownServer(t)
	body := make([]byte, 200_000)
	for range 100 {
		if _, err := b.Send(t.Context(), "q", broker.Outgoing{Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	c := s.Client(t)
	before := stat(t, c, "total_net_output_bytes")
	rep, err := b.Audit(t.Context())
	if err != nil || !rep.Clean() || rep.Messages != 100 {
		t.Fatalf("%v, %+v", err, rep)
	}
	if n := stat(t, c, "total_net_output_bytes") - before; n > 200_000 {
		t.Errorf("audit of 100 messages of %d bytes read %d bytes", len(body), n)
	}
}

func stat(t *testing.T, c *redis.Client, name string) int64 {
	t.Helper()
	info, err := c.Info(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return num(v)
		}
	}
	t.Fatalf("no %s in %s", name, info)
	return 0
}
