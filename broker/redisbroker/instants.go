package redisbroker

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
	"parley/broker/cronspec"
)

// firstInstant is when a spec fires first, as scripts take it (scripts/rare/instant.lua): an interval counts from what the script's clock
// shows, a calendar's instant says which time it follows.
func (b *Broker) firstInstant(ctx context.Context, prefix, spec, zone string) (string, error) {
	now, err := b.clockWithin(ctx, prefix, freshClock)
	if err != nil {
		return "", err
	}
	s, err := parseCron(spec, zone, now)
	if err != nil {
		return "", err
	}
	if every := s.Interval(); every > 0 {
		return "~" + strconv.FormatInt(every.Milliseconds(), 10), nil
	}
	next, _ := s.Next(now)
	if next.IsZero() {
		return "", broker.ErrTimerValue.With("cron spec %q never fires", spec)
	}
	return strconv.FormatInt(next.UnixMilli(), 10) + "@" + strconv.FormatInt(now.UnixMilli(), 10), nil
}

func parseCron(spec, zone string, now time.Time) (cronspec.Schedule, error) {
	s, err := cronspec.Parse(spec, zone, now)
	if err != nil {
		return s, broker.ErrTimerValue.With("%v", err)
	}
	return s, nil
}

// cronOf reads the spec and the zone at the start of a record of a timer or a schedule.
func cronOf(record string, now time.Time) (cronspec.Schedule, error) {
	f := append(strings.Split(record, "|"), "")
	return parseCron(unescape(f[0]), unescape(f[1]), now)
}

// rearm sets the next firing of repeating timers and schedules: kind, name, spec|zone|…, planned instant of each. now is what the server's
// clock showed in the reply that named them.
func (b *Broker) rearm(ctx context.Context, prefix string, now time.Time, fired []string) error {
	for i := 0; i+3 < len(fired); i += 4 {
		if err := b.rearmOne(ctx, prefix, now, fired[i], fired[i+1], fired[i+2], fired[i+3]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Broker) rearmOne(ctx context.Context, prefix string, now time.Time, kind, name, record, planned string) error {
	at := ""
	s, err := cronOf(record, now)
	if err == nil {
		if next := s.Following(msTime(strings.TrimPrefix(planned, "=")), now); !next.IsZero() {
			at = strconv.FormatInt(next.UnixMilli(), 10)
		}
	}
	if at == "" {
		b.opt.Log("a repeating timer stops", "timer", name, "error", err)
	}
	_, err = b.repeat(ctx, "rearm", prefix+"meta", b.now(), kind, name, planned, at, now.UnixMilli())
	return b.fault("arm a repeating timer", err)
}

// armAgain is how long after it fired a timer is named again that nobody armed (scripts/due.lua).
const armAgain = 5 * time.Second

// replanChunk is how many repeating timers are looked at in one call.
const replanChunk = 500

// replan plans again what is armed further away than its spec allows at now: the server's clock was set back since it was armed.
func (b *Broker) replan(ctx context.Context, prefix string, now time.Time) error {
	for kind, records := range map[string]string{"sd": "sdr", "tm": "tmc"} {
		var cursor uint64
		for {
			kv, next, err := b.rdb.HScan(ctx, prefix+records, cursor, "*", replanChunk).Result()
			if err != nil {
				return b.fault("plan timers again", err)
			}
			if err := b.replanSome(ctx, prefix, now, kind, kv); err != nil {
				return err
			}
			if cursor = next; cursor == 0 {
				break
			}
		}
	}
	_, err := b.repeat(ctx, "rearm", prefix+"meta", b.now(), "all", "", "", "", now.UnixMilli())
	return b.fault("plan timers again", err)
}

// replanSome is replan for some names and their records, one after the other in kv. One that fired before the clock was set back and waits
// to be armed is armed.
func (b *Broker) replanSome(ctx context.Context, prefix string, now time.Time, kind string, kv []string) error {
	if len(kv) == 0 {
		return nil
	}
	armed, fired := make([]*redis.FloatCmd, len(kv)/2), make([]*redis.StringCmd, len(kv)/2)
	_, err := b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range armed {
			armed[i], fired[i] = p.ZScore(ctx, prefix+kind, kv[2*i]), p.HGet(ctx, prefix+kind+"n", kv[2*i])
		}
		return nil
	})
	if err != nil && !isNil(err) {
		return b.fault("plan timers again", err)
	}
	for i := range armed {
		at := int64(armed[i].Val())
		s, err := cronOf(kv[2*i+1], now)
		planned, far := "="+strconv.FormatInt(at, 10), err != nil || s.TooFar(time.UnixMilli(at), now)
		if fired[i].Err() == nil {
			planned, far = fired[i].Val(), at > now.Add(armAgain).UnixMilli()
		}
		if armed[i].Err() != nil || !far {
			continue
		}
		if err := b.rearmOne(ctx, prefix, now, kind, kv[2*i], kv[2*i+1], planned); err != nil {
			return err
		}
	}
	return nil
}
