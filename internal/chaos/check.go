package main

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"parley/broker"
)

// verdict is one row of the table.
type verdict struct {
	name      string
	sent      int64
	faults    int
	redisLost int // what Redis itself lost: accepted, and gone with the end of its append-only file
	lost      int
	doubled   int
	order     int // handled out of order
	stranded  int // left behind
	slowest   time.Duration
	late      time.Duration // the latest delayed message
	slowSend  time.Duration
	notes     []string
}

func (v *verdict) failed() bool {
	return v.lost+v.doubled+v.order+v.stranded > 0 || len(v.notes) > 0
}

func (v *verdict) note(format string, a ...any) { v.notes = append(v.notes, fmt.Sprintf(format, a...)) }

// drainLimit is how long after the last fault everything must have been handled.
const drainLimit = time.Minute

// drain waits until nothing is left to handle, and counts what is.
func (w *world) drain(v *verdict) {
	deadline := time.Now().Add(drainLimit)
	for {
		left, err := w.left()
		if err == nil && left == 0 {
			return
		}
		if time.Now().After(deadline) || w.t.ctx.Err() != nil {
			v.stranded = left
			if err != nil {
				v.note("the queues cannot be read: %v", err)
			}
			return
		}
		w.rest(100 * time.Millisecond)
	}
}

func (w *world) left() (int, error) {
	n := int64(0)
	for _, q := range []string{"in", "home"} {
		i, err := w.check.Queue(w.t.ctx, q)
		if err != nil {
			return 0, err
		}
		n += i.Counts.Total - i.Counts.DeadLetter
	}
	return int(n), nil
}

// judge compares what was handled with what was accepted.
func (w *world) judge(ctx context.Context, l *load, v *verdict) error {
	for _, q := range []string{"in", "home", "done"} {
		i, err := w.check.Queue(ctx, q)
		if err != nil {
			return err
		}
		if i.Status != broker.QueueActive {
			v.note("queue %s is %s", q, i.Status)
		}
		if i.Counts.DeadLetter > 0 {
			v.note("%d dead letters on %s%s", i.Counts.DeadLetter, q, w.firstDead(ctx, q))
		}
	}
	seen, err := w.handled(ctx, v)
	if err != nil {
		return err
	}
	l.compare(seen, w.lost, v)
	rep, err := w.check.Audit(ctx)
	if err != nil {
		return err
	}
	auditNotes(rep, v)
	return nil
}

func (w *world) firstDead(ctx context.Context, q string) string {
	list, err := w.check.List(ctx, broker.FormatDeadLetterPath(q), 0, 1)
	if err != nil || len(list) == 0 || list[0].Dead == nil {
		return ""
	}
	return fmt.Sprintf(" (%s: %s)", list[0].Dead.Reason, list[0].Dead.LastError)
}

// handled reads the queue done: conversation → numbers in the order in which they were handled.
func (w *world) handled(ctx context.Context, v *verdict) (map[string][]int, error) {
	seen := map[string][]int{}
	for from := int64(0); ; {
		page, err := w.check.Peek(ctx, "done", from, 500)
		if err != nil || len(page) == 0 {
			return seen, err
		}
		for i := range page {
			m := &page[i]
			from = m.SequenceNumber + 1
			f := strings.Fields(string(m.Body))
			if len(f) != 4 {
				v.note("on done: %.60q", m.Body)
				continue
			}
			n, _ := strconv.Atoi(f[1])
			sent, _ := strconv.ParseInt(f[2], 10, 64)
			seen[f[0]] = append(seen[f[0]], n)
			took := m.EnqueuedAt.Sub(time.UnixMilli(sent))
			if f[0][0] == 'd' {
				if took < delayed-time.Second/10 { // the sender's clock and Redis's are one, but for milliseconds
					v.note("delayed message %s %s was handled %v after it was sent", f[0], f[1], took)
				}
				v.late = max(v.late, took-delayed)
			}
			v.slowest = max(v.slowest, took)
			if f[3] == "again" {
				v.doubled++
			}
		}
	}
}

// compare counts what is missing, twice there or in the wrong order. lost is the end of the append-only file that the server lost: a
// message whose first storing stands in it was lost by Redis.
func (l *load) compare(seen map[string][]int, lost []byte, v *verdict) {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := make([]string, 0, len(l.accepted))
	for name := range l.accepted {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		count := make([]int, l.accepted[name])
		last := -1
		for _, n := range seen[name] {
			if n >= len(count) { // its producer was ended before it knew
				continue
			}
			if count[n]++; count[n] > 1 {
				v.doubled++
			}
			if (name[0] == 's' || name[0] == 'g') && n < last {
				v.order++
			}
			last = max(last, n)
		}
		for n, c := range count {
			switch {
			case c > 0:
			case bytes.Contains(lost, fmt.Appendf(nil, "%s %d ", name, n)):
				v.redisLost++
			default:
				if v.lost++; v.lost <= 3 {
					v.note("lost: %s %d", name, n)
				}
			}
		}
	}
	v.sent, v.slowSend = l.sent.Load(), time.Duration(l.slow.Load())
}

func auditNotes(rep broker.AuditReport, v *verdict) {
	for i, d := range rep.Differences {
		if i == 3 {
			v.note("and %d more differences", len(rep.Differences)-3)
			break
		}
		v.note("audit: %s: %s: want %s, got %s", d.Queue, d.Rule, d.Want, d.Got)
	}
	if len(rep.Unsettled) > 0 {
		v.note("audit: not settled: %v", rep.Unsettled)
	}
}
