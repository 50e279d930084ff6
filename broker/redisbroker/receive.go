package redisbroker

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/broker"
)

// A lock token is a UUID for one delivery of one message. In Redis it is a reader of its own by the name p:<token>.
const tokenReader = "p:"

// maxTokens is how many messages one call of a script hands out or settles, so that none holds the server for long.
const maxTokens = 256

// Receive implements broker.Receiver.
func (b *Broker) Receive(ctx context.Context, path string, opt broker.ReceiveOptions) ([]broker.Delivery, error) {
	prefix, queue := b.pathPrefix(path)
	e, err := b.queueEntry(ctx, queue)
	if err != nil {
		return nil, err
	}
	if opt.Lock <= 0 {
		opt.Lock = e.Settings.LockDuration
	}
	opt.Max, opt.Top = max(1, opt.Max), max(1, opt.Top)
	group, err := b.receiveGroup(ctx, queue, prefix, &opt)
	if err != nil {
		return nil, err
	}
	wake, stop := b.hub.watch(prefix)
	defer stop()
	deadline := time.Now().Add(opt.Wait)
	for {
		d, err := b.receiveMany(ctx, prefix, path, group, opt)
		if err != nil || len(d) > 0 {
			return d, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, nil
		}
		if err := b.awaitWake(ctx, wake, left); err != nil {
			return nil, err
		}
	}
}

// receivePoll bounds how long a lost wake-up, or something that becomes due while no host runs, can go unnoticed.
const receivePoll = 500 * time.Millisecond

