package redisbroker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/broker"
	"parley/internal/redistest"
)

// A slot of Redis that loses its last writes is played here on one server: the keys of one queue become what they were.

// lossLab is a lab on a real server whose queue work is off, so that what is said to it waits in transmission.
func lossLab(t *testing.T) *lab {
	t.Helper()
	_, l := newHarness(t, redistest.Shared(t).URL(), nil)
	contracts := []string{broker.ContractDefault}
	l.apply(t, broker.Definitions{
		Queues:   []broker.QueueSettings{broker.DefaultQueue("work", true), broker.DefaultQueue("home", true)},
		Services: []broker.Service{{Name: "//t/Work", Queue: "work", Contracts: contracts}, {Name: "//t/Home", Queue: "home", Contracts: contracts}},
	})
	l.status(t, "work", broker.QueueOff)
	return l
}

// remember returns a function that makes the keys of a queue what they are now.
func (l *lab) remember(t *testing.T, queue string) (lose func()) {
	t.Helper()
	ctx, pattern := t.Context(), l.b.prefix(queue)+"*"
	list := func() []string {
		keys, err := l.b.rdb.Keys(ctx, strings.NewReplacer("{", `\{`).Replace(pattern)).Result()
		if err != nil || len(keys) == 0 {
			t.Fatalf("keys of %s: %v, %v", pattern, keys, err)
		}
		return keys
	}
	was := map[string]string{}
	for _, k := range list() {
		v, err := l.b.rdb.Dump(ctx, k).Result()
		if err != nil {
			t.Fatal(err)
		}
		was[k] = v
	}
	return func() {
		t.Helper()
		if err := l.b.rdb.Del(ctx, list()...).Err(); err != nil {
			t.Fatal(err)
		}
		for k, v := range was {
			if err := l.b.rdb.Restore(ctx, k, 0, v).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// arrives turns work on and moves on what waits at home, past every pause.
func (l *lab) arrives(t *testing.T) {
	t.Helper()
	l.status(t, "work", broker.QueueActive)
	for range 4 {
		l.clock.Add(65_000)
		l.transmit(t)
	}
	l.wantTransmission(t, "//t/Work", 0)
	l.wantClean(t)
}

func (l *lab) wantClean(t *testing.T) {
	t.Helper()
	if rep, err := l.b.Audit(t.Context()); err != nil || !rep.Clean() {
		t.Fatalf("audit: %+v, %v", rep, err)
	}
}

// wantEvents compares the events of one kind on queue, each by the named fields.
func (l *lab) wantEvents(t *testing.T, queue, kind, fields string, want ...string) {
	t.Helper()
	x, err := l.b.rdb.XRange(t.Context(), l.b.prefix(queue)+"events", "-", "+").Result()
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, e := range x {
		if e.Values["type"] != kind {
			continue
		}
		var v []string
		for f := range strings.FieldsSeq(fields) {
			v = append(v, fmt.Sprint(e.Values[f]))
		}
		got = append(got, strings.Join(v, " "))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("events %s of %s: %q, want %q", kind, queue, got, want)
	}
}

// sendLater sends plain messages from home to work, as a handler does.
func (l *lab) sendLater(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		e := broker.Effect{Kind: broker.EffectSendTo, Queue: "work", Message: broker.Outgoing{MessageID: id, Body: []byte(id)}}
		if _, err := l.b.work(t.Context(), "home", e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatASourceForgotThatItSentIsSentAgain(t *testing.T) {
	l := lossLab(t)
	c := l.begin(t)
	l.say(t, c, "m0", "m1", "m2")
	lose := l.remember(t, "home")
	l.arrives(t)
	lose()
	l.arrives(t)
	l.wantReady(t, "a conversation knows what it has", "work", "[m0 m1 m2]")
	l.wantEvents(t, "home", "transmission_repeats", "target", "//t/Work")
	l.wantEvents(t, "work", "sequence_repeated", "message_id", "m0", "m1", "m2")
	l.say(t, c, "m3")
	l.arrives(t)
	l.wantReady(t, "it goes on", "work", "[m0 m1 m2 m3]")
}

func TestPlainMessagesASourceForgotThatItSentComeTwiceWithAnEvent(t *testing.T) {
	l := lossLab(t)
	l.sendLater(t, "p0", "p1")
	lose := l.remember(t, "home")
	l.arrives(t)
	lose()
	l.arrives(t)
	l.wantReady(t, "plain messages have no number", "work", "[p0 p1 p0 p1]")
	l.wantEvents(t, "home", "transmission_repeats", "target", "queue:work")
	lose() // the new era as well
	l.arrives(t)
	l.wantReady(t, "again", "work", "[p0 p1 p0 p1 p0 p1]")
	l.wantEvents(t, "home", "transmission_repeats", "target", "queue:work") // the first of the two events is lost
}

func TestANumberThatASourceGivesAgainIsKnownAndNotSilent(t *testing.T) {
	l := lossLab(t)
	c := l.begin(t)
	lose := l.remember(t, "home")
	l.say(t, c, "m0")
	l.arrives(t)
	l.status(t, "work", broker.QueueOff)
	lose()
	l.say(t, c, "other", "m1")
	l.arrives(t)
	l.wantReady(t, "the number is taken", "work", "[m0 m1]")
	l.wantEvents(t, "work", "sequence_repeated", "message_id message_sequence_number", "other 0")
}

func TestMessagesThatATargetLostDoNotBlockTheirSuccessors(t *testing.T) {
	l := lossLab(t)
	c := l.begin(t)
	l.say(t, c, "m0")
	l.arrives(t)
	lose := l.remember(t, "work")
	l.status(t, "work", broker.QueueOff)
	l.say(t, c, "m1", "m2")
	l.arrives(t)
	lose()
	l.status(t, "work", broker.QueueOff)
	l.say(t, c, "m3")
	l.status(t, "work", broker.QueueActive)
	l.clock.Add(65_000)
	l.transmit(t)
	l.wantReady(t, "what is missing may be on its way", "work", "[m0]")
	l.arrives(t)
	l.wantReady(t, "it is lost", "work", "[m0 m3]")
	target := l.target(t, "m3")
	l.wantEvents(t, "work", "messages_lost", "conversation_handle from to", target+" 1 2")
	if e, err := l.b.Endpoint(t.Context(), target); err != nil || e.Waiting != 2 {
		t.Errorf("waiting at the target: %d, %v, want 2", e.Waiting, err)
	}
	l.end(t, target, 0)
	l.wantReady(t, "ended", "work", "[]")
	l.wantClean(t)
}

// target is the conversation of a message that waits on work.
func (l *lab) target(t *testing.T, id string) string {
	t.Helper()
	rows, err := l.b.Peek(t.Context(), "work", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range rows {
		if m.MessageID == id {
			return m.Conversation
		}
	}
	t.Fatalf("%s does not wait on work", id)
	return ""
}

func TestAConversationThatItsTargetLostFails(t *testing.T) {
	l := lossLab(t)
	c := l.begin(t)
	lose := l.remember(t, "work")
	l.say(t, c, "m0")
	l.arrives(t)
	lose()
	l.say(t, c, "m1", "m2")
	l.arrives(t)
	l.wantReady(t, "nobody has m0", "work", "[]")
	if e, err := l.b.Endpoint(t.Context(), c); err != nil || e.State != broker.StateError {
		t.Errorf("the initiator is in %v, %v", e.State, err)
	}
	rows, err := l.b.Peek(t.Context(), "home", 0, 10)
	if err != nil || len(rows) != 1 || !strings.Contains(string(rows[0].Body), "<Code>-8426</Code>") {
		t.Errorf("home holds %v, %v, want one Error -8426", rows, err)
	}
}

// A transmitter that hears that a body bounces, and dies, leaves it to the next to make the Error.
func TestABounceIsNotLostWithItsTransmitter(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		c := l.begin(t)
		l.status(t, "work", broker.QueueOff)
		l.say(t, c, "m0")
		l.status(t, "work", broker.QueueActive)
		e := l.head(t)
		e.fields["code"], e.fields["text"] = "-9615", "bad"
		for range 2 { // the second is the next transmitter
			a, err := l.b.arrive(t.Context(), l.b.prefix("home"), "//t/Work", "work", e, "")
			if err != nil || a[0] != "bounce" {
				t.Fatalf("arrive: %v, %v", a, err)
			}
		}
		if err := l.b.transmitDone(t.Context(), l.b.prefix("home"), "//t/Work", e, "bounce", "-9615", "bad"); err != nil {
			t.Fatal(err)
		}
		l.advance(time.Minute)
	})
}
