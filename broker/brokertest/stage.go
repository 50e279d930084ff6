package brokertest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"parley/broker"
)

// Names of the entities that most tests play with.
const (
	plainQueue = "plain" // serves nothing; failed messages come back at once, dead-lettered at the tenth time
	workQueue  = "work"  // serves workService; goes OFF at the fifth rollback
	homeQueue  = "home"  // serves homeService, which begins the dialogs
	sinkQueue  = "sink"  // where handlers send to
	workSvc    = "//t/Work"
	homeSvc    = "//t/Home"
	stageLimit = 60 * time.Second // no test may take longer: a lost message must fail, not hang

	stageLinger = 31 * time.Minute // a closed target has gone by then
)

// stage is one test with its broker.
type stage struct {
	t   testing.TB
	h   Harness
	ctx context.Context
}

// newStage opens a broker with the usual entities.
func newStage(t testing.TB, open New) *stage {
	ctx, cancel := context.WithTimeout(t.Context(), stageLimit)
	t.Cleanup(cancel)
	s := &stage{t: t, h: open(t), ctx: ctx}
	s.apply(broker.Definitions{
		Queues: []broker.QueueSettings{
			atOnce(broker.DefaultQueue(plainQueue, false)),
			broker.DefaultQueue(workQueue, true),
			broker.DefaultQueue(homeQueue, true),
			atOnce(broker.DefaultQueue(sinkQueue, false)),
		},
		Services: []broker.Service{
			{Name: workSvc, Queue: workQueue, Contracts: []string{broker.ContractDefault}},
			{Name: homeSvc, Queue: homeQueue, Contracts: []string{broker.ContractDefault}},
		},
	})
	if _, err := s.h.Peer.Queue(ctx, plainQueue); err != nil { // so that it knows the entities from here on
		t.Fatalf("the other client does not see what was applied: %v", err)
	}
	return s
}

// atOnce takes the retry pause off q.
func atOnce(q broker.QueueSettings) broker.QueueSettings {
	q.Retry.Initial, q.Retry.Max = 0, 0
	return q
}

func (s *stage) apply(defs broker.Definitions) {
	s.t.Helper()
	if _, err := s.h.Broker.Apply(s.ctx, defs, false); err != nil {
		s.t.Fatalf("apply: %v", err)
	}
}

// alter applies queue name with change made to its settings.
func (s *stage) alter(name string, change func(*broker.QueueSettings)) {
	s.t.Helper()
	info, err := s.h.Broker.Queue(s.ctx, name)
	if err != nil {
		s.t.Fatalf("queue %s: %v", name, err)
	}
	change(&info.QueueSettings)
	s.apply(broker.Definitions{Queues: []broker.QueueSettings{info.QueueSettings}})
}

// message is an Outgoing whose message id and body are both id.
func message(id string) broker.Outgoing {
	return broker.Outgoing{MessageID: id, Body: []byte(id)}
}

// send sends plain messages named ids and returns their sequence numbers.
func (s *stage) send(queue string, ids ...string) []int64 {
	s.t.Helper()
	return s.sendSession(queue, "", ids...)
}

// sendSession sends messages of one session, or plain ones for session "".
func (s *stage) sendSession(queue, session string, ids ...string) []int64 {
	s.t.Helper()
	msgs := make([]broker.Outgoing, len(ids))
	for i, id := range ids {
		msgs[i] = message(id)
		msgs[i].SessionID = session
	}
	rs, err := s.h.Broker.Send(s.ctx, queue, msgs...)
	if err != nil {
		s.t.Fatalf("send %v to %s: %v", ids, queue, err)
	}
	if len(rs) != len(msgs) {
		s.t.Fatalf("send %v to %s: %d receipts", ids, queue, len(rs))
	}
	seqs := make([]int64, len(rs))
	for i, r := range rs {
		seqs[i] = r.SequenceNumber
	}
	return seqs
}

// begin begins a dialog from homeSvc to workSvc and returns the initiator's handle.
func (s *stage) begin() string {
	s.t.Helper()
	return s.beginIn("")
}

// beginIn begins a dialog whose initiator's side is in group.
func (s *stage) beginIn(group string) string {
	s.t.Helper()
	e, err := s.h.Broker.Begin(s.ctx, broker.Dialog{From: homeSvc, To: workSvc, Group: group})
	if err != nil {
		s.t.Fatalf("begin dialog: %v", err)
	}
	return e.Handle
}

