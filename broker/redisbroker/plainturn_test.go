package redisbroker

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"parley/broker"
	"parley/internal/redistest"
)

// onLabs runs f on the real server and on the embedded one, with a queue q.
func onLabs(t *testing.T, f func(t *testing.T, l *lab)) {
	for name, url := range map[string]string{"real": redistest.Shared(t).URL(), "embedded": redistest.StartEmbedded(t).URL()} {
		t.Run(name, func(t *testing.T) {
			_, l := newHarness(t, url, nil)
			l.apply(t, broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("q", false)}})
			f(t, l)
		})
	}
}

// send sends n messages to q, of a session or of none.
func (l *lab) send(t *testing.T, n int, session string) {
	t.Helper()
	for i := range n {
		m := broker.Outgoing{MessageID: fmt.Sprint("m", i+1), SessionID: session, Body: fmt.Appendf(nil, "body %d", i+1)}
		if _, err := l.b.Send(t.Context(), "q", m); err != nil {
			t.Fatal(err)
		}
	}
}

// reader opens a reader of q with two slots.
func (l *lab) reader(t *testing.T) *reader {
	t.Helper()
	r, err := l.b.OpenReader(t.Context(), "q", broker.ReaderOptions{Slots: 2, Limit: 100})
	if err != nil || r == nil {
		t.Fatalf("open a reader: %v, %v", r, err)
	}
	return r.(*reader)
}

// committing is the request that commits units and offers two slots.
func committing(units []*broker.Unit) broker.TurnRequest {
	req := broker.TurnRequest{Free: []int{0, 1}, Empty: 2, Top: 1}
	for _, u := range units {
		req.Settle = append(req.Settle, broker.Settlement{Unit: u})
	}
	return req
}

// idsOf are the ids of the messages of units.
func idsOf(units []*broker.Unit) (ids []string) {
	for _, u := range units {
		ids = append(ids, u.Messages[0].MessageID)
	}
	return ids
}

// turn commits units and offers two slots. It returns the ids handed out, and their units.
func (l *lab) turn(t *testing.T, r *reader, units []*broker.Unit) (ids []string, _ []*broker.Unit) {
	t.Helper()
	rep, err := r.Turn(t.Context(), committing(units))
	if err != nil {
		t.Fatal(err)
	}
	for i, res := range rep.Results {
		if res.Err != nil || res.Consequence != broker.Committed {
			t.Fatalf("unit %d: %+v", i, res)
		}
	}
	return idsOf(rep.Units), rep.Units
}

// clean wants an audit that finds nothing.
func (l *lab) clean(t *testing.T) {
	t.Helper()
	if d, err := l.b.Audit(t.Context(), "q"); err != nil || !d.Clean() {
		t.Fatalf("audit: %v, %v", d, err)
	}
}

// drain takes turns until nothing is handed out, and returns all ids.
func (l *lab) drain(t *testing.T, r *reader, units []*broker.Unit) (all []string) {
	t.Helper()
	for {
		var ids []string
		ids, units = l.turn(t, r, units)
		if len(ids) == 0 {
			l.clean(t)
			return all
		}
		all = append(all, ids...)
	}
}

