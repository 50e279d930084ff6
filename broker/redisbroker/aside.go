package redisbroker

import (
	"context"

	"parley/broker"
)

// asideReason is the reason and the description of a settlement that dead-letters what is no message.
const asideReason = "\xff"

// setAside takes units with messages that cannot be decoded off what a turn handed out, and lets the next call of this reader settle
// them: these become dead letters as they are, counting nothing, and the others of their units go back.
func (r *reader) setAside(units []*broker.Unit) []*broker.Unit {
	left := units[:0]
	for _, u := range units {
		good, bad := *u, *u
		good.Messages, bad.Messages = nil, nil
		for i := range u.Messages {
			part := &good
			if r.broken[u.Messages[i].Ref] {
				part = &bad
			}
			part.Messages = append(part.Messages, u.Messages[i])
		}
		if len(bad.Messages) == 0 {
			left = append(left, u)
			continue
		}
		r.held[u.ID].unit = &bad
		r.aside = append(r.aside, broker.Settlement{Unit: &bad, Verdict: broker.VerdictDeadLetter, Reason: asideReason, Description: asideReason})
		if len(good.Messages) > 0 {
			r.nextID++
			good.ID = r.nextID
			r.held[good.ID] = &held{unit: &good}
			r.aside = append(r.aside, broker.Settlement{Unit: &good, Verdict: broker.VerdictRelease})
		}
	}
	clear(r.broken)
	return left
}

// buryTokens dead-letters units of a receive that no receiver may see.
func (b *Broker) buryTokens(ctx context.Context, prefix string, tokens []string, aside []broker.Settlement) error {
	var all []broker.TokenSettlement
	for _, s := range aside {
		if s.Verdict == broker.VerdictDeadLetter && s.Unit.Slot < len(tokens) {
			all = append(all, broker.TokenSettlement{Token: tokens[s.Unit.Slot], Settlement: broker.Settlement{
				Verdict: broker.VerdictDeadLetter, Reason: broker.ReasonMalformedEnvelope, Description: "the message cannot be decoded",
			}})
		}
	}
	_, err := b.settleTokens(ctx, prefix, "", all)
	return err
}
