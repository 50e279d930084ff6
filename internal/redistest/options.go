package redistest

import (
	"fmt"
	"strings"
)

// Option changes how a server is started.
type Option func(*options)

type options struct {
	lines    []string
	password string
	clocked  bool
}

// Config adds one line of redis.conf, such as "maxmemory-policy allkeys-lru".
// Later lines win over earlier ones and over the package's own.
func Config(line string) Option {
	return func(o *options) { o.lines = append(o.lines, line) }
}

// MaxMemory limits the server's memory, in the notation of redis.conf ("8mb").
// At the limit it refuses writes, unless a [Config] line sets another policy.
func MaxMemory(limit string) Option { return Config("maxmemory " + limit) }

// Password makes the server ask for password; [Server.URL] and [Server.Client]
// carry it.
func Password(password string) Option {
	return func(o *options) {
		o.password = password
		o.lines = append(o.lines, fmt.Sprintf("requirepass %q", password))
	}
}

// Persistent switches the append-only file on, written through to disk at every
// command and never rewritten, so that data survives [Server.Kill] and
// [Server.Restart], all of it or, with [Server.Lose], up to a point.
func Persistent() Option {
	return func(o *options) {
		o.lines = append(o.lines, "appendonly yes", "appendfsync always", "auto-aof-rewrite-percentage 0")
	}
}

func newOptions(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// config is the whole redis.conf for one start, handed over on standard input so
// that a password never shows in the process list.
func (o options) config(port int, dir string) string {
	lines := []string{
		"bind 127.0.0.1",
		fmt.Sprintf("port %d", port),
		fmt.Sprintf("dir %q", dir),
		"daemonize no",
		`save ""`,
		"appendonly no",
		"maxmemory-policy noeviction",
		// With the default of 5 s an early failover loses acknowledged writes.
		"repl-diskless-sync-delay 0",
		"enable-debug-command local",
	}
	return strings.Join(append(lines, o.lines...), "\n") + "\n"
}