// sessions are the ids of those units that have a group.
func sessions(units []*broker.Unit) (ids []string) {
	for _, u := range units {
		if u.Group != "" {
			ids = append(ids, u.Messages[0].MessageID)
		}
	}
	return ids
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// TestPlainTurnAgainAfterTheServerLostItsScripts: what was read by the transaction whose script was not found comes again, in
// order, uncounted, and the short way is taken again afterwards.
func TestPlainTurnAgainAfterTheServerLostItsScripts(t *testing.T) {
	onLabs(t, func(t *testing.T, l *lab) {
		l.send(t, 8, "")
		r := l.reader(t)
		ids, units := l.turn(t, r, nil)
		same(t, "first", ids, "[m1 m2]")
		l.do(t, "SCRIPT", "FLUSH")
		name := r.Name()
		all, units := l.turn(t, r, units)
		if r.Name() == name {
			t.Error("the reader kept its name: was the loss noticed at all?")
		}
		for _, u := range units {
			same(t, "delivery count", u.Messages[0].DeliveryCount, 0)
		}
		all = append(all, l.drain(t, r, units)...)
		sort.Strings(all)
		same(t, "the others, each once", all, "[m3 m4 m5 m6 m7 m8]")
		if !r.plain || r.noPlain {
			t.Errorf("the next turn is not a plain one: %v %v", r.plain, r.noPlain)
		}
	})
}

// TestPlainTurnBesideAStrangersEntries: the counters do not know what somebody else wrote; all of it becomes dead letters.
func TestPlainTurnBesideAStrangersEntries(t *testing.T) {
	onLabs(t, func(t *testing.T, l *lab) {
		l.send(t, 2, "")
		l.spoil(t, "q", map[string]string{"foreign": "field"})
		l.send(t, 2, "")
		l.spoil(t, "q", map[string]string{"|4||||S|mx||": "1234", "and": "more"})
		r := l.reader(t)
		same(t, "handled", l.drain(t, r, nil), "[m1 m2 m1 m2]")
		dead, err := l.b.Peek(t.Context(), "q/$DeadLetterQueue", 0, 10)
		if err != nil || len(dead) != 2 || dead[0].Dead.Reason != broker.ReasonMalformedEnvelope {
			t.Errorf("dead letters: %v, %v", dead, err)
		}
	})
}

func TestPlainTurnOnAStreamThatLostItsGroup(t *testing.T) {
	onLabs(t, func(t *testing.T, l *lab) {
		l.send(t, 3, "")
		r := l.reader(t)
		l.do(t, "XGROUP", "DESTROY", r.prefix+"s:5", "w")
		rep, err := r.Turn(t.Context(), broker.TurnRequest{Free: []int{0}, Empty: 1, Top: 1})
		if err != nil || len(rep.Units) != 0 || !rep.Again {
			t.Fatalf("got %+v, %v", rep, err)
		}
		l.clean(t)
		same(t, "handled by the next reader", l.drain(t, l.reader(t), nil), "[m1 m2 m3]")
	})
}

// TestPlainTurnGivesWayToSessions: to the script turn as soon as a session comes, and is taken again once the queue has none left.
func TestPlainTurnGivesWayToSessions(t *testing.T) {
	onLabs(t, func(t *testing.T, l *lab) {
		l.send(t, 1, "")
		r := l.reader(t)
		ids, units := l.turn(t, r, nil)
		same(t, "first", ids, "[m1]")
		if !r.plain {
			t.Fatal("the turn was not a plain one")
		}
		l.send(t, 3, "s")
		l.send(t, 1, "")
		_, units = l.turn(t, r, units)
		if r.plain {
			t.Fatal("still plain")
		}
		l.clean(t)
		var inOrder []string
		for len(units) > 0 {
			inOrder = append(inOrder, sessions(units)...)
			_, units = l.turn(t, r, units)
		}
		same(t, "the session", inOrder, "[m1 m2 m3]")
		if _, err := l.b.Sweep(t.Context(), []string{"q"}); err != nil {
			t.Fatal(err)
		}
		l.send(t, 2, "")
		var plain atomic.Int64
		l.wire.plain = &plain
		same(t, "plain again", l.drain(t, l.reader(t), nil), "[m1 m2]")
		if plain.Load() == 0 {
			t.Error("no turn was a plain one after the session had gone")
		}
	})
}

// TestPlainTurnWaitsOutAFailover: while the server is a replica a transaction is refused as a whole; the turn goes on when it is
// a master again, and nothing is lost.
func TestPlainTurnWaitsOutAFailover(t *testing.T) {
	s := redistest.Start(t)
	_, l := newHarness(t, s.URL(), nil)
	l.apply(t, broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("q", false)}})
	l.send(t, 4, "")
	r := l.reader(t)
	_, units := l.turn(t, r, nil)
	name := r.Name()
	l.do(t, "CONFIG", "RESETSTAT")
	l.do(t, "REPLICAOF", "127.0.0.1", "1")
	var rep broker.TurnReply
	done := make(chan error, 1)
	go func() {
		var err error
		rep, err = r.Turn(t.Context(), committing(units))
		done <- err
	}()
	redistest.Eventually(t, "a refusal", func() bool { return l.stat(t, "total_error_replies") > 0 })
	l.do(t, "REPLICAOF", "NO", "ONE")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if r.Name() != name {
		t.Error("the reader changed its name: a call that was refused whole has no unknown outcome")
	}
	same(t, "all others", append(idsOf(rep.Units), l.drain(t, r, rep.Units)...), "[m3 m4]")
}

// stat is a number of INFO.
func (l *lab) stat(t *testing.T, name string) int {
	t.Helper()
	info, err := l.b.rdb.Info(t.Context(), "stats").Result()
	if err != nil {
		t.Error(err)
		return -1
	}
	_, v, _ := strings.Cut(info, name+":")
	v, _, _ = strings.Cut(v, "\r")
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	return n
}
