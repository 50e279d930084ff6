package redisbroker

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/broker"
)

// reader implements broker.Reader: one name, its units, and the repair of unknown outcomes.
type reader struct {
	b       *Broker
	queue   string
	prefix  string
	key     string
	slots   int
	lease   time.Duration
	flags   string
	mu      sync.Mutex // guards the fields up to freed: Renew may run beside a Turn that resumes
	name    string
	next    string // the new name of a resume that has no answer yet
	last    int64  // number of the last answered call that settled or handed out something: the server must have the same
	gone    bool
	freed   bool // what it held was given back, or somebody is at it
	held    map[uint64]*held
	nextID  uint64
	runs    map[string]int // units in a row of a group, for fairness
	autoEnd bool
	call    string // number of the turn call that is made, "" before it was sent
	calls   int64  // how many were made
	// withState says whether the units of the reply being read carry state.
	withState bool
	bodies    []any // of the reply being read
	wantsEps  bool  // the next turn's reply is to carry endpoints
	noGroup   error // why a group that was lost could not be made again yet
	// returns are units that were handed out to this reader and not by it, because what belongs to them could not be looked up:
	// unseen says why. The next turn gives them back.
	returns []*broker.Unit
	unseen  error
	plain   bool                // the next turn may be one of plainTurn
	noPlain bool                // no turn may, any more: something was read that the script plain cannot count
	broken  map[string]bool     // refs in the reply being read that are no messages
	aside   []broker.Settlement // units that no handler may see: the next turn settles them
}

// held is a unit this reader has, with what settling it needs.
type held struct {
	unit  *broker.Unit
	atts  bool // its messages have stored counts, to be dropped at commit
	alone bool // uncertain: nothing else may go into its slot
	bytes int
}

// hotRun is how many units of one group a reader takes in a row before it lets others have a turn.
const hotRun = 64

// OpenReader implements broker.Readers.
func (b *Broker) OpenReader(ctx context.Context, queue string, opt broker.ReaderOptions) (broker.Reader, error) {
	e, err := b.queueEntry(ctx, queue)
	if err != nil {
		return nil, err
	}
	if opt.Lease <= 0 {
		opt.Lease = broker.DefaultLease
	}
	limit := opt.Limit
	if limit <= 0 {
		limit = opt.Slots
	}
	r := b.newReader(b.prefix(queue), queue, opt.Lease)
	r.autoEnd = e.Settings.AutoEnd
	if !opt.NoState {
		r.flags += "s"
	}
	for range maxCallTries {
		v, err := b.run(ctx, "register", r.key, b.now(), r.name, opt.Lease.Milliseconds(), opt.Slots, limit)
		if infrastructure(err) { // the orphan, if there is one, holds no messages, but slots
			_ = b.giveBack(ctx, r.key, opt.Lease, r.name)
			r.name = b.nextName()
			continue
		}
		if err != nil {
			return nil, b.fault("open a reader on "+queue, err)
		}
		switch s, _ := v.(string); s {
		case "NOENT":
			return nil, broker.ErrUnknownEntity.With("queue %q is gone from Redis", queue)
		case "OFF":
			return nil, broker.ErrQueueDisabled.With("queue %q", queue)
		case "EXISTS":
			r.name = b.nextName()
		default:
			s, r.plain = strings.CutSuffix(s, " plain")
			r.slots, err = strconv.Atoi(s)
			if err != nil || r.slots == 0 {
				return nil, err
			}
			return r, nil
		}
	}
	return nil, broker.ErrUnreachable.With("open a reader on queue %q", queue)
}

func (b *Broker) newReader(prefix, queue string, lease time.Duration) *reader {
	r := &reader{
		b: b, queue: queue, prefix: prefix, key: prefix + "meta", lease: lease, name: b.nextName(), held: map[uint64]*held{},
		runs: map[string]int{}, wantsEps: true,
	}
	if !b.cluster {
		r.flags = "d"
	}
	return r
}

func (b *Broker) nextName() string { return fmt.Sprintf("%s:%d", b.boot, b.readerN.Add(1)) }

// Name implements broker.Reader.
func (r *reader) Name() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.name
}

// Slots implements broker.Reader.
func (r *reader) Slots() int { return r.slots }

// Turn implements broker.Reader. What it settles on a queue with durable counts as settled though the replicas do not confirm it.
func (r *reader) Turn(ctx context.Context, req broker.TurnRequest) (broker.TurnReply, error) {
	if len(req.Settle) == 0 {
		return r.turn(ctx, req)
	}
	sctx, sure := r.b.confirming(ctx, r.queue)
	rep, err := r.turn(sctx, req)
	if err == nil {
		r.b.settled(ctx, r.queue, sure)
	}
	return rep, err
}

