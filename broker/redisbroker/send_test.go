package redisbroker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// eachServer opens a broker with a queue q on the real server and on the embedded one.
func eachServer(t *testing.T, fault func(script string) Fault, f func(t *testing.T, b *Broker)) {
	onBothServers(t, func(t *testing.T, b *Broker) {
		b.rdb.AddHook(&wire{choose: fault, scripts: b.scripts})
		defs := broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("q", false)}}
		if _, err := b.Apply(t.Context(), defs, false); err != nil {
			t.Fatal(err)
		}
		f(t, b)
	})
}

// everyThirdAppend lets every third append call through and loses the reply, or the call, of the others.
func everyThirdAppend(script string, n *atomic.Int64) Fault {
	if script != "append" {
		return NoFault
	}
	switch n.Add(1) % 3 {
	case 1:
		return LoseReply
	case 2:
		return LoseCall
	}
	return NoFault
}

// TestConcurrentSendsGetNumbersWithoutGaps sends from many goroutines at once: the calls are coalesced, every caller gets the number
// its own message has, and lost replies double nothing.
func TestConcurrentSendsGetNumbersWithoutGaps(t *testing.T) {
	const senders, each = 32, 25
	var calls atomic.Int64
	for what, fault := range map[string]func(string) Fault{
		"all goes well": func(s string) Fault {
			if s == "append" {
				calls.Add(1)
			}
			return NoFault
		},
		"two of three calls are lost": func(s string) Fault { return everyThirdAppend(s, &calls) },
	} {
		t.Run(what, func(t *testing.T) {
			eachServer(t, fault, func(t *testing.T, b *Broker) {
				calls.Store(0)
				want := sendFromMany(t, b, senders, each)
				if n := calls.Load(); n >= senders*each {
					t.Errorf("%d calls for %d sends: nothing was coalesced", n, senders*each)
				}
				got, err := b.Peek(t.Context(), "q", 0, 2*senders*each)
				if err != nil {
					t.Fatal(err)
				}
				if len(got) != senders*each {
					t.Fatalf("got %d messages, want %d", len(got), senders*each)
				}
				for i, m := range got {
					if m.SequenceNumber != int64(i+1) || string(m.Body) != want[m.SequenceNumber] {
						t.Fatalf("message %d: got number %d and %q, want %q", i+1, m.SequenceNumber, m.Body, want[m.SequenceNumber])
					}
				}
			})
		})
	}
}

// sendFromMany sends each messages from every sender, two at a time now and then, and returns number → body as receipts tell.
func sendFromMany(t *testing.T, b *Broker, senders, each int) map[int64]string {
	t.Helper()
	var mu sync.Mutex // guards sent
	sent := map[int64]string{}
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			last := int64(0)
			for i := 0; i < each; i++ {
				msgs := []broker.Outgoing{{Body: fmt.Appendf(nil, "%d/%d", s, i)}}
				if i%5 == 0 && i+1 < each {
					i++
					msgs = append(msgs, broker.Outgoing{Body: fmt.Appendf(nil, "%d/%d", s, i)})
				}
				receipts, err := b.Send(context.Background(), "q", msgs...)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for k, r := range receipts {
					if sent[r.SequenceNumber] != "" || r.SequenceNumber <= last {
						t.Errorf("number %d was given twice, or not in the order of the calls (after %d)", r.SequenceNumber, last)
					}
					sent[r.SequenceNumber], last = string(msgs[k].Body), r.SequenceNumber
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return sent
}

// TestASendThatIsGivenUpMayHaveArrivedOnce loses every reply: the caller learns that the outcome is unknown, and the message is there
// once, not once a try.
func TestASendThatIsGivenUpMayHaveArrivedOnce(t *testing.T) {
	lose := func(script string) Fault {
		if script == "append" {
			return LoseReply
		}
		return NoFault
	}
	eachServer(t, lose, func(t *testing.T, b *Broker) {
		_, err := b.Send(t.Context(), "q", broker.Outgoing{Body: []byte("once")})
		if !errors.Is(err, broker.ErrUnknownStored) || errors.Is(err, broker.ErrUnreachable) || broker.ExitCode(err) != broker.ExitFailed {
			t.Fatalf("got %v, want %v", err, broker.ErrUnknownStored)
		}
		got, err := b.Peek(t.Context(), "q", 0, 10)
		if err != nil || len(got) != 1 {
			t.Fatalf("got %d messages, %v; want 1", len(got), err)
		}
	})
}

// TestABatchOfOneConversationSeesItsOwnCreation is the first trap of the protocol: two sends of one conversation in the call that
// makes its target.
func TestABatchOfOneConversationSeesItsOwnCreation(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		p := newPlay(t, "redis://"+c.Options().Addr)
		p.step(false, "apply a:A b:B", nil)
		effects := []string{`effect 1 B $A1 A B DEFAULT g:$A1 "" ""`}
		for i := range 5 {
			effects = append(effects, fmt.Sprintf(`effect 1 S $A1 m%d|| x "" ""`, i))
		}
		p.step(false, "work a d P 1", effects)
		got, err := p.b.Peek(t.Context(), "b", 0, 10)
		if err != nil || len(got) != 5 {
			t.Fatalf("got %d messages, %v; want 5", len(got), err)
		}
		for i, m := range got {
			if m.MessageID != fmt.Sprintf("m%d", i) || m.MessageSeq != int64(i) {
				t.Errorf("message %d: got %s, number %d of the conversation", i, m.MessageID, m.MessageSeq)
			}
		}
	})
}

// TestAGroupHandedOverIsNotHandedOutAgain is the second and third trap: a lock that the settlement changes is seen by the receive of
// the same call, and two units of one group in one settlement hand over once.
func TestAGroupHandedOverIsNotHandedOutAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		p := newPlay(t, "redis://"+c.Options().Addr)
		p.step(false, "apply q", nil)
		p.step(false, `append q P 1 3 s:x "" "" "" m1|| a s:x "" "" "" m2|| b s:x "" "" "" m3|| c`, nil)
		p.step(false, "register q r1 10000 3 4", nil)
		p.step(false, "turn q r1 free=0", nil)
		p.step(false, `turn q r1 free=1,2 win="0 1-0 s:x\n"`, nil)
		p.step(false, `append q P 2 1 s:x "" "" "" m4|| d`, nil)
		// The unit's messages are told as two units of the group, as a reader would that does not keep them together.
		p.step(false, "turn q r1 free=0,1,2 units=1-0@s:x;1-0@s:x bytes=1", nil)
		s, err := p.b.Snapshot(t.Context(), "q")
		if err != nil {
			t.Fatal(err)
		}
		held := 0
		for _, m := range s.Messages {
			if m.Place == broker.PlaceHeld {
				held++
			}
		}
		if held != 1 || !s.Locks["s:x"].More {
			t.Errorf("got %d messages in units and lock %+v; want 1 and more waiting", held, s.Locks["s:x"])
		}
	})
}
