package redisbroker

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"parley/broker"
)

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
	snd := b.sender(queue)
	rest, err := snd.recall(ctx, job, out)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		snd.submit(job)
		if err := snd.await(ctx, job); err != nil {
			return nil, err
		}
		for i, k := range rest {
			out[k].SequenceNumber = job.first + int64(i)
		}
	}
	if len(rest) < len(out) {
		snd.forget(out)
	}
	return out, nil
}

func (b *Broker) encodeOutgoing(job *sendJob, m *broker.Outgoing, limit int, r *broker.Receipt) error {
	if err := checkOutgoing(m, limit); err != nil {
		return err
	}
	r.MessageID = m.MessageID
	if r.MessageID == "" {
		r.MessageID = b.newMessageID()
	}
	job.ids = append(job.ids, r.MessageID)
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
