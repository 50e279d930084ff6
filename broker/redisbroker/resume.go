package redisbroker

import (
	"context"
	"sort"
	"strconv"
	"strings"
	"time"

	"parley/broker"
)

// resume takes the reader on under a new name after a call whose outcome is unknown, and returns which of its units it still
// holds, and what that call did with units it settled otherwise than by a plain commit. It tries until the lease must have ended.
func (r *reader) resume(ctx context.Context, settle []broker.Settlement) (map[uint64]bool, map[int]string, error) {
	settling := map[uint64]bool{}
	for i := range settle {
		settling[settle[i].Unit.ID] = true
	}
	ids := make([]uint64, 0, len(r.held))
	for id := range r.held {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	next := r.b.nextName()
	r.mu.Lock()
	r.next = next
	r.mu.Unlock()
	args := []any{r.b.now(), r.name, next, r.lease.Milliseconds(), r.lastNumber(), r.call, len(ids)}
	for _, id := range ids {
		u := r.held[id].unit
		args = append(args, u.Slot, joinRefs(u), u.Group, flag(settling[id]))
	}
	// The caller may have given up waiting, but the outcome must be known all the same.
	cctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.lease)
	defer cancel()
	for try := 1; ; try++ {
		v, err := r.run(cctx, "resume", r.key, args...)
		if err == nil {
			return r.resumed(next, ids, toStrings(v))
		}
		if !infrastructure(err) || cctx.Err() != nil {
			return nil, nil, err
		}
		pauseFor(cctx, time.Duration(min(try, 10))*50*time.Millisecond)
	}
}

func (r *reader) resumed(next string, ids []uint64, ans []string) (map[uint64]bool, map[int]string, error) {
	if len(ans) < 3 || ans[0] != "OK" {
		return nil, nil, r.refusal("FENCED")
	}
	number, err := strconv.ParseInt(ans[1], 10, 64)
	if err != nil {
		return nil, nil, broker.ErrCorrupt.With("the number %q in the record of reader %s", ans[1], next)
	}
	r.mu.Lock()
	r.name, r.next, r.last = next, "", number
	r.mu.Unlock()
	still := map[uint64]bool{}
	codes := map[int]string{}
	for line := range strings.SplitSeq(ans[2], "\n") {
		u, code, _ := strings.Cut(line, " ")
		if n, err := strconv.Atoi(u); err == nil {
			codes[n] = code
		}
	}
	for _, s := range ans[3:] {
		i, err := strconv.Atoi(s)
		if err == nil && i >= 1 && i <= len(ids) {
			still[ids[i-1]] = true
		}
	}
	return still, codes, nil
}

func joinRefs(u *broker.Unit) string {
	if len(u.Messages) == 1 {
		return u.Messages[0].Ref
	}
	refs := make([]string, len(u.Messages))
	for i := range u.Messages {
		refs[i] = u.Messages[i].Ref
	}
	return strings.Join(refs, ",")
}
