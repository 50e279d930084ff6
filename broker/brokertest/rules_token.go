package brokertest

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"parley/broker"
)

// tokenRules are the rules of peek-lock: a lock token is a UUID for one delivery of one message (RM-2, RM-6, RM-7).
var tokenRules = []test{
	{"TestRM_2_a_token_for_each_message_of_a_receive", tokenEach},
	{"TestRM_6_a_renewal_is_of_one_token", renewOne},
	{"TestRM_7_a_used_or_unknown_token_is_lost", usedToken},
	{"TestRM_7_an_ended_token_is_lost_and_its_sister_is_not", endedToken},
	{"TestRM_8_another_client_settles_many_and_each_has_its_outcome", settleMany},
	{"TestDC_9_abandon_after_renew_and_expiry_count_once", countOnce},
	{"a group is let go with the last of its tokens", sharedLock},
	{"what comes back of a group stands in front, in order", sharedOrder},
	{"a pause begins when the last token of a group is settled", sharedPause},
	{"a dead letter parks its group when the last token is settled", sharedPark},
	{"a dead letter that ends its conversation takes along what other tokens hold of it", sharedEndByDeadLetter},
	{"END waits for the last token of the group", sharedEnd},
	{"a later message of a conversation is settled first", laterFirst},
	{"a receive whose answer is lost takes nothing", lostReceive},
	{"500 of one session come in order, in calls of bounded size", manyOfOneSession},
}

// tokenLock is how long a token lasts on a queue of the suite.
const tokenLock = 60 * time.Second

var isUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

const unknownToken = "6d0b9a2e-3f5c-4b60-9d1f-1c9b6f0a7e55"

// take receives up to n messages of path, also of one group, and says that they are these.
func (s *stage) take(path string, n int, ids ...string) []broker.Delivery {
	s.t.Helper()
	got, err := s.h.Broker.Receive(s.ctx, path, broker.ReceiveOptions{Max: n, Top: n})
	s.equal("received", []any{deliveryNames(got), err}, fmt.Sprintf("[%v <nil>]", ids))
	for _, d := range got {
		s.equal("messages under a token", len(d.Unit.Messages), 1)
	}
	if s.t.Failed() {
		s.t.FailNow()
	}
	return got
}

// settle settles one token and says what it led to.
func (s *stage) settle(path, token string, st broker.Settlement, want broker.Consequence) {
	s.t.Helper()
	r, err := s.h.Broker.Settle(s.ctx, path, token, st)
	s.equal("settled", []any{r.Consequence, err}, []any{want, nil})
}

// lost says that token is worth nothing, to settle or to renew.
func (s *stage) lost(what, path, token string) {
	s.t.Helper()
	for _, st := range []broker.Settlement{{}, failure(nil), release(nil), {Verdict: broker.VerdictDeadLetter}} {
		_, err := s.h.Broker.Settle(s.ctx, path, token, st)
		s.wantErr("settle "+what, err, broker.ErrLockLost)
	}
	_, err := s.h.Broker.Renew(s.ctx, path, token)
	s.wantErr("renew "+what, err, broker.ErrLockLost)
}

func deliveryNames(got []broker.Delivery) []string {
	var ids []string
	for _, d := range got {
		ids = append(ids, unitNames(d.Unit)...)
	}
	return ids
}

func tokenEach(s *stage) {
	s.send(plainQueue, "m0", "m1")
	s.sendSession(plainQueue, "x", "x0", "x1")
	seen := map[string]bool{}
	for _, d := range s.take(plainQueue, 9, "m0", "m1", "x0", "x1") {
		if !isUUID.MatchString(d.Token) || seen[d.Token] {
			s.t.Errorf("the token of %v is %q: no UUID of its own", deliveryNames([]broker.Delivery{d}), d.Token)
		}
		seen[d.Token] = true
		if want := s.snapshot(plainQueue).Now.Add(tokenLock); !d.LockedUntil.Equal(want) {
			s.t.Errorf("locked until %v, want %v", d.LockedUntil, want)
		}
	}
	s.audit()
}

