package redisbroker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/broker"
)

// sender coalesces the sends of one client to one queue: while a call is under way, what comes next gathers and goes out
// together (group commit of appends). Calls are in order, each with the next counter, so a repeat is recognised.
type sender struct {
	b       *Broker
	queue   string
	key     string
	mu      sync.Mutex // guards pending, busy
	pending []*sendJob
	busy    bool
	counter int64      // of the next call; only the goroutine that is busy touches it
	workMu  sync.Mutex // guards works, and keeps units of work of this client in order
	works   int64
}

// sendJob is one Send call.
type sendJob struct {
	args  []any
	n     int
	bytes int
	done  chan struct{}
	first int64
	err   error
}

const (
	maxBatch      = 512     // messages in one append call
	maxBatchBytes = 4 << 20 // bytes in one append call
	sendTimeout   = 10 * time.Second
)

var idCounter atomic.Int64

// newMessageID makes the id of a message that has none from its sender. It is short: it stands in every entry, and Redis
// rounds the memory of a dozen entries up to the allocator's next size.
func (b *Broker) newMessageID() string {
	return b.producer[:10] + strconv.FormatInt(idCounter.Add(1), 36)
}

func (b *Broker) sender(queue string) *sender {
	b.sendMu.Lock()
	defer b.sendMu.Unlock()
	s := b.senders[queue]
	if s == nil {
		s = &sender{b: b, queue: queue, key: b.prefix(queue) + "meta", counter: 1}
		b.senders[queue] = s
	}
	return s
}

