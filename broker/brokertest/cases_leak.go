package brokertest

import (
	"slices"
	"testing"
	"time"

	"parley/broker"
)

// neverEnded is field case 26: initiators that end and targets that do not, with retention. What they leave stays, in plain sight,
// until the targets end too; half an hour later nothing of it is left in the store.
func neverEnded(s *stage) {
	n := 100
	if s.h.Full != nil && !testing.Short() {
		n = 10_000
	}
	s.alter(workQueue, func(q *broker.QueueSettings) { q.Retention = true })
	s.endAll(s.leak(1)) // so that all the keys which queues keep for ever are there
	keys, bytes := s.forget(2)

	handles := s.leak(n)
	s.equal("half closed", []int{s.endpoints(workQueue, "DI"), s.endpoints(homeQueue, "DO")}, []int{n, n})
	s.equal("kept", s.queue(workQueue).Counts.Retained, 3*n)
	s.equal("one of them", s.keptRows(handles[0]), "[m=0 r=3 EndDialog=0]")
	s.advance(24 * time.Hour)
	s.equal("half closed after a day", s.endpoints(workQueue, "DI"), n)
	full, _ := s.h.Usage()
	if full < keys+n {
		s.t.Fatalf("%d conversations with what they keep have %d keys; is the namespace counted?", n, full-keys)
	}

	s.endAll(handles)
	s.equal("kept after END", s.queue(workQueue).Counts.Retained, 0)
	s.equal("initiators", s.endpoints(homeQueue, ""), 0)
	s.equal("closed targets", s.endpoints(workQueue, "CD"), n)
	keysAfter, bytesAfter := s.forget(n)
	s.equal("keys", keysAfter, keys)
	if bytesAfter > bytes+leakSlack {
		s.t.Fatalf("%d bytes are left of %d conversations", bytesAfter-bytes, n)
	}
}

// leakSlack is what the store may need more for the same keys: a stream that was long is not cut back to the byte.
const leakSlack = 16 << 10

// leakStep is how many effects one unit has.
const leakStep = 200

// leak plays n dialogs whose initiators send one message and end after the answer, and whose targets never end. It returns the
// targets' handles.
func (s *stage) leak(n int) []string {
	s.t.Helper()
	begins := make([]broker.Effect, 0, 2*n)
	for range n {
		h, err := s.h.Broker.NewHandle(homeQueue)
		if err != nil {
			s.t.Fatal(err)
		}
		begins = append(begins, broker.Effect{Kind: broker.EffectBegin, Conversation: h, From: homeSvc, To: workSvc},
			broker.Effect{Kind: broker.EffectSend, Conversation: h, Message: message("m")})
	}
	s.do(homeQueue, begins)
	handles := s.commitAll(workQueue, "m", broker.Effect{Kind: broker.EffectSend, Message: message("r")})
	s.commitAll(homeQueue, "r", broker.Effect{Kind: broker.EffectEnd})
	s.commitAll(workQueue, "EndDialog")
	s.equal("targets", len(handles), n)
	return handles
}

// commitAll commits all units of queue, each of one message of that name, with effects on its conversation, and returns the
// conversations.
func (s *stage) commitAll(queue, want string, effects ...broker.Effect) []string {
	s.t.Helper()
	w := s.open(queue, 64)
	defer w.close()
	var handles []string
	for rep := w.receive(); len(rep.Units) > 0; {
		var settle []broker.Settlement
		for _, u := range rep.Units {
			s.equal("received", unitNames(u), "["+want+"]")
			own := slices.Clone(effects)
			for i := range own {
				own[i].Conversation = u.Messages[0].Conversation
			}
			handles = append(handles, u.Messages[0].Conversation)
			settle = append(settle, commit(u, own...))
		}
		rep = w.settleTake(settle...)
	}
	return handles
}

// do commits effects in as many units of plain messages as it takes.
func (s *stage) do(queue string, effects []broker.Effect) {
	s.t.Helper()
	w := s.open(queue, 1)
	defer w.close()
	for some := range slices.Chunk(effects, leakStep) {
		s.send(queue, "p")
		w.commit(w.one("p"), some...)
	}
}

// endAll ends conversations of workQueue.
func (s *stage) endAll(handles []string) {
	s.t.Helper()
	ends := make([]broker.Effect, len(handles))
	for i, h := range handles {
		ends[i] = broker.Effect{Kind: broker.EffectEnd, Conversation: h}
	}
	s.do(workQueue, ends)
}

// forget lets the time of n closed conversations pass and returns what is left in the store.
func (s *stage) forget(n int) (keys int, bytes int64) {
	s.t.Helper()
	s.h.Advance(30*time.Minute + time.Minute)
	for range n/100 + 2 { // one pass removes some
		s.keep()
	}
	s.equal("endpoints", s.endpoints("", ""), 0)
	return s.h.Usage()
}
