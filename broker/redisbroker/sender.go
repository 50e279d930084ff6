package redisbroker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/broker"
)

// sender coalesces the sends of one client to one queue: while a call is under way, what comes next gathers and goes out
// together (group commit of appends). Calls are in order, each with the next counter, so a repeat is recognised. One goroutine makes
// them while there is something to send, so that a caller leaves when its own message is stored or its context ends.
//
// A call without an answer is made again, as it was, before anything newer, until its fate is known: the server tells whether
// it had it already.
type sender struct {
	b       *Broker
	queue   string
	key     string
	mu      sync.Mutex // guards the fields up to doubtful, and the jobs
	pending []*sendJob
	busy    bool
	// doubts are the messages of which a caller was told that it is unknown whether they are stored, by id; doubtful has their ids, oldest
	// first.
	doubts   map[string]doubt
	doubtful []string
	counter  int64 // of the next call; only the goroutine touches it
	works    *works
}

// sendJob is one Send call.
type sendJob struct {
	args  []any
	ids   []string
	n     int
	bytes int
	done  chan struct{} // closed when the caller can be told
	first int64
	err   error
	taken bool // it is, or was, in a call
	told  bool // done is closed
	// known is closed when it is known whether the messages are stored; nil unless somebody was told that it is unknown.
	known  chan struct{}
	stored bool
}

// doubt is one message of a job.
type doubt struct {
	job   *sendJob
	index int
}

const (
	maxDoubts = 1 << 16
	// repeatFor is how long a call without an answer is repeated: the server forgets a client's counter after an hour.
	repeatFor = 50 * time.Minute
)

// errNoAnswer says that a call may have been done.
var errNoAnswer = errors.New("no answer")

func (b *Broker) sender(queue string) *sender {
	b.sendMu.Lock()
	defer b.sendMu.Unlock()
	s := b.senders[queue]
	if s == nil {
		s = &sender{b: b, queue: queue, key: b.prefix(queue) + "meta", counter: 1, doubts: map[string]doubt{}, works: newWorks()}
		b.senders[queue] = s
	}
	return s
}

// unknown is the error of a call of which nobody knows whether it was done, with the ids of its messages; why says what became of it.
func (s *sender) unknown(ids []string, why error) error {
	e := broker.ErrUnknownStored.With("queue %q, ids %s; send the same again with these ids: what is stored already is not stored twice",
		s.queue, strings.Join(ids, ", "))
	if why == nil {
		return e
	}
	return fmt.Errorf("%w: %w", e, why)
}

// recall finds the messages of job that are in doubt from an earlier call, waits for their fate, and gives the numbers of those that
// are stored. It leaves the others in job and returns which they are.
func (s *sender) recall(ctx context.Context, job *sendJob, out []broker.Receipt) (rest []int, err error) {
	s.mu.Lock()
	found := map[int]doubt{}
	for i, id := range job.ids {
		if d, ok := s.doubts[id]; ok {
			found[i] = d
		}
		rest = append(rest, i)
	}
	s.mu.Unlock()
	if len(found) == 0 {
		return rest, nil
	}
	wait := time.NewTimer(sendTimeout)
	defer wait.Stop()
	for _, d := range found {
		select {
		case <-d.job.known:
		case <-wait.C:
			return nil, s.unknown(job.ids, nil)
		case <-ctx.Done():
			return nil, s.unknown(job.ids, ctx.Err())
		}
	}
	rest = rest[:0]
	args, ids := job.args, job.ids
	job.args, job.ids, job.n = nil, nil, 0
	for i := range ids {
		if d, ok := found[i]; ok && d.job.stored {
			out[i].SequenceNumber = d.job.first + int64(d.index)
			continue
		}
		rest = append(rest, i)
		job.args, job.ids, job.n = append(job.args, args[6*i:6*i+6]...), append(job.ids, ids[i]), job.n+1
	}
	return rest, nil
}

// forget ends the doubt about messages whose caller has been told now: the same ids again are new messages.
func (s *sender) forget(out []broker.Receipt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range out {
		delete(s.doubts, out[i].MessageID)
	}
}

// doubt notes that the caller of job is told that its fate is unknown.
func (s *sender) doubt(job *sendJob) {
	if job.known == nil {
		job.known = make(chan struct{})
	}
	for i, id := range job.ids {
		s.doubts[id] = doubt{job, i}
		s.doubtful = append(s.doubtful, id)
	}
	if n := len(s.doubtful) - maxDoubts; n > 0 {
		for _, id := range s.doubtful[:n] {
			delete(s.doubts, id)
		}
		s.doubtful = slices.Clone(s.doubtful[n:])
	}
}

// submit queues the job, and starts the goroutine unless it runs.
func (s *sender) submit(job *sendJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, job)
	if !s.busy {
		s.busy = true
		s.b.sends.Go(s.run)
	}
}

