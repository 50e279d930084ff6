package redisbroker

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// failure says what is known of a call that failed.
type failure uint8

const (
	// noFailure: there is no error.
	noFailure failure = iota
	// refusedForUs: it was answered, or never made, for a reason that stays: trying again changes nothing.
	refusedForUs
	// refusedWhole: nothing of it was done, for a reason that passes: it may be made again as it was.
	refusedWhole
	// outcomeUnknown: it may have been done.
	outcomeUnknown
)

// String names a failure in texts of tests.
func (f failure) String() string {
	return [...]string{"none", "refused for a reason of ours", "refused whole", "outcome unknown"}[f]
}

// passing are the codes with which a server refuses a command before it does anything of it, for a reason that is not ours
// and that passes. A script that has written is never refused with one of them.
var passing = map[string]bool{
	"BUSY": true, "NOREPLICAS": true, "MISCONF": true, "LOADING": true, "READONLY": true, "CLUSTERDOWN": true, "TRYAGAIN": true,
	"MASTERDOWN": true, "MOVED": true, "ASK": true,
}

// failureOf classifies the error of a call.
func failureOf(err error) failure {
	var answer redis.Error
	var ours *broker.Error
	var dial *net.OpError
	switch {
	case err == nil:
		return noFailure
	case errors.As(err, &ours), errors.Is(err, redis.ErrClosed):
		return refusedForUs
	case errors.As(err, &answer):
		if passes(answer.Error()) {
			return refusedWhole
		}
		return refusedForUs
	case errors.Is(err, context.Canceled):
		return outcomeUnknown
	case errors.As(err, &dial) && dial.Op == "dial", errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, errStale):
		return refusedWhole // no connection: it was never sent
	}
	return outcomeUnknown
}

// passes reports whether a server's answer has one of the passing codes, or says in words that it takes no clients now.
func passes(answer string) bool {
	return passing[codeOf(answer)] || strings.HasPrefix(answer, "ERR max number of clients")
}

// codeOf is the code of a server's answer. Some proxies, and older servers for a command in a script, put ERR in front of it, and a
// transaction EXECABORT: then it is the first passing code of the text.
func codeOf(answer string) string {
	code, rest, _ := strings.Cut(answer, " ")
	if code != "ERR" && code != "EXECABORT" {
		return code
	}
	for word := range strings.FieldsSeq(rest) {
		if word = strings.ToUpper(strings.Trim(word, "-:,.")); passing[word] {
			return word
		}
	}
	if strings.Contains(strings.ToLower(rest), "read only replica") {
		return "READONLY"
	}
	return code
}

// isReadOnly reports whether the server answered that it is a replica: a demoted master, which clients must leave.
func isReadOnly(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer) && codeOf(answer.Error()) == "READONLY"
}

// maybeDone reports whether a call that failed may have been done.
func maybeDone(err error) bool { return failureOf(err) == outcomeUnknown }

// passesBy reports whether a call that failed was refused whole, for a reason that passes.
func passesBy(err error) bool { return failureOf(err) == refusedWhole }

// infrastructure reports whether a call failed because of the server or the way to it: an idempotent one may be made again.
func infrastructure(err error) bool { return failureOf(err) >= refusedWhole }

// Pauses between tries of a call.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 500 * time.Millisecond
)

// pauses gives the pauses between the tries of one call: growing, so that a server in trouble is not hammered.
type pauses struct{ tries int }

// wait waits before the next try, and reports false when ctx ended.
func (p *pauses) wait(ctx context.Context) bool {
	p.tries++
	pauseFor(ctx, min(time.Duration(p.tries)*firstPause, lastPause))
	return ctx.Err() == nil
}

// patiently makes a call that may be made again after such failures as again says, until one of it succeeds, one fails
// otherwise, or limit has passed.
func patiently(ctx context.Context, limit time.Duration, again func(error) bool, call func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var p pauses
	for {
		err := call(bounded)
		if !again(err) || !p.wait(bounded) {
			return err
		}
	}
}

// patience bounds the tries of a call by the time since the first one failed.
type patience struct {
	pauses
	until time.Time
}

// more waits before the next try, and reports false when limit has passed or ctx ended.
func (p *patience) more(ctx context.Context, limit time.Duration) bool {
	now := time.Now()
	if p.until.IsZero() {
		p.until = now.Add(limit)
	}
	return now.Before(p.until) && p.wait(ctx)
}

// answered is an error that a server answered inside of another reply.
type answered string

// Error implements error.
func (a answered) Error() string { return string(a) }

// RedisError makes it a redis.Error.
func (answered) RedisError() {}
