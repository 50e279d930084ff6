package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/broker"
	"parley/broker/redisbroker"
)

// shape is the load of a scenario.
type shape struct {
	sessions, dialogs int           // conversations
	perSecond         int           // messages
	work              time.Duration // a handler takes up to this
	pad               int           // bytes that are added to a body
}

var normal = shape{sessions: 120, dialogs: 60, perSecond: 1200, work: 3 * time.Millisecond}

// producers is how many send at a time, each for conversations of its own.
const producers = 4

// delayed is how much later than its sending every delayed message is due.
const delayed = time.Second

// load sends numbered messages until it is told to stop, and repeats each that was not accepted until it is.
type load struct {
	b     *redisbroker.Broker
	shape shape
	sent  atomic.Int64 // accepted
	slow  atomic.Int64 // longest call, ns

	mu       sync.Mutex     // guards the fields below
	accepted map[string]int // conversation → how many of its messages were accepted, all from 0 on
	refused  map[string]int // what sends were refused with → how often
	open     bool           // while producers begin new messages
}

// stream is one conversation of a producer: messages 0, 1, 2, …
type stream struct {
	name   string // its first letter tells its kind: s session, g dialog, p plain, d plain and delayed
	handle string
	next   int
}

func (l *load) run(ctx context.Context) error {
	l.accepted, l.refused, l.open = map[string]int{}, map[string]int{}, true
	errs := make(chan error, producers)
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			if err := l.produce(ctx, p); err != nil {
				errs <- err
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

// stop lets producers finish the messages that they have begun.
func (l *load) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = false
}

func (l *load) going(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open && ctx.Err() == nil
}

// produce sends for every producers-th conversation, a few at a time, at its share of the rate.
func (l *load) produce(ctx context.Context, p int) error {
	var streams []*stream
	for i := p; i < l.shape.sessions; i += producers {
		streams = append(streams, &stream{name: fmt.Sprint("s", i)})
	}
	for i := p; i < l.shape.dialogs; i += producers {
		s := &stream{name: fmt.Sprint("g", i)}
		if err := l.until(ctx, func(ctx context.Context) error { return l.begin(ctx, s) }); err != nil {
			return err
		}
		streams = append(streams, s)
	}
	streams = append(streams, &stream{name: fmt.Sprint("p", p)}, &stream{name: fmt.Sprint("d", p)})
	const batch = 10
	tick := time.NewTicker(time.Second * batch * producers / time.Duration(l.shape.perSecond))
	defer tick.Stop()
	for at := 0; l.going(ctx); at += batch {
		for i := range batch {
			if err := l.send(ctx, streams[(at+i)%len(streams)]); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

func (l *load) begin(ctx context.Context, s *stream) error {
	ep, err := l.b.Begin(ctx, broker.Dialog{From: "//chaos/Home", To: "//chaos/Ledger", Lifetime: broker.Forever})
	if err == nil {
		s.handle = ep.Handle
	}
	return err
}

// send sends the next message of a stream, and the same one again until it is accepted.
func (l *load) send(ctx context.Context, s *stream) error {
	ms := 0
	if most := int(l.shape.work / time.Millisecond); most > 0 {
		ms = rand.IntN(most + 1)
	}
	body := fmt.Sprintf("%s %d %d %d", s.name, s.next, time.Now().UnixMilli(), ms)
	if l.shape.pad > 0 {
		body += " " + strings.Repeat("x", l.shape.pad)
	}
	m := broker.Outgoing{Body: []byte(body), MessageID: fmt.Sprintf("%s-%d", s.name, s.next)}
	if s.name[0] == 'd' {
		m.Delay = delayed
	}
	err := l.until(ctx, func(ctx context.Context) error {
		var err error
		switch s.name[0] {
		case 'g':
			_, err = l.b.SendOn(ctx, s.handle, m)
		case 's':
			m.SessionID = s.name
			_, err = l.b.Send(ctx, "in", m)
		default:
			_, err = l.b.Send(ctx, "in", m)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("send %s: %w", m.MessageID, err)
	}
	s.next++
	l.sent.Add(1)
	l.mu.Lock()
	l.accepted[s.name] = s.next
	l.mu.Unlock()
	return nil
}

// sendLimit bounds one call, and how long one message is tried: a load that nobody takes is a failed scenario.
const (
	callLimit = 5 * time.Second
	sendLimit = 90 * time.Second
)

// until makes a call until it succeeds.
func (l *load) until(ctx context.Context, call func(context.Context) error) error {
	begun := time.Now()
	for {
		one, cancel := context.WithTimeout(ctx, callLimit)
		t0 := time.Now()
		err := call(one)
		cancel()
		if d := int64(time.Since(t0)); d > l.slow.Load() {
			l.slow.Store(d)
		}
		if err == nil {
			return nil
		}
		l.mu.Lock()
		l.refused[reasonOf(err)]++
		l.mu.Unlock()
		if ctx.Err() != nil || time.Since(begun) > sendLimit {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// reasonOf is the beginning of an error's text, up to its first colon.
func reasonOf(err error) string {
	s, _, _ := strings.Cut(err.Error(), ":")
	return s
}