func renewOne(s *stage) {
	s.send(plainQueue, "m0", "m1")
	s.sendSession(plainQueue, "x", "x0", "x1")
	got := s.take(plainQueue, 9, "m0", "m1", "x0", "x1")
	s.h.Advance(50 * time.Second)
	for _, d := range []broker.Delivery{got[1], got[3]} {
		until, err := s.h.Broker.Renew(s.ctx, plainQueue, d.Token)
		s.equal("renewed until", []any{until, err}, []any{s.snapshot(plainQueue).Now.Add(tokenLock), nil})
	}
	s.advance(11 * time.Second)
	s.equal("the others came back, each counted once", []int{s.stored(plainQueue, "m0").DeliveryCount, s.stored(plainQueue, "x0").DeliveryCount}, "[1 1]")
	s.equal("these are still held", []broker.Place{s.stored(plainQueue, "m1").Place, s.stored(plainQueue, "x1").Place}, []broker.Place{broker.PlaceHeld, broker.PlaceHeld})
	s.lost("what ended", plainQueue, got[0].Token)
	s.lost("what ended of a session", plainQueue, got[2].Token)
	s.settle(plainQueue, got[1].Token, commit(nil), broker.Committed)
	s.settle(plainQueue, got[3].Token, commit(nil), broker.Committed)
	s.audit()
}

func usedToken(s *stage) {
	s.send(plainQueue, "m0", "m1")
	got := s.take(plainQueue, 9, "m0", "m1")
	s.settle(plainQueue, got[0].Token, commit(nil), broker.Committed)
	s.lost("a used token", plainQueue, got[0].Token)
	s.lost("a token that never was", plainQueue, unknownToken)
	s.lost("no token", plainQueue, got[1].Token+"~99")
	s.lost("nothing", plainQueue, "")
	s.lost("a token of another queue", workQueue, got[1].Token)
	s.settle(plainQueue, got[1].Token, release(nil), broker.Released)
	s.lost("a token whose message was given back", plainQueue, got[1].Token)
	again := s.take(plainQueue, 1, "m1")
	s.lost("the token of an earlier delivery", plainQueue, got[1].Token)
	s.settle(plainQueue, again[0].Token, commit(nil), broker.Committed)
	s.audit()
}

func endedToken(s *stage) {
	s.send(plainQueue, "m0")
	got, err := s.h.Broker.Receive(s.ctx, plainQueue, broker.ReceiveOptions{Max: 1, Lock: 5 * time.Second})
	s.equal("received", []any{deliveryNames(got), err}, "[[m0] <nil>]")
	s.send(plainQueue, "m1")
	other := s.take(plainQueue, 1, "m1")
	s.h.Advance(5*time.Second + time.Millisecond)
	s.lost("a token that ended, before anybody swept", plainQueue, got[0].Token)
	s.settle(plainQueue, other[0].Token, commit(nil), broker.Committed)
	s.keep()
	s.equal("left", s.drainAll(plainQueue), "[m0]")
}

func settleMany(s *stage) {
	s.send(plainQueue, numbered("m", 5)...)
	got := s.take(plainQueue, 9, numbered("m", 5)...)
	many := make([]broker.TokenSettlement, 0, 7)
	for i, st := range []broker.Settlement{commit(nil), failure(nil), {Verdict: broker.VerdictDeadLetter, Reason: "Bad"}, release(nil), commit(nil)} {
		many = append(many, broker.TokenSettlement{Token: got[i].Token, Settlement: st})
	}
	many = append(many, many[0], broker.TokenSettlement{Token: unknownToken})
	res, err := s.h.Peer.SettleMany(s.ctx, plainQueue, many)
	if err != nil || len(res) != len(many) {
		s.t.Fatalf("got %d results, %v; want %d", len(res), err, len(many))
	}
	want := []broker.Consequence{broker.Committed, broker.RolledBack, broker.DeadLettered, broker.Released, broker.Committed, broker.Lost, broker.Lost}
	for i, r := range res {
		if r.Consequence != want[i] || (want[i] == broker.Lost) != errors.Is(r.Err, broker.ErrLockLost) {
			s.t.Errorf("token %d: %v, %v; want %v", i, r.Consequence, r.Err, want[i])
		}
	}
	s.equal("left", s.drainAll(plainQueue), "[m1 m3]")
	s.equal("dead", len(s.dead(plainQueue)), 1)
	_, err = s.h.Broker.SettleMany(s.ctx, plainQueue+"/$DeadLetterQueue", []broker.TokenSettlement{{Token: got[0].Token, Settlement: broker.Settlement{Verdict: broker.VerdictDeadLetter}}})
	s.wantErr("dead-letter a dead letter", err, broker.ErrDeadLetterAgain)
	s.audit()
}

