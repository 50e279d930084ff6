package redisbroker

import (
	"context"
	"slices"

	"parley/broker"
)

// wants is the flag with which a turn asks for the endpoints of what it hands out.
func (r *reader) wants() string {
	if r.wantsEps {
		return "e"
	}
	return ""
}

// makeGroup makes the group of a lane that lost it. Its failure is kept for the next turn: it says nothing about this one, which was
// done.
func (r *reader) makeGroup(ctx context.Context) { r.noGroup = r.b.rebuild(ctx, r.prefix) }

// mend makes, before a turn, the group that could not be made after the last one.
func (r *reader) mend(ctx context.Context) error {
	if r.noGroup != nil {
		r.makeGroup(ctx)
	}
	return r.noGroup
}

// withReturns adds to what the caller settles the units that r gives back, or makes dead letters of, by itself.
func (r *reader) withReturns(settle []broker.Settlement) []broker.Settlement {
	if len(r.returns) == 0 && len(r.aside) == 0 {
		return settle
	}
	all := append(slices.Clone(settle), r.aside...)
	r.aside = nil
	for _, u := range r.returns {
		all = append(all, broker.Settlement{Unit: u, Verdict: broker.VerdictRelease})
	}
	r.returns = nil
	return all
}

// triesInALease is how many calls can go unanswered in a row before the lease ends.
const triesInALease = 3

// try bounds one try of a call that the lease depends on: a connection that went silent must leave time for another.
func (r *reader) try(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.lease <= 0 || r.lease >= triesInALease*callTimeout {
		return ctx, func() {} // the client does
	}
	return context.WithTimeout(ctx, r.lease/triesInALease)
}

// run calls a script once, for as long as one try may take.
func (r *reader) run(ctx context.Context, name, key string, args ...any) (any, error) {
	ctx, cancel := r.try(ctx)
	defer cancel()
	return r.b.run(ctx, name, key, args...)
}
