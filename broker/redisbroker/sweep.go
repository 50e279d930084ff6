package redisbroker

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// Sweep looks at queues without opening a reader on any, in one pipeline: those with nothing deliverable are marked asleep, those
// with work are returned, those that are off are passed over. The error wraps broker.ErrUnknownEntity when one of queues does not
// exist; what was found stands beside it.
func (b *Broker) Sweep(ctx context.Context, queues []string) ([]string, error) {
	work, again, err := b.sweepOnce(ctx, queues)
	if len(again) > 0 { // the server had lost its scripts
		if lerr := b.rdb.ScriptLoad(ctx, b.scripts["sweep"].source).Err(); lerr != nil {
			return work, b.fault("sweep", lerr)
		}
		more, rest, aerr := b.sweepOnce(ctx, again)
		work = append(append(work, more...), rest...)
		err = errors.Join(err, aerr)
	}
	return work, err
}

func (b *Broker) sweepOnce(ctx context.Context, queues []string) (work, again []string, err error) {
	cmds := make([]*redis.Cmd, len(queues))
	var failed error // the last that was noted: a dead server is one error, not a thousand
	_, _ = b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, q := range queues {
			cmds[i] = p.EvalSha(ctx, b.scripts["sweep"].sha, []string{b.prefix(q) + "meta"}, b.now())
		}
		return nil
	})
	for i, q := range queues {
		s, cerr := cmds[i].Text()
		switch {
		case redis.HasErrorPrefix(cerr, "NOSCRIPT"):
			again = append(again, q)
		case cerr != nil: // of this queue alone, or of its node: the others are looked at
			if ferr := b.fault("sweep", cerr); failed == nil || ferr.Error() != failed.Error() {
				failed = ferr
				err = errors.Join(err, ferr)
			}
		case s == "NOENT":
			err = errors.Join(err, broker.ErrUnknownEntity.With("queue %q is gone from Redis", q))
		case s == "WORK":
			work = append(work, q)
		}
	}
	return work, again, err
}