func countOnce(s *stage) {
	s.send(plainQueue, "m")
	d := s.take(plainQueue, 1, "m")[0]
	s.h.Advance(50 * time.Second)
	if _, err := s.h.Broker.Renew(s.ctx, plainQueue, d.Token); err != nil {
		s.t.Fatal(err)
	}
	s.settle(plainQueue, d.Token, failure(nil), broker.RolledBack)
	s.lost("abandoned", plainQueue, d.Token)
	s.equal("counted", s.stored(plainQueue, "m").DeliveryCount, 1)
	d = s.take(plainQueue, 1, "m")[0]
	s.advance(tokenLock + time.Millisecond)
	_, err := s.h.Broker.Settle(s.ctx, plainQueue, d.Token, failure(nil))
	s.wantErr("abandon what ended", err, broker.ErrLockLost)
	s.equal("counted", s.stored(plainQueue, "m").DeliveryCount, 2)
}

func sharedLock(s *stage) {
	s.sendSession(plainQueue, "x", numbered("m", 4)...)
	got := s.take(plainQueue, 3, "m0", "m1", "m2")
	for _, i := range []int{1, 0, 2} {
		s.take(plainQueue, 9)
		s.open(plainQueue, 1).none()
		s.settle(plainQueue, got[i].Token, commit(nil), broker.Committed)
		s.audit()
	}
	s.equal("then the rest", s.drainAll(plainQueue), "[m3]")
}

// sharedOrder abandons the first while a later one is open: the later may be settled, and the first is handed out again before all that
// waits behind.
func sharedOrder(s *stage) {
	s.sendSession(plainQueue, "x", numbered("m", 6)...)
	got := s.take(plainQueue, 5, "m0", "m1", "m2", "m3", "m4")
	s.settle(plainQueue, got[3].Token, release(nil), broker.Released)
	s.settle(plainQueue, got[0].Token, release(nil), broker.Released)
	s.take(plainQueue, 9)
	s.settle(plainQueue, got[2].Token, failure(nil), broker.RolledBack)
	s.settle(plainQueue, got[1].Token, commit(nil), broker.Committed)
	s.audit()
	s.take(plainQueue, 9)
	s.advance(tokenLock + time.Millisecond) // the last one ends by itself
	s.take(plainQueue, 9, "m0", "m2", "m3", "m4", "m5")
	s.audit()
}

func sharedPause(s *stage) {
	s.alter(plainQueue, func(q *broker.QueueSettings) {
		q.Retry.Initial, q.Retry.Max = 10*time.Second, 10*time.Second
	})
	s.sendSession(plainQueue, "x", "m0", "m1", "m2")
	got := s.take(plainQueue, 2, "m0", "m1")
	s.settle(plainQueue, got[0].Token, failure(nil), broker.RolledBack)
	s.audit()
	s.advance(4 * time.Second)
	s.settle(plainQueue, got[1].Token, commit(nil), broker.Committed)
	s.equal("it rests", s.snapshot(plainQueue).Locks["s:x"].Parked, true)
	s.audit()
	s.advance(5900 * time.Millisecond)
	s.take(plainQueue, 9)
	s.advance(100 * time.Millisecond)
	again := s.take(plainQueue, 9, "m0", "m2")
	s.settle(plainQueue, again[0].Token, failure(nil), broker.RolledBack)
	s.advance(11 * time.Second) // the pause is over before the last is settled
	s.settle(plainQueue, again[1].Token, commit(nil), broker.Committed)
	s.take(plainQueue, 9, "m0")
}

func sharedPark(s *stage) {
	s.alter(plainQueue, func(q *broker.QueueSettings) { q.OnDeadLetter = "park" })
	s.sendSession(plainQueue, "x", "m0", "m1", "m2")
	got := s.take(plainQueue, 2, "m0", "m1")
	s.settle(plainQueue, got[0].Token, broker.Settlement{Verdict: broker.VerdictDeadLetter}, broker.DeadLettered)
	s.audit()
	s.settle(plainQueue, got[1].Token, release(nil), broker.Released)
	s.audit()
	s.take(plainQueue, 9)
	if _, err := s.h.Broker.Resubmit(s.ctx, plainQueue, 1); err != nil {
		s.t.Fatal(err)
	}
	s.equal("in its old place", s.drainAll(plainQueue), "[m0 m1 m2]")
	s.audit()
}

