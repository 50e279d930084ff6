package redisbroker

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua scripts/lib/*.lua
var scriptFiles embed.FS

// The scripts by name: one for each atomic transition. Each has one typed wrapper; nothing else calls them.
var scriptNames = []string{
	"append", "arrive", "configure", "due", "purge", "reap", "rearm", "rebuild", "register", "release", "renew",
	"resubmit", "resume", "schedule", "status", "sweep", "turn", "txdone", "txfail", "txhead", "txnow", "work",
}

// script is one script as it is loaded: its library parts in front.
type script struct {
	name, source, sha string
}

// Script returns the joined text of one script, its library parts first.
func scriptSource(name string) (string, error) {
	main, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	end := ""
	for line := range strings.Lines(string(main)) {
		parts, ok := strings.CutPrefix(line, "-- lib: ")
		if !ok {
			continue
		}
		for _, p := range strings.Fields(parts) {
			lib, err := scriptFiles.ReadFile("scripts/lib/" + p + ".lua")
			if err != nil {
				return "", fmt.Errorf("script %s: %w", name, err)
			}
			out.Write(lib)
			out.WriteByte('\n')
			if p == "entry" { // closures take what is outside of their function in one step, but search for locals of their own
				out.WriteString("return (function()\n")
				end = "\nend)()\n"
			}
		}
	}
	out.Write(main)
	out.WriteString(end)
	return out.String(), nil
}

func (b *Broker) loadScripts(ctx context.Context) error {
	b.scripts = map[string]*script{}
	for _, name := range scriptNames {
		src, err := scriptSource(name)
		if err != nil {
			return err
		}
		if b.opt.PatchScript != nil {
			src = b.opt.PatchScript(name, src)
		}
		sum := sha1.Sum([]byte(src))
		b.scripts[name] = &script{name: name, source: src, sha: hex.EncodeToString(sum[:])}
		if err := b.rdb.ScriptLoad(ctx, src).Err(); err != nil {
			return b.fault("load script "+name, err)
		}
	}
	return nil
}

// run calls a script once. It falls back to sending the text when the server does not know it (restart, SCRIPT FLUSH).
func (b *Broker) run(ctx context.Context, name, key string, args ...any) (any, error) {
	s := b.scripts[name]
	v, err := b.eval(ctx, "evalsha", s.sha, key, args)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		v, err = b.eval(ctx, "eval", s.source, key, args)
	}
	return v, err
}

// onceCmd is a command that a Cluster's client must not send again by itself when a connection breaks: it may have happened (M6).
// Redirections are followed all the same, since then it has not.
type onceCmd struct{ *redis.Cmd }

// NoRetry tells the client.
func (onceCmd) NoRetry() bool { return true }

func (b *Broker) eval(ctx context.Context, verb, script, key string, args []any) (any, error) {
	cmd := redis.NewCmd(ctx, append([]any{verb, script, 1, key}, args...)...)
	cmd.SetFirstKeyPos(3)
	if b.cluster {
		_ = b.rdb.Process(ctx, onceCmd{cmd})
	} else {
		_ = b.rdb.Process(ctx, cmd)
	}
	return cmd.Result()
}

// repeat calls an idempotent script until it answers, at most maxCallTries times.
func (b *Broker) repeat(ctx context.Context, name, key string, args ...any) (any, error) {
	for try := 1; ; try++ {
		v, err := b.run(ctx, name, key, args...)
		if err == nil || !isTransport(err) || try == maxCallTries || ctx.Err() != nil {
			return v, err
		}
		pauseFor(ctx, time.Duration(try)*50*time.Millisecond)
	}
}

// repeatStrings is repeat for scripts that answer a list.
func (b *Broker) repeatStrings(ctx context.Context, name, key string, args ...any) ([]string, error) {
	v, err := b.repeat(ctx, name, key, args...)
	if err != nil {
		return nil, b.fault(name, err)
	}
	return toStrings(v), nil
}

// isTransport reports whether the outcome of a call is unknown: the connection failed, not the command.
func isTransport(err error) bool {
	if err == nil {
		return false
	}
	var ne net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &ne) ||
		errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "connection") || redis.HasErrorPrefix(err, "LOADING") ||
		redis.HasErrorPrefix(err, "CLUSTERDOWN") || redis.HasErrorPrefix(err, "READONLY") || redis.HasErrorPrefix(err, "MASTERDOWN")
}

func pauseFor(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func toStrings(v any) []string {
	switch x := v.(type) {
	case []any:
		out := make([]string, len(x))
		for i, e := range x {
			switch y := e.(type) {
			case string:
				out[i] = y
			case int64:
				out[i] = fmt.Sprint(y)
			}
		}
		return out
	case string:
		return []string{x}
	case int64:
		return []string{fmt.Sprint(x)}
	}
	return nil
}

// now is the clock override every script takes.
func (b *Broker) now() string {
	if b.opt.Now == nil {
		return ""
	}
	if ms := b.opt.Now(); ms != 0 {
		return fmt.Sprint(ms)
	}
	return ""
}
