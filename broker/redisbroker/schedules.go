package redisbroker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sort"
	"strings"

	"parley/broker"
)

// notified returns the queues of the services that an event of a queue is sent to, joined by commas.
func (b *Broker) notified(event, queue string) string {
	b.dir.mu.RLock()
	defer b.dir.mu.RUnlock()
	var out []string
	for _, n := range b.dir.notify {
		if n.Event == event && n.Queue == queue {
			if s, ok := b.dir.services[n.To]; ok {
				out = append(out, escape(s.Queue))
			}
		}
	}
	return strings.Join(out, ",")
}

// activated is notified for queue_activation, behind a + when every queue is in reach of every script.
func (b *Broker) activated(queue string) string {
	list := b.notified(broker.EventQueueActivation, queue)
	if list != "" && !b.cluster {
		return "+" + list
	}
	return list
}

// armSchedules gives every queue the schedules whose service it serves. The first instant counts from now; one that is armed
// already stays.
func (b *Broker) armSchedules(ctx context.Context) error {
	b.dir.mu.RLock()
	byQueue := map[string][]broker.Schedule{}
	for n := range b.dir.queues {
		byQueue[n] = nil
	}
	for _, s := range b.dir.schedule {
		if svc, ok := b.dir.services[s.To]; ok {
			byQueue[svc.Queue] = append(byQueue[svc.Queue], s)
		}
	}
	had := b.dir.schedule != nil
	b.dir.mu.RUnlock()
	if !had {
		return nil
	}
	queues := make([]string, 0, len(byQueue))
	for q := range byQueue {
		queues = append(queues, q)
	}
	sort.Strings(queues)
	for _, q := range queues {
		if err := b.armQueueSchedules(ctx, q, byQueue[q]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Broker) armQueueSchedules(ctx context.Context, queue string, list []broker.Schedule) error {
	args := []any{b.now(), len(list)}
	for _, s := range list {
		first, err := b.firstInstant(ctx, b.prefix(queue), s.Cron, s.Zone)
		if err != nil {
			return broker.ErrInvalid.With("schedule %q: %v", s.Name, err)
		}
		args = append(args, escape(s.Name), strings.Join([]string{escape(s.Cron), escape(s.Zone), escape(s.To), escape(scheduleType(s)), scheduleKey(s.Name)}, "|"),
			first)
	}
	_, err := b.repeat(ctx, "schedule", b.prefix(queue)+"meta", args...)
	return b.fault("arm the schedules of queue "+queue, err)
}

func scheduleType(s broker.Schedule) string {
	if s.Type == broker.TypeDefault {
		return ""
	}
	return s.Type
}

// scheduleKey is the end of the handles of a schedule's dialogs: 12 hexadecimal digits made from its name.
func scheduleKey(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:6])
}