// await waits for the job, no longer than ctx.
func (s *sender) await(ctx context.Context, job *sendJob) error {
	select {
	case <-job.done:
		return job.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case job.told:
		return job.err
	case !job.taken:
		s.pending = slices.DeleteFunc(s.pending, func(j *sendJob) bool { return j == job })
		return fmt.Errorf("send to queue %q: nothing is stored: %w", s.queue, ctx.Err())
	}
	s.doubt(job)
	return s.unknown(job.ids, ctx.Err())
}

// flight is one call for several jobs.
type flight struct {
	args  []any
	jobs  []*sendJob
	since time.Time
	maybe bool // an earlier try of it may have been done
}

// run makes calls until nothing is pending.
func (s *sender) run() {
	var open *flight
	var p pauses
	for {
		if open == nil {
			if open = s.next(); open == nil {
				return
			}
			p = pauses{}
		}
		first, err := s.call(open)
		if s.finish(open, first, err) {
			open = nil
			continue
		}
		s.refuse()
		if time.Since(open.since) > repeatFor || !p.wait(s.b.life) {
			s.finish(open, 0, broker.ErrUnreachable)
			open = nil
		}
	}
}

// next makes the call of the next batch of pending jobs; nil when there are none: then the goroutine ends.
func (s *sender) next() *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	jobs := s.cut()
	if len(jobs) == 0 {
		s.busy = false
		return nil
	}
	n, size := 0, 4
	for _, j := range jobs {
		j.taken = true
		n += j.n
		size += len(j.args)
	}
	f := &flight{jobs: jobs, since: time.Now(), args: make([]any, 0, size)}
	f.args = append(f.args, s.b.now(), s.b.producer, s.counter, n)
	for _, j := range jobs {
		f.args = append(f.args, j.args...)
	}
	s.counter++
	return f
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

// finish tells the callers what became of a call, and reports whether that is known.
func (s *sender) finish(f *flight, first int64, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	unknown := errors.Is(err, errNoAnswer)
	for _, j := range f.jobs {
		if unknown {
			if !j.told {
				s.doubt(j)
				j.tell(s.unknown(j.ids, err))
			}
			continue
		}
		j.first, j.stored = first, err == nil
		first += int64(j.n)
		if !j.told {
			told := err
			if errors.Is(err, broker.ErrUnknownStored) { // the server has it, its replicas did not confirm it
				told = fmt.Errorf("%w; ids %s are on the master, and a failover may lose them: sent again they are stored a second time", err,
					strings.Join(j.ids, ", "))
			}
			j.tell(told)
		}
		if j.known != nil {
			close(j.known)
		}
	}
	return !unknown
}

func (j *sendJob) tell(err error) {
	j.err, j.told = err, true
	close(j.done)
}

// refuse tells all that is pending that nothing of it was sent, since the call before has no answer yet.
func (s *sender) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.pending {
		j.tell(broker.ErrUnreachable.With("send to queue %q: nothing is stored, since an earlier send has no answer yet", s.queue))
	}
	s.pending = nil
}

// call makes the append call, a few times. A lost reply is repeated with the same counter: the script answers the same number.
func (s *sender) call(f *flight) (int64, error) {
	ctx, cancel := context.WithTimeout(s.b.life, sendTimeout)
	defer cancel()
	sctx, sure := s.b.confirming(ctx, s.queue)
	v, err := s.b.known(sctx, &f.maybe, "append", s.key, f.args)
	if err != nil {
		return 0, fmt.Errorf("send to queue %q: %w", s.queue, err)
	}
	switch r := toStrings(v); r[0] {
	case "OK", "SAME":
		if !sure.met() {
			return 0, sure.unknown(s.queue)
		}
		return strconv.ParseInt(r[1], 10, 64)
	case "OFF":
		return 0, broker.ErrQueueDisabled.With("send to queue %q: its status is %s; switch it on with runtime queue enable", s.queue, r[1])
	case "NOENT":
		return 0, broker.ErrUnknownEntity.With("send to queue %q: it is gone from Redis; apply its definition again", s.queue)
	default:
		return 0, fmt.Errorf("send to queue %q: the server answered %q", s.queue, r[0])
	}
}

// known calls a script that recognises a repeat, at most maxCallTries times, until it answers. maybe notes that a try may have been done:
// then the error wraps errNoAnswer, else nothing was done.
func (b *Broker) known(ctx context.Context, maybe *bool, name, key string, args []any) (any, error) {
	var p pauses
	for {
		v, err := b.run(ctx, name, key, args...)
		if err == nil {
			return v, nil
		}
		*maybe = *maybe || maybeDone(err)
		if infrastructure(err) && p.tries+1 < maxCallTries && p.wait(ctx) {
			continue
		}
		if *maybe {
			return nil, fmt.Errorf("%w from %s", errNoAnswer, redact(b.opt.URL))
		}
		return nil, b.fault(name, err)
	}
}