func (b *Broker) awaitWake(ctx context.Context, wake <-chan struct{}, left time.Duration) error {
	t := time.NewTimer(min(left, receivePoll))
	defer t.Stop()
	select {
	case <-wake:
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// receiveGroup finds the lock name that a receive by conversation or group is for; unknown ones are errors (RC-5).
func (b *Broker) receiveGroup(ctx context.Context, queue, prefix string, opt *broker.ReceiveOptions) (string, error) {
	if opt.Conversation != "" {
		q, err := b.queueOfHandle(ctx, opt.Conversation)
		if err != nil {
			return "", err
		}
		v, err := b.rdb.HGet(ctx, prefix+"cv", opt.Conversation).Result()
		if q != queue || isNil(err) {
			return "", broker.ErrUnknownConversation.With("%s on queue %q", opt.Conversation, queue)
		}
		if err != nil {
			return "", b.fault("receive", err)
		}
		g, _, _ := strings.Cut(v, "|")
		return g, nil
	}
	if opt.Group == "" {
		return "", nil
	}
	g := "g:" + opt.Group
	ok, err := b.rdb.HExists(ctx, prefix+"gr", g).Result()
	if err != nil {
		return "", b.fault("receive", err)
	}
	if !ok {
		return "", broker.ErrUnknownGroup.With("%s on queue %q", opt.Group, queue)
	}
	return g, nil
}

// receiveMany takes what is there, in calls of bounded size. What was taken before a call that fails is returned without its error.
func (b *Broker) receiveMany(ctx context.Context, prefix, path, group string, opt broker.ReceiveOptions) ([]broker.Delivery, error) {
	if err := b.promote(ctx, prefix); err != nil {
		return nil, err
	}
	var out []broker.Delivery
	groups, messages := opt.Max, max(opt.Max, opt.Top)
	for groups > 0 && messages > 0 {
		n := min(messages, maxTokens)
		d, again, err := b.receiveOnce(ctx, prefix, path, group, n, min(groups, n), opt)
		if err != nil && len(out) == 0 {
			return nil, err
		}
		out = append(out, d...)
		messages -= len(d)
		groups -= countGroups(d)
		if err != nil || !again && len(d) < n {
			break
		}
	}
	return out, nil
}

// countGroups is how many groups and plain messages d is of.
func countGroups(d []broker.Delivery) int {
	n, seen := 0, map[string]bool{}
	for i := range d {
		if g := d[i].Unit.Group; g == "" || !seen[g] {
			n++
			seen[g] = true
		}
	}
	return n
}

// receiveOnce takes up to n messages of up to that many groups, and says whether more may be there. When it cannot tell what it took, or not
// show it, all of it goes back uncounted.
func (b *Broker) receiveOnce(ctx context.Context, prefix, path, group string, n, groups int, opt broker.ReceiveOptions) ([]broker.Delivery, bool, error) {
	tokens := make([]string, n)
	args := []any{b.now(), b.direct(), opt.Lock.Milliseconds(), groups, opt.Top, group, opt.Conversation}
	for i := range tokens {
		tokens[i] = uuid.NewString()
		args = append(args, tokenReader+tokens[i])
	}
	r := b.newReader(prefix, path, opt.Lock)
	v, err := b.run(ctx, "receive", r.key, args...)
	if infrastructure(err) {
		if err := b.giveBackTokens(ctx, prefix, opt.Lock, tokens); err != nil {
			return nil, false, b.fault("receive from "+path, err)
		}
		return nil, true, ctx.Err()
	}
	if err != nil {
		return nil, false, b.fault("receive from "+path, err)
	}
	s := r.text(v)
	switch s {
	case "NOENT":
		return nil, false, broker.ErrUnknownEntity.With("%q is gone from Redis", path)
	case "OFF":
		return nil, false, broker.ErrQueueDisabled.With("receive from %q; switch it on with runtime queue enable", path)
	}
	rep, err := r.parse(ctx, s, nil, nil)
	if err == nil {
		err = r.mend(ctx)
	}
	if err == nil {
		err = r.unseen
	}
	if err != nil { // nobody has seen what was handed out
		_ = b.giveBackTokens(ctx, prefix, opt.Lock, tokens) // what fails here as well is for the locks' end
		return nil, false, err
	}
	if len(r.aside) > 0 {
		if err := b.buryTokens(ctx, prefix, tokens, r.aside); err != nil {
			return nil, false, b.fault("receive from "+path, err)
		}
	}
	out := make([]broker.Delivery, len(rep.Units))
	for i, u := range rep.Units {
		if u.Slot < 0 || u.Slot >= n {
			_ = b.giveBackTokens(ctx, prefix, opt.Lock, tokens)
			return nil, false, broker.ErrCorrupt.With("the reply of a receive from %q", path)
		}
		out[i] = broker.Delivery{Token: tokens[u.Slot], LockedUntil: rep.Now.Add(opt.Lock), Unit: u}
	}
	return out, rep.Again, nil
}

// giveBackTokens releases, uncounted, whatever tokens hold that nobody was told of, also when the receiver has given up. When the
// server does not answer it is tried on in the background.
func (b *Broker) giveBackTokens(ctx context.Context, prefix string, lock time.Duration, tokens []string) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	all, names := make([]broker.TokenSettlement, len(tokens)), make([]string, len(tokens))
	for i := range all {
		all[i] = broker.TokenSettlement{Token: tokens[i], Settlement: broker.Settlement{Verdict: broker.VerdictRelease}}
		names[i] = tokenReader + tokens[i]
	}
	_, err := b.settleTokens(ctx, prefix, "", all)
	if infrastructure(err) {
		b.owe(prefix+"meta", lock-time.Since(start), names)
	}
	return err
}

func entryFields(v map[string]any) (head string, body []byte) {
	for k, x := range v {
		s, _ := x.(string)
		return k, []byte(s)
	}
	return "", nil
}

// Renew implements broker.Receiver.
func (b *Broker) Renew(ctx context.Context, path, token string) (time.Time, error) {
	prefix, queue := b.pathPrefix(path)
	e, err := b.queueEntry(ctx, queue)
	if err != nil {
		return time.Time{}, err
	}
	v, err := b.repeat(ctx, "renew", prefix+"meta", b.now(), tokenReader+token, e.Settings.LockDuration.Milliseconds(), "")
	if err != nil {
		return time.Time{}, b.fault("renew", err)
	}
	s, _ := v.(string)
	if s == "FENCED" {
		return time.Time{}, broker.ErrLockLost.With("token %s", token)
	}
	return msTime(s), nil
}
