package redisbroker

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"

	"parley/broker"
)

// Settle implements broker.Receiver. Whoever knows the token may settle (RM-8).
func (b *Broker) Settle(ctx context.Context, path, token string, s broker.Settlement) (broker.SettleResult, error) {
	res, err := b.SettleMany(ctx, path, []broker.TokenSettlement{{Token: token, Settlement: s}})
	if err != nil {
		return broker.SettleResult{}, err
	}
	return res[0], res[0].Err
}

// SettleMany implements broker.Receiver.
func (b *Broker) SettleMany(ctx context.Context, path string, many []broker.TokenSettlement) ([]broker.SettleResult, error) {
	prefix, queue := b.pathPrefix(path)
	if _, err := b.queueEntry(ctx, queue); err != nil {
		return nil, err
	}
	dead := broker.ParsePath(path).Sub != broker.SubNone
	for i := range many {
		if dead && broker.Buries(&many[i].Settlement) {
			return nil, broker.ErrDeadLetterAgain.With("%s", path)
		}
	}
	out := make([]broker.SettleResult, 0, len(many))
	for len(many) > 0 {
		n := min(len(many), maxTokens)
		sctx, sure := b.confirming(ctx, queue)
		res, err := b.settleTokens(sctx, prefix, queue, many[:n])
		if err != nil {
			return out, b.fault("settle on "+path, err)
		}
		b.settled(ctx, queue, sure)
		out, many = append(out, res...), many[n:]
	}
	return out, nil
}

// settleTokens makes one call of the script. One whose reply was lost is repeated as it was, and answers what it did before.
func (b *Broker) settleTokens(ctx context.Context, prefix, queue string, many []broker.TokenSettlement) ([]broker.SettleResult, error) {
	c := &turnCall{}
	for i := range many {
		s := &many[i]
		if s.Verdict != broker.VerdictCommit || len(s.Effects) == 0 {
			continue
		}
		if err := b.encodeEffects(ctx, c, i+1, queue, s.Unit, s.Effects); err != nil {
			return nil, err
		}
	}
	args := make([]any, 0, 6+len(c.effects)+7*len(many))
	args = append(args, b.now(), b.direct(), escape(b.ns), b.callNumber(), len(many), c.neffects)
	args = append(args, c.effects...)
	for i := range many {
		args = appendToken(args, &many[i])
	}
	v, err := b.repeat(ctx, "settle", prefix+"meta", args...)
	if err != nil {
		return nil, err
	}
	said, _ := v.(string)
	if said == "NOENT" {
		return nil, broker.ErrUnknownEntity.With("queue %q is gone from Redis", queue)
	}
	codes := strings.Split(said, "\n")
	if len(codes) != len(many) {
		return nil, broker.ErrCorrupt.With("the reply of a settlement on queue %q", queue)
	}
	out := make([]broker.SettleResult, len(many))
	for i := range many {
		if out[i] = settleResult(&many[i].Settlement, codes[i]); out[i].Consequence == broker.Lost {
			out[i].Err = broker.ErrLockLost.With("token %s", many[i].Token)
		}
	}
	return out, nil
}

// appendToken adds the seven arguments of one token.
func appendToken(args []any, s *broker.TokenSettlement) []any {
	kind, pause, random, why := "C", int64(-1), "0", s.FailReason
	switch s.Verdict {
	case broker.VerdictDeadLetter:
		kind = "D"
	case broker.VerdictRelease:
		kind = "G"
	case broker.VerdictRollback:
		kind, random = "R", strconv.FormatFloat(rand.Float64(), 'f', 4, 64)
		if s.Pause >= 0 {
			pause = s.Pause.Milliseconds()
		}
	}
	if s.FailText != "" {
		why += ": " + s.FailText
	}
	return append(args, tokenReader+s.Token, kind, pause, random, lossy(why), lossy(s.Reason), lossy(s.Description))
}