// sharedEndByDeadLetter ends a conversation while other messages of it are open: they are gone with it.
func sharedEndByDeadLetter(s *stage) {
	s.alter(workQueue, func(q *broker.QueueSettings) { q.OnDeadLetter = "end" })
	c := s.begin()
	s.say(c, "m0", "m1", "m2", "m3")
	got := s.take(workQueue, 3, "m0", "m1", "m2")
	s.settle(workQueue, got[2].Token, commit(nil), broker.Committed)
	s.settle(workQueue, got[0].Token, broker.Settlement{Verdict: broker.VerdictDeadLetter}, broker.DeadLettered)
	s.lost("of an ended conversation", workQueue, got[1].Token)
	s.equal("counts", []int64{s.queue(workQueue).Counts.Ready, s.queue(workQueue).Counts.Locked}, "[0 0]")
	s.take(workQueue, 9)
	s.audit()
}

func sharedEnd(s *stage) {
	c := s.begin()
	s.say(c, "m0", "m1")
	far := s.target("m0")
	got := s.take(workQueue, 2, "m0", "m1")
	end := broker.Effect{Kind: broker.EffectEnd, Conversation: far}
	r, err := s.h.Broker.Settle(s.ctx, workQueue, got[1].Token, commit(got[1].Unit, end))
	s.equal("while another is open", []any{r.Consequence, errors.Is(err, broker.ErrGroupLocked)}, []any{broker.Refused, true})
	s.settle(workQueue, got[0].Token, commit(nil), broker.Committed)
	again := s.take(workQueue, 2, "m1")
	s.equal("uncounted", again[0].Unit.Messages[0].PoisonCount, 0)
	s.settle(workQueue, again[0].Token, commit(again[0].Unit, end), broker.Committed)
	s.equal("state", s.endpoint(far).State, broker.StateDisconnectedOutbound)
	s.audit()
}

func laterFirst(s *stage) {
	c := s.begin()
	s.say(c, "m0", "m1", "m2")
	far := s.target("m0")
	got := s.take(workQueue, 2, "m0", "m1")
	s.settle(workQueue, got[1].Token, commit(nil), broker.Committed)
	s.equal("waiting", s.endpoint(far).Waiting, 2)
	s.audit()
	s.settle(workQueue, got[0].Token, failure(nil), broker.RolledBack)
	s.equal("order", s.drainAll(workQueue), "[m0 m2]")
	s.equal("waiting", s.endpoint(far).Waiting, 0)
	s.end(far, 0)
	s.audit()
}

func lostReceive(s *stage) {
	s.sendSession(plainQueue, "x", "x0", "x1")
	s.send(plainQueue, "m")
	s.h.LoseReply(1, 1) // the first call promotes what is due
	got := s.take(plainQueue, 9, "m", "x0", "x1")
	for _, d := range got {
		s.equal("counted", d.Unit.Messages[0].DeliveryCount, 0)
		s.settle(plainQueue, d.Token, commit(nil), broker.Committed)
	}
	s.equal("nothing is left behind", s.snapshot(plainQueue).Readers, map[string]broker.ReaderSnapshot{})
	s.audit()
}

func manyOfOneSession(s *stage) {
	s.sendSession(plainQueue, "x", numbered("m", 500)...)
	var order []string
	for len(order) < 500 {
		got, err := s.h.Broker.Receive(s.ctx, plainQueue, broker.ReceiveOptions{Max: 500, Top: 500})
		if err != nil || len(got) == 0 {
			s.t.Fatalf("after %d: %d, %v", len(order), len(got), err)
		}
		many := make([]broker.TokenSettlement, len(got))
		for i := range got {
			many[i].Token = got[i].Token
		}
		order = append(order, deliveryNames(got)...)
		if _, err := s.h.Broker.SettleMany(s.ctx, plainQueue, many); err != nil {
			s.t.Fatal(err)
		}
	}
	s.equal("order", order, numbered("m", 500))
	s.audit()
}