// say sends messages named ids on the conversation of handle.
func (s *stage) say(handle string, ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		if _, err := s.h.Broker.SendOn(s.ctx, handle, message(id)); err != nil {
			s.t.Fatalf("send %s on %s: %v", id, handle, err)
		}
	}
}

// end ends the side of handle; code 0 is a plain END.
func (s *stage) end(handle string, code int) {
	s.t.Helper()
	e := broker.Ending{Code: code}
	if code != 0 {
		e.Text = fmt.Sprintf("error %d", code)
	}
	if err := s.h.Broker.End(s.ctx, handle, e, 0); err != nil {
		s.t.Fatalf("end %s: %v", handle, err)
	}
}

func (s *stage) endpoint(handle string) broker.Endpoint {
	s.t.Helper()
	e, err := s.h.Broker.Endpoint(s.ctx, handle)
	if err != nil {
		s.t.Fatalf("endpoint %s: %v", handle, err)
	}
	return e
}

// status switches queue.
func (s *stage) status(queue string, st broker.QueueStatus) {
	s.t.Helper()
	if err := s.h.Broker.SetStatus(s.ctx, queue, st); err != nil {
		s.t.Fatalf("set %s %s: %v", queue, st, err)
	}
}

func (s *stage) queue(name string) broker.QueueInfo {
	s.t.Helper()
	info, err := s.h.Broker.Queue(s.ctx, name)
	if err != nil {
		s.t.Fatalf("queue %s: %v", name, err)
	}
	return info
}

// keep makes one pass of housekeeping.
func (s *stage) keep() broker.KeepReport {
	s.t.Helper()
	rep, err := s.h.Broker.Keep(s.ctx)
	if err != nil {
		s.t.Fatalf("keep: %v", err)
	}
	return rep
}

// advance moves the clock and makes one pass of housekeeping.
func (s *stage) advance(d time.Duration) broker.KeepReport {
	s.t.Helper()
	s.h.Advance(d)
	return s.keep()
}

// expire lets every lease end that nobody renews, and reaps.
func (s *stage) expire() broker.KeepReport {
	s.t.Helper()
	return s.advance(broker.DefaultLease + time.Second)
}

// snapshot looks at queue and checks it against the invariants that hold for any queue at any time.
func (s *stage) snapshot(queue string) broker.Snapshot {
	s.t.Helper()
	snap, err := s.h.Broker.Snapshot(s.ctx, queue)
	if err != nil {
		s.t.Fatalf("snapshot of %s: %v", queue, err)
	}
	for _, v := range Violations(snap) {
		s.t.Errorf("%s: %s", queue, v)
	}
	return snap
}

// stored returns the row of the message whose id is id, or nil.
func (s *stage) stored(queue, id string) *broker.StoredMessage {
	s.t.Helper()
	snap := s.snapshot(queue)
	for i := range snap.Messages {
		if snap.Messages[i].MessageID == id {
			return &snap.Messages[i]
		}
	}
	return nil
}

// dead returns the dead letters of queue.
func (s *stage) dead(queue string) []broker.Message {
	s.t.Helper()
	l, err := s.h.Broker.List(s.ctx, queue, 0, 1000)
	if err != nil {
		s.t.Fatalf("dead letters of %s: %v", queue, err)
	}
	return l
}

// events returns the kept events of queue that have that type.
func (s *stage) events(queue, kind string) []broker.Event {
	s.t.Helper()
	var found []broker.Event
	err := s.h.Broker.Events(s.ctx, false, func(e broker.Event) bool {
		if e.Queue == queue && e.Type == kind {
			found = append(found, e)
		}
		return true
	})
	if err != nil {
		s.t.Fatalf("events: %v", err)
	}
	return found
}

// until calls ok again and again until it returns true, and fails the test when that takes too long.
func (s *stage) until(what string, ok func() bool) {
	s.t.Helper()
	limit := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(limit) {
			s.t.Fatalf("never happened: %s", what)
		}
		select {
		case <-s.ctx.Done():
			s.t.Fatalf("never happened: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// wantErr fails the test unless err is want.
func (s *stage) wantErr(what string, err, want error) {
	s.t.Helper()
	if !errors.Is(err, want) {
		s.t.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

// equal fails the test unless got and want print the same.
func (s *stage) equal(what string, got, want any) {
	s.t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		s.t.Fatalf("%s: got %s, want %s", what, g, w)
	}
}