// turn is a Turn, repeated until its outcome is known.
func (r *reader) turn(ctx context.Context, req broker.TurnRequest) (broker.TurnReply, error) {
	if r.isGone() {
		return broker.TurnReply{}, broker.ErrReaderClosed
	}
	if err := r.mend(ctx); err != nil {
		return broker.TurnReply{}, r.failed(err)
	}
	var final map[uint64]broker.SettleResult // what a lost reply had settled
	var wait patience
	pending := r.withReturns(req.Settle)
	for {
		rep, err := r.once(ctx, req, pending)
		if err == nil {
			return mergeResults(req.Settle, final, rep), nil
		}
		if passesBy(err) && wait.more(ctx, r.lease) {
			continue
		}
		if !maybeDone(err) || ctx.Err() != nil && len(pending) == 0 {
			return broker.TurnReply{}, r.failed(err)
		}
		still, codes, err := r.resume(ctx, pending)
		if err != nil {
			return broker.TurnReply{}, r.failed(err)
		}
		if final == nil {
			final = make(map[uint64]broker.SettleResult, len(req.Settle))
		}
		order := unitOrder(pending)
		var open []broker.Settlement
		for i, s := range pending {
			if still[s.Unit.ID] {
				open = append(open, s)
			} else { // the call had been executed: it is settled
				delete(r.held, s.Unit.ID)
				final[s.Unit.ID] = settleResult(&pending[i], codes[order[i]])
			}
		}
		pending = open
	}
}

// unitOrder returns the number that the script gives each settlement: plain commits, commits of groups, then the others.
func unitOrder(settle []broker.Settlement) []int {
	out, n := make([]int, len(settle)), 0
	for _, pass := range []func(*broker.Settlement) bool{
		func(s *broker.Settlement) bool { return s.Verdict == broker.VerdictCommit && s.Unit.Group == "" },
		func(s *broker.Settlement) bool { return s.Verdict == broker.VerdictCommit && s.Unit.Group != "" },
		func(s *broker.Settlement) bool { return s.Verdict != broker.VerdictCommit },
	} {
		for i := range settle {
			if pass(&settle[i]) {
				n++
				out[i] = n
			}
		}
	}
	return out
}

func mergeResults(settle []broker.Settlement, final map[uint64]broker.SettleResult, rep broker.TurnReply) broker.TurnReply {
	if len(final) == 0 {
		rep.Results = rep.Results[:len(settle)] // not those of what the reader gave back by itself
		return rep
	}
	for _, x := range rep.Results {
		if x.Unit == nil { // the reply could not be read
			continue
		}
		if _, told := final[x.Unit.ID]; !told {
			final[x.Unit.ID] = x
		}
	}
	rep.Results = rep.Results[:0]
	for _, s := range settle {
		rep.Results = append(rep.Results, final[s.Unit.ID])
	}
	return rep
}

func (r *reader) isGone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// failed ends the reader's life on this side: whatever it held is lost to it.
func (r *reader) failed(err error) error {
	r.mu.Lock()
	r.gone = true
	r.mu.Unlock()
	return r.b.fault("turn on queue "+r.queue, err)
}

// once makes one turn call.
func (r *reader) once(ctx context.Context, req broker.TurnRequest, settle []broker.Settlement) (broker.TurnReply, error) {
	if _, sure := ctx.Value(confirmationKey{}).(*confirmation); !sure && r.plainly(settle) {
		if rep, done, err := r.plainTurn(ctx, req, settle); done || err != nil {
			return rep, err
		}
	}
	r.call = ""
	args, order, err := r.turnArgs(ctx, req, settle)
	if err != nil {
		return broker.TurnReply{}, err
	}
	v, err := r.run(ctx, "turn", r.key, args...)
	if err != nil {
		return broker.TurnReply{}, err
	}
	s := r.text(v)
	if err := r.refusal(s); err != nil {
		return broker.TurnReply{}, err
	}
	rep, err := r.parse(ctx, s, settle, order)
	if err != nil {
		return rep, err
	}
	return rep, nil
}

// answered notes that the server has answered the call that was made; marking says that it settled or handed out something.
func (r *reader) answered(marking bool) {
	if marking {
		r.mu.Lock()
		r.last = r.calls
		r.mu.Unlock()
	}
}

// refusal is the error a turn's one-word answer stands for; nil for a reply.
func (r *reader) refusal(s string) error {
	switch s {
	case "FENCED", "EXISTS":
		return broker.ErrLockLost.With("reader %s of queue %q: its lease has ended, or the server lost its last writes", r.name, r.queue)
	case "NOENT":
		return broker.ErrUnknownEntity.With("queue %q is gone from Redis", r.queue)
	}
	return nil
}

// callNumber names one turn call: a reader counts its calls.
func (r *reader) callNumber() string {
	r.calls++
	r.call = strconv.FormatInt(r.calls, 10)
	return r.call
}

// callNumber names one call of a script; it is unique among all clients, since a token may be settled by anybody.
func (b *Broker) callNumber() string { return b.boot + "/" + strconv.FormatInt(b.callN.Add(1), 36) }

// lastNumber is what the scripts compare with the reader's record.
func (r *reader) lastNumber() string { return strconv.FormatInt(r.last, 10) }

// Renew implements broker.Reader.
func (r *reader) Renew(ctx context.Context) error {
	r.mu.Lock()
	name, gone, last := r.name, r.gone, r.lastNumber()
	r.mu.Unlock()
	if gone {
		return broker.ErrReaderClosed
	}
	var v any
	err := patiently(ctx, r.lease/2, infrastructure, func(ctx context.Context) (err error) {
		v, err = r.run(ctx, "renew", r.key, r.b.now(), name, r.lease.Milliseconds(), last)
		return err
	})
	if err != nil {
		return r.b.fault("renew the lease on "+r.queue, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// A resume that has no answer yet may have been done: then the old name is gone, which says nothing.
	if v == "FENCED" && r.name == name && r.next == "" {
		return broker.ErrLockLost.With("reader %s of queue %q: its lease has ended, or the server lost its last writes", name, r.queue)
	}
	return nil
}
