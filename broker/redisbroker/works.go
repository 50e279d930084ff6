package redisbroker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"parley/broker"
)

// works makes the units of work of one client on one queue from outside a handler, one after the other. As with sends, one without
// an answer is made again, as it was, before anything newer.
type works struct {
	turn   chan struct{} // has room while no call is under way
	number int64         // of the next call; like open and said only touched by who has the turn
	open   *workCall     // without an answer
	mu     sync.Mutex    // guards said, and left of each call
	said   map[string]*workCall
}

// workCall is one call of the script work.
type workCall struct {
	args  []any
	ids   []string
	key   string // equal for a repeat; "" when the same again is something new
	done  chan struct{}
	v     any
	err   error
	left  bool // its caller was told that the outcome is unknown
	maybe bool
}

func newWorks() *works { return &works{turn: make(chan struct{}, 1), said: map[string]*workCall{}} }

// work calls the script work; a lost reply is repeated with the same counter and answers the same. repeatable says that the same
// effects again are a repeat.
func (s *sender) work(ctx context.Context, c *turnCall, repeatable bool) (any, error) {
	select {
	case s.works.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("queue %q: nothing was done: %w", s.queue, ctx.Err())
	}
	call := &workCall{args: append([]any{c.neffects}, c.effects...), ids: c.ids, done: make(chan struct{})}
	if repeatable {
		call.key = fmt.Sprint(c.effects...)
	}
	s.b.sends.Go(func() {
		defer func() { <-s.works.turn }()
		s.doWork(call)
	})
	select {
	case <-call.done:
		return call.v, call.err
	case <-ctx.Done():
	}
	s.works.mu.Lock()
	defer s.works.mu.Unlock()
	select {
	case <-call.done:
		return call.v, call.err
	default:
		call.left = true
		return nil, s.unknown(call.ids, ctx.Err())
	}
}

// doWork settles the fate of the call before, then makes call, or tells what an equal one led to whose caller does not know.
func (s *sender) doWork(call *workCall) {
	w := s.works
	if w.open != nil {
		v, err := s.callWork(w.open)
		if errors.Is(err, errNoAnswer) {
			w.end(call, nil, broker.ErrUnreachable.With("queue %q: nothing was done, since an earlier call has no answer yet", s.queue))
			return
		}
		w.end(w.open, v, err)
		w.open = nil
	}
	w.mu.Lock()
	told := w.said[call.key]
	delete(w.said, call.key)
	w.mu.Unlock()
	if told != nil {
		w.end(call, told.v, told.err)
		return
	}
	w.number++
	call.args = append([]any{s.b.now(), s.b.direct(), escape(s.b.ns), s.b.producer + "/w", w.number}, call.args...)
	v, err := s.callWork(call)
	if !errors.Is(err, errNoAnswer) {
		w.end(call, v, err)
		return
	}
	w.open = call
	w.mu.Lock()
	defer w.mu.Unlock()
	if !call.left {
		call.left, call.err = true, s.unknown(call.ids, err)
		close(call.done)
	}
}

// end notes what a call led to. When its caller does not know, that is kept for a repeat.
func (w *works) end(call *workCall, v any, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if call.left {
		if call.key != "" {
			w.said[call.key] = &workCall{v: v, err: err}
		}
		return
	}
	call.v, call.err = v, err
	close(call.done)
}

func (s *sender) callWork(call *workCall) (any, error) {
	ctx, cancel := context.WithTimeout(s.b.life, sendTimeout)
	defer cancel()
	sctx, sure := s.b.confirming(ctx, s.queue)
	v, err := s.b.known(sctx, &call.maybe, "work", s.key, call.args)
	if err == nil && !sure.met() {
		return nil, sure.unknown(s.queue, call.ids...)
	}
	return v, err
}
