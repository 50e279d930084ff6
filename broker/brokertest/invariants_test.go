package brokertest

import (
	"strings"
	"testing"
	"time"

	"parley/broker"
)

// sound is a queue with something in every place.
func sound() broker.Snapshot {
	app := func(id string, n int64, place broker.Place, lock string) broker.StoredMessage {
		return broker.StoredMessage{
			Message:  broker.Message{Ref: id, MessageID: id, SequenceNumber: n, Kind: broker.KindApp, SessionID: strings.TrimPrefix(lock, "s:")},
			Place:    place,
			LockName: lock,
		}
	}
	held := app("held", 3, broker.PlaceHeld, "s:h")
	held.Holder = "r1"
	behind := app("behind", 4, broker.PlaceBacklog, "s:h")
	failed := app("failed", 5, broker.PlaceRetry, "s:p")
	failed.DeliveryCount = 1
	alone := app("alone", 8, broker.PlaceHeld, "")
	alone.Holder = "r1"
	return broker.Snapshot{
		Queue: "q", Status: broker.QueueActive,
		Messages: []broker.StoredMessage{
			app("unread", 9, broker.PlaceUnread, ""), app("free", 2, broker.PlaceBacklog, "s:f"), held, behind, failed, alone,
			app("back", 6, broker.PlaceBack, ""), app("rests", 7, broker.PlaceRetry, ""), app("dead", 1, broker.PlaceDead, ""),
		},
		Locks: map[string]broker.Lock{"s:h": {Holder: "r1", More: true}, "s:f": {}, "s:p": {Parked: true}},
		Ready: []string{"s:f"},
		Retry: map[string]time.Time{"s:p": {}, "rests": {}},
		Readers: map[string]broker.ReaderSnapshot{"r1": {Units: []broker.UnitSnapshot{
			{Name: "s:h", Announced: true}, {Name: "alone", Slot: 1, Announced: true},
		}}},
		Attempts: 1,
		Counts:   broker.Counts{Ready: 4, Locked: 2, Retrying: 2, DeadLetter: 1},
	}
}

func TestViolationsOfASoundQueue(t *testing.T) {
	if v := Violations(sound()); len(v) > 0 {
		t.Errorf("a sound queue has violations: %q", v)
	}
}

func TestViolationsFindsEachFault(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*broker.Snapshot)
		want  string
	}{
		"two places":        {func(s *broker.Snapshot) { s.Messages = append(s.Messages, s.Messages[0]) }, "in two places"},
		"astray":            {func(s *broker.Snapshot) { s.Messages[0].Place = broker.PlaceAstray }, "nobody will ever deliver"},
		"same number":       {func(s *broker.Snapshot) { s.Messages[0].SequenceNumber = 2 }, "one sequence number"},
		"no such reader":    {func(s *broker.Snapshot) { delete(s.Readers, "r1") }, "which is no reader"},
		"other holder":      {func(s *broker.Snapshot) { s.Locks["s:h"] = broker.Lock{Holder: "r2", More: true} }, "but the lock of s:h"},
		"no record":         {func(s *broker.Snapshot) { s.Readers["r1"] = broker.ReaderSnapshot{} }, "has no record of"},
		"record of nothing": {func(s *broker.Snapshot) { s.Messages[2].Place = broker.PlaceBacklog }, "which it does not hold"},
		"not ready":         {func(s *broker.Snapshot) { s.Ready = nil }, "s:f is free: true, but ready: false"},
		"ready but held":    {func(s *broker.Snapshot) { s.Ready = append(s.Ready, "s:h") }, "s:h is free: false, but ready: true"},
		"ready twice":       {func(s *broker.Snapshot) { s.Ready = append(s.Ready, "s:f") }, "ready without a lock, or twice"},
		"empty lock":        {func(s *broker.Snapshot) { s.Locks["s:x"] = broker.Lock{Parked: true}; s.Retry["s:x"] = time.Time{} }, "nothing waits"},
		"no more mark":      {func(s *broker.Snapshot) { s.Locks["s:h"] = broker.Lock{Holder: "r1"} }, "does not say that 1 more wait"},
		"no lock":           {func(s *broker.Snapshot) { delete(s.Locks, "s:f"); s.Ready = nil }, "which has no lock"},
		"parked, not due":   {func(s *broker.Snapshot) { delete(s.Retry, "s:p") }, "s:p is parked: true, but in retry: false"},
		"rests for ever":    {func(s *broker.Snapshot) { delete(s.Retry, "rests") }, "a pause that nobody keeps"},
		"pause of nothing":  {func(s *broker.Snapshot) { s.Retry["gone"] = time.Time{} }, "which does not wait"},
		"counter":           {func(s *broker.Snapshot) { s.Counts.Ready++ }, "counter ready is 5"},
		"leaked attempts":   {func(s *broker.Snapshot) { s.Attempts++ }, "2 records of failed attempts"},
		"asleep":            {func(s *broker.Snapshot) { s.Asleep = true }, "readers sleep, but"},
		"backlog order": {func(s *broker.Snapshot) {
			m := s.Messages[1]
			m.Ref, m.MessageID, m.SequenceNumber = "older", "older", 0
			s.Messages = append(s.Messages, m)
		}, "stands behind"},
		"wrong group": {func(s *broker.Snapshot) {
			s.Messages[1].Conversation = "c"
			s.Conversations = map[string]string{"c": "g:other"}
		}, "its conversation belongs to"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sound()
			c.spoil(&s)
			if v := strings.Join(Violations(s), "\n"); !strings.Contains(v, c.want) {
				t.Errorf("got %q, want a line with %q", v, c.want)
			}
		})
	}
}
