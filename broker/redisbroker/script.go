package redisbroker

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua scripts/lib/*.lua scripts/rare/*.lua
var scriptFiles embed.FS

// The scripts by name: one for each atomic transition. Each has one typed wrapper; nothing else calls them.
var scriptNames = []string{
	"append", "arrive", "chunk", "configure", "due", "ghosts", "plain", "purge", "reap", "rearm", "rebuild", "receive", "register", "release",
	"renew", "repair", "resubmit", "resume", "schedule", "settle", "status", "sweep", "turn", "txdone", "txfail", "txhead", "txnow", "work",
}

// script is one script as it is loaded: its library parts in front.
type script struct {
	name, source, sha string
}

// scriptSource returns the joined text of one script, its parts first: those of scripts/lib as they stand, those of
// scripts/rare so that their functions are made when first called.
func scriptSource(name string) (string, error) {
	main, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		return "", err
	}
	src, err := joinParts(scriptParts(string(main)), string(main))
	if err != nil {
		return "", fmt.Errorf("script %s: %w", name, err)
	}
	return src, nil
}

// opening are the parts with which a function begins that holds all that follows. A closure takes what is outside of the
// function that makes it in one step, but searches, one by one, for the locals of that function.
var opening = []string{"base", "entry", "lock", "take", "fresh"}

// joinParts puts the named parts in front of main, in their order, and those that main names at a place of its own there.
func joinParts(parts []string, main string) (string, error) {
	var src strings.Builder
	var names []string
	end := ""
	add := func(part string, nests bool) error {
		text, rare, err := partText(part)
		switch {
		case err != nil:
			return err
		case rare:
			names = append(names, globalFunctions(text)...)
			src.WriteString("rare_parts[#rare_parts + 1] = function()\n" + text + "end\n")
			return nil
		case nests && slices.Contains(opening, part):
			src.WriteString("return (function()\n")
			end += "\nend)()\n"
		}
		src.WriteString(text + "\n")
		return nil
	}
	for _, part := range parts {
		if err := add(part, true); err != nil {
			return "", err
		}
	}
	before, inner, after := cutInner(main)
	src.WriteString(before)
	for _, part := range inner {
		if err := add(part, false); err != nil {
			return "", err
		}
	}
	src.WriteString(after)
	return inRare(src.String(), names) + end, nil
}

// partText reads a part, and says whether it is one of scripts/rare.
func partText(part string) (text string, rare bool, err error) {
	b, err := scriptFiles.ReadFile("scripts/rare/" + part + ".lua")
	if err == nil {
		return string(b), true, nil
	}
	b, err = scriptFiles.ReadFile("scripts/lib/" + part + ".lua")
	return string(b), false, err
}

// innerLine is where a script wants parts that it needs inside of one function only: what a turn that does not call it
// never pays for.
var innerLine = regexp.MustCompile(`(?m)^ *-- parts here: (.*)\n`)

// cutInner returns the parts that a script names inside of a function, and what stands before and behind that line.
func cutInner(main string) (before string, parts []string, after string) {
	at := innerLine.FindStringSubmatchIndex(main)
	if at == nil {
		return main, nil, ""
	}
	return main[:at[1]], strings.Fields(main[at[2]:at[3]]), main[at[1]:]
}

// scriptParts returns the parts that a script's header names.
func scriptParts(main string) []string {
	for line := range strings.Lines(main) {
		if parts, ok := strings.CutPrefix(line, "-- lib: "); ok {
			if parts == "none\n" {
				return nil
			}
			return strings.Fields(parts)
		}
	}
	return nil
}

var globalFunction = regexp.MustCompile(`(?m)^function (\w+)\(`)

// globalFunctions returns the functions that a part of scripts/rare has for others; those it has for itself are local.
func globalFunctions(text string) []string {
	var names []string
	for _, m := range globalFunction.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// inRare turns each call and definition of the named functions into one of a field of the table rare (lib/base.lua). It is
// quick, since every command of the command line joins the scripts.
func inRare(text string, names []string) string {
	rare := make(map[string]bool, len(names))
	for _, n := range names {
		rare[n] = true
	}
	var out strings.Builder
	out.Grow(len(text) + len(text)/16)
	copied, word := 0, 0 // text is copied up to copied; a word that ends here began at word
	for i := range len(text) {
		c := text[i]
		if c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			continue
		}
		if c == '(' && word < i && rare[text[word:i]] {
			out.WriteString(text[copied:word])
			out.WriteString("rare.")
			copied = word
		}
		word = i + 1
	}
	out.WriteString(text[copied:])
	return out.String()
}

// sources are all scripts as they are loaded, joined once.
var sources = sync.OnceValues(func() (map[string]string, error) {
	all := map[string]string{}
	for _, name := range scriptNames {
		src, err := scriptSource(name)
		if err != nil {
			return nil, err
		}
		all[name] = src
	}
	return all, nil
})

// piped are the scripts that run inside pipelines and transactions, where a missing script costs more than one round trip. Loading all
// would make each command of the command line send them all, and a slow link carry them one after the other.
var piped = []string{"plain", "sweep"}

// loadScripts prepares the scripts and loads those of piped; the others come to the server with their first call.
func (b *Broker) loadScripts(ctx context.Context) error {
	b.scripts = map[string]*script{}
	all, err := sources()
	if err != nil {
		return err
	}
	for _, name := range scriptNames {
		src := all[name]
		if b.opt.PatchScript != nil {
			src = b.opt.PatchScript(name, src)
		}
		sum := sha1.Sum([]byte(src))
		b.scripts[name] = &script{name: name, source: src, sha: hex.EncodeToString(sum[:])}
		if !slices.Contains(piped, name) {
			continue
		}
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

// seekNode asks a Cluster who has the slots now, when a node did not answer: its replica may have taken over. The client itself does so
// only for commands that it may send again, and else once a minute.
func (b *Broker) seekNode(err error) {
	if cc, ok := b.rdb.(*redis.ClusterClient); ok && infrastructure(err) {
		cc.ReloadState(context.Background()) // it is read in the background, at most five times a second
	}
}

func (b *Broker) eval(ctx context.Context, verb, script, key string, args []any) (any, error) {
	cmd := redis.NewCmd(ctx, append([]any{verb, script, 1, key}, args...)...)
	cmd.SetFirstKeyPos(3)
	if c, ok := ctx.Value(confirmationKey{}).(*confirmation); ok {
		return b.evalDurably(ctx, c, cmd, key)
	}
	if b.cluster {
		_ = b.rdb.Process(ctx, onceCmd{cmd})
		b.seekNode(cmd.Err())
	} else {
		_ = b.rdb.Process(ctx, cmd)
	}
	return cmd.Result()
}

// repeat calls an idempotent script until it answers, at most maxCallTries times.
func (b *Broker) repeat(ctx context.Context, name, key string, args ...any) (any, error) {
	var p pauses
	for {
		v, err := b.run(ctx, name, key, args...)
		if !infrastructure(err) || p.tries+1 == maxCallTries || !p.wait(ctx) {
			return v, err
		}
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