// Send implements broker.Sender.
func (b *Broker) Send(ctx context.Context, queue string, msgs ...broker.Outgoing) ([]broker.Receipt, error) {
	if len(msgs) == 0 {
		return nil, nil
	}
	if p := broker.ParsePath(queue); p.Sub != broker.SubNone {
		return nil, broker.ErrDeadLetterSend.With("%s", queue)
	}
	e, err := b.queueEntry(ctx, queue)
	if err != nil {
		return nil, err
	}
	job := &sendJob{done: make(chan struct{}), args: make([]any, 0, 6*len(msgs)), n: len(msgs)}
	out := make([]broker.Receipt, len(msgs))
	for i := range msgs {
		if err := b.encodeOutgoing(job, &msgs[i], e.Settings.MaxMessageSize, &out[i]); err != nil {
			return nil, err
		}
	}
	b.sender(queue).submit(ctx, job)
	select {
	case <-job.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var unknown *broker.Error
	if errors.As(job.err, &unknown) && errors.Is(unknown, broker.ErrUnknownStored) {
		return nil, unknown.With("message ids %s", messageIDs(out))
	}
	if job.err != nil {
		return nil, job.err
	}
	for i := range out {
		out[i].SequenceNumber = job.first + int64(i)
	}
	return out, nil
}

// messageIDs lists message ids for an error.
func messageIDs(sent []broker.Receipt) string {
	ids := make([]string, len(sent))
	for i := range sent {
		ids[i] = sent[i].MessageID
	}
	return strings.Join(ids, ", ")
}

func (b *Broker) encodeOutgoing(job *sendJob, m *broker.Outgoing, limit int, r *broker.Receipt) error {
	if err := checkOutgoing(m, limit); err != nil {
		return err
	}
	r.MessageID = m.MessageID
	if r.MessageID == "" {
		r.MessageID = b.newMessageID()
	}
	owner := ""
	if m.SessionID != "" {
		owner = "s:" + escape(m.SessionID)
	}
	due := ""
	if !m.At.IsZero() {
		due = strconv.FormatInt(m.At.UnixMilli(), 10)
	}
	job.args = append(job.args, owner, msArg(m.TTL), msArg(m.Delay), due, encodeRest(m, r.MessageID), m.Body)
	job.bytes += len(m.Body) + 100
	return nil
}

// checkOutgoing refuses what no queue would take, before anything is sent.
func checkOutgoing(m *broker.Outgoing, limit int) error {
	if n := m.Size(); n > limit {
		return broker.ErrMessageSize.With("%d bytes of body and properties, the limit is %d (max_message_size)", n, limit)
	}
	if m.MessageID != "" {
		if err := broker.CheckTypeName("message id", m.MessageID); err != nil {
			return err
		}
	}
	if m.SessionID != "" {
		if err := broker.CheckTypeName("session id", m.SessionID); err != nil {
			return err
		}
	}
	if m.Type != "" {
		if err := broker.CheckTypeName("message type", m.Type); err != nil {
			return err
		}
	}
	if m.TTL < 0 || m.Delay < 0 {
		return broker.ErrInvalid.With("a time to live or delay below 0")
	}
	if m.Delay > 0 && !m.At.IsZero() {
		return broker.ErrInvalid.With("both a delay and an enqueue time")
	}
	return nil
}

func msArg(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	return strconv.FormatInt(max(1, d.Milliseconds()), 10)
}

// submit queues the job; the goroutine that finds nobody busy sends for everybody until nothing is pending.
func (s *sender) submit(ctx context.Context, job *sendJob) {
	s.mu.Lock()
	s.pending = append(s.pending, job)
	if s.busy {
		s.mu.Unlock()
		return
	}
	s.busy = true
	s.mu.Unlock()
	for {
		s.mu.Lock()
		jobs := s.cut()
		if len(jobs) == 0 {
			s.busy = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		// The batch may hold other callers' messages: it does not end with this caller's context.
		cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
		s.flush(cctx, jobs)
		cancel()
	}
}

// cut takes the next batch off the pending jobs.
func (s *sender) cut() []*sendJob {
	n, bytes, i := 0, 0, 0
	for ; i < len(s.pending); i++ {
		j := s.pending[i]
		if i > 0 && (n+j.n > maxBatch || bytes+j.bytes > maxBatchBytes) {
			break
		}
		n, bytes = n+j.n, bytes+j.bytes
	}
	jobs := s.pending[:i:i]
	s.pending = s.pending[i:]
	return jobs
}

// flush makes one append call for jobs. A lost reply is repeated with the same counter: the script answers the same number.
func (s *sender) flush(ctx context.Context, jobs []*sendJob) {
	n, size := 0, 4
	for _, j := range jobs {
		n += j.n
		size += len(j.args)
	}
	args := make([]any, 0, size)
	args = append(args, s.b.now(), s.b.producer, s.counter, n)
	for _, j := range jobs {
		args = append(args, j.args...)
	}
	first, err := s.call(ctx, args)
	s.counter++
	for _, j := range jobs {
		j.first, j.err = first, err
		first += int64(j.n)
		close(j.done)
	}
}

func (s *sender) call(ctx context.Context, args []any) (int64, error) {
	ctx, sure := s.b.confirming(ctx, s.queue)
	r, err := s.b.repeatStrings(ctx, "append", s.key, args...)
	if err != nil {
		return 0, fmt.Errorf("send to queue %q: %w", s.queue, err)
	}
	switch r[0] {
	case "OK", "SAME":
		if !sure.met() {
			return 0, sure.unknown(s.queue)
		}
		return strconv.ParseInt(r[1], 10, 64)
	case "OFF":
		return 0, broker.ErrQueueDisabled.With("send to queue %q: its status is %s; switch it on with runtime queue enable", s.queue, r[1])
	case "NOENT":
		return 0, broker.ErrUnknownEntity.With("send to queue %q: it is gone from Redis; apply its definition again", s.queue)
	}
	return 0, fmt.Errorf("send to queue %q: the server answered %q", s.queue, r[0])
}

// work calls the script work; a lost reply is repeated with the same counter and answers the same.
func (s *sender) work(ctx context.Context, c *turnCall) (any, error) {
	s.workMu.Lock()
	defer s.workMu.Unlock()
	s.works++
	ctx, sure := s.b.confirming(ctx, s.queue)
	args := append([]any{s.b.now(), s.b.direct(), escape(s.b.ns), s.b.producer + "/w", s.works, c.neffects}, c.effects...)
	v, err := s.b.repeat(ctx, "work", s.key, args...)
	if err == nil && !sure.met() {
		return nil, sure.unknown(s.queue, c.ids...)
	}
	return v, err
}
