package redisbroker

import (
	"context"
	"crypto/rand"
	"errors"
	"sort"
	"strconv"
	"strings"
	"time"

	"parley/broker"
)

const (
	transmitLease = 5 * time.Second
	transmitBatch = 1000 // entries of one stream in one pass
)

// transmitAll moves on what waits in the transmission streams of a queue. It returns when to look again (ms; 0: nothing waits).
func (b *Broker) transmitAll(ctx context.Context, prefix string, rep *broker.KeepReport) (int64, error) {
	all, err := b.rdb.HGetAll(ctx, prefix+"txs").Result()
	if err != nil {
		return 0, b.fault("transmit", err)
	}
	targets := make([]string, 0, len(all))
	for t := range all {
		targets = append(targets, t)
	}
	sort.Strings(targets)
	var next int64
	for _, t := range targets {
		at, err := b.transmitStream(ctx, prefix, t, rep)
		if err != nil {
			return next, err
		}
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	return next, nil
}

// transmission is the head of a transmission stream, as txhead answers it.
type transmission struct {
	id, digest, era string
	refused         string // 1 when the target has refused it for a gap
	fields          map[string]string
	behind          bool // the target has called it behind
}

// transmitStream moves one stream strictly in order until it is empty, refused, or another transmitter's.
func (b *Broker) transmitStream(ctx context.Context, prefix, target string, rep *broker.KeepReport) (int64, error) {
	var behind transmission // what the target has just called so
	for range transmitBatch {
		a, err := b.repeatStrings(ctx, "txhead", prefix+"meta", b.now(), target, b.boot, transmitLease.Milliseconds(),
			behind.id, behind.digest, behind.era, rand.Text())
		if err != nil {
			return 0, err
		}
		switch a[0] {
		case "EMPTY":
			return 0, nil
		case "WAIT":
			return strconv.ParseInt(a[1], 10, 64)
		}
		e := transmission{id: a[1], digest: a[2], era: a[3], refused: a[4], fields: flatFields(a[5:])}
		at, err := b.transmitOne(ctx, prefix, target, &e)
		if err != nil || at != 0 {
			return at, err
		}
		behind = transmission{}
		if e.behind {
			behind = e
		} else {
			rep.Transmitted++
		}
	}
	return atOnce, nil
}

func flatFields(a []string) map[string]string {
	m := make(map[string]string, len(a)/2)
	for i := 0; i+1 < len(a); i += 2 {
		m[a[i]] = a[i+1]
	}
	return m
}

// transmitOne takes one entry to its target and removes it at the source. It returns when to try again, 0 when it is through.
func (b *Broker) transmitOne(ctx context.Context, prefix, target string, e *transmission) (int64, error) {
	m := e.fields
	if q, ok := strings.CutPrefix(target, "command:"); ok {
		if err := b.command(ctx, unescape(q), m); err != nil {
			return b.transmitFail(ctx, prefix, target, err.Error(), "")
		}
		return 0, b.transmitDone(ctx, prefix, target, e, "done", "", "")
	}
	queue, why, err := b.transmitTo(ctx, target)
	if err != nil {
		return 0, err
	}
	if queue == "" {
		if _, plain := strings.CutPrefix(target, "queue:"); plain {
			return 0, b.transmitDone(ctx, prefix, target, e, "bury", "MessagingEntityNotFound", why)
		}
		return b.transmitFail(ctx, prefix, target, why, "")
	}
	if m["code"] == "" && m["k"] == string(broker.KindApp) { // the service may have been unknown when it was sent
		h, _ := parseHeader("|0|||||" + m["rest"])
		ep := &epInfo{role: m["role"], far: unescape(m["to"]), contract: unescape(m["contract"])}
		m["code"], m["text"] = b.dir.arrival(ep, &broker.Outgoing{Type: unescape(h.typ), Body: []byte(m["body"])})
	}
	a, err := b.arrive(ctx, prefix, target, queue, e, "")
	if err == nil && a[0] == "anew" { // this client's directory is behind
		if err := b.dir.load(ctx, b); err != nil {
			return 0, err
		}
		a, err = b.arrive(ctx, prefix, target, queue, e, "")
	}
	if err != nil {
		return 0, err
	}
	return b.arrived(ctx, prefix, target, e, a, why)
}

// arrived does at the source what the target's answer a asks for.
func (b *Broker) arrived(ctx context.Context, prefix, target string, e *transmission, a []string, why string) (int64, error) {
	what, code, text := "done", "", ""
	switch a[0] {
	case "refused", "NOENT", "anew", "gap":
		if len(a) > 1 {
			why = a[1]
		}
		gap := ""
		if a[0] == "gap" {
			gap = e.digest
		}
		return b.transmitFail(ctx, prefix, target, why, gap)
	case "behind":
		e.behind = true
		return 0, nil
	case "bounce":
		what, code, text = "bounce", e.fields["code"], e.fields["text"]
	case "lost":
		what, code, text = "lost", a[1], a[2]
	case "skipped":
		what, code, text = "bury", "TransferGivenUp", "the transmission was given up"
	}
	return 0, b.transmitDone(ctx, prefix, target, e, what, code, text)
}

// transmitTo finds the queue that a target means now; "" with a status text when there is none.
func (b *Broker) transmitTo(ctx context.Context, target string) (queue, why string, err error) {
	if q, ok := strings.CutPrefix(target, "queue:"); ok {
		_, err := b.queueEntry(ctx, unescape(q))
		if broker.ExitCode(err) == broker.ExitNotFound {
			return "", "there is no queue " + q, nil
		}
		return unescape(q), "", err
	}
	s, ok, err := b.service(ctx, unescape(target))
	if err != nil {
		return "", "", err
	}
	if !ok {
		return "", "no queue serves " + target, nil
	}
	return s.Queue, "", nil
}

// arrive calls the target's side. mark "M" only marks the entry as given up. What the replicas of a durable target do not confirm is
// refused, so that the source keeps it.
func (b *Broker) arrive(ctx context.Context, source, target, queue string, e *transmission, mark string) ([]string, error) {
	key := b.prefix(queue) + "meta"
	b.dir.mu.RLock()
	number := b.dir.queues[queue].Number
	b.dir.mu.RUnlock()
	m, src := e.fields, source+target
	ctx, sure := b.confirming(ctx, queue)
	var a []string
	var err error
	if m["k"] == "Q" {
		a, err = b.repeatStrings(ctx, "arrive", key, b.now(), src, e.id, "Q", m["owner"], m["ttl"], m["delay"], m["to"], "", "", "", "0", m["rest"],
			m["body"], "", mark, number, e.digest, e.era, e.refused)
	} else {
		a, err = b.repeatStrings(ctx, "arrive", key, b.now(), src, e.id, m["k"], m["from"], m["role"], m["svc"], m["to"], m["toh"], m["contract"],
			m["expires"], m["seq"], m["rest"], m["body"], m["code"], mark, number, e.digest, e.era, e.refused)
	}
	if err == nil && !sure.met() && (a[0] == "stored" || a[0] == "known") {
		return []string{"refused", "the replicas did not confirm it in time"}, nil
	}
	return a, err
}

// transmitDone removes an entry at its source.
func (b *Broker) transmitDone(ctx context.Context, prefix, target string, e *transmission, what, code, text string) error {
	if what != "bounce" && what != "lost" { // the text of these becomes XML, a dead letter's part of a header
		code, text = escape(code), escape(text)
	}
	_, err := b.repeat(ctx, "txdone", prefix+"meta", b.now(), target, b.boot, e.id, what, code, text, e.digest)
	return b.fault("transmit", err)
}

// transmitFail has the stream wait. gap is the digest of an entry that was refused since one before it is missing, else "".
func (b *Broker) transmitFail(ctx context.Context, prefix, target, why, gap string) (int64, error) {
	a, err := b.repeatStrings(ctx, "txfail", prefix+"meta", b.now(), target, b.boot, escape(why), gap)
	if err != nil || a[0] == "LOST" {
		return 0, err
	}
	return strconv.ParseInt(a[0], 10, 64)
}

// retryTransmissions makes everything that waits for a target be tried at once: its queue was turned on, or its service appeared.
func (b *Broker) retryTransmissions(ctx context.Context, targets []string) error {
	for _, q := range b.dir.queueNames() {
		p := b.prefix(q)
		for _, t := range targets {
			a, err := b.repeatStrings(ctx, "txnow", p+"meta", b.now(), t)
			if err != nil {
				return err
			}
			if a[0] == "1" {
				b.hintDue(p, atOnce)
			}
		}
	}
	return nil
}

// command runs what a handler asked of another queue after its commit. It may run twice (a host died in between); what is done
// already is no error, and ON is guarded by the queue's epoch.
func (b *Broker) command(ctx context.Context, queue string, m map[string]string) error {
	switch m["what"] {
	case "end":
		err := b.End(ctx, m["handle"], broker.Ending{Code: int(num(m["code"])), Text: m["text"]}, 0)
		if errors.Is(err, broker.ErrUnknownConversation) || errors.Is(err, broker.ErrConversationState) {
			return nil
		}
		return err
	case "enable":
		if _, err := b.queueEntry(ctx, queue); err != nil {
			return nil //nolint:nilerr // the queue is gone: nothing to turn on
		}
		return b.enable(ctx, queue, broker.QueueActive, m["epoch"])
	}
	return nil
}
