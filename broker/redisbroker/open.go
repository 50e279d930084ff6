package redisbroker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"parley/broker"
)

// Options configures Open. The zero value of each field is its default.
type Options struct {
	// URL of the server: redis://[user:password@]host:port[/db], rediss:// for TLS, redis-cluster:// for a Cluster (several
	// addresses joined by commas), redis-sentinel://host:port,…/master. Defaults to redis://127.0.0.1:6379.
	URL string
	// Namespace separates systems on one server. Defaults to "default".
	Namespace string
	// ClientName is shown by CLIENT LIST and is part of reader names. Defaults to the host's name.
	ClientName string
	// AllowEviction accepts a server that may evict keys.
	AllowEviction bool
	// Loading is how long to wait for a server that is loading its data. Defaults to a minute.
	Loading time.Duration
	// Log takes the broker's warnings. Defaults to nothing.
	Log func(msg string, args ...any)

	// Now overrides the server's clock in scripts, in milliseconds; 0 means the server's. Tests only.
	Now func() int64
	// PatchScript may change the text of a script before it is loaded. Tests of the tests only.
	PatchScript func(name, source string) string
}

// Broker implements every role of package broker. Safe for concurrent use.
type Broker struct {
	opt      Options
	rdb      redis.UniversalClient
	ns       string
	boot     string        // this incarnation: no other has the name, ever
	denied   chan struct{} // a call was refused for want of a right
	producer string
	cluster  bool
	embedded *miniredis.Miniredis
	scripts  map[string]*script
	dir      directory
	readerN  atomic.Int64
	callN    atomic.Int64
	sendMu   sync.Mutex // guards senders
	senders  map[string]*sender
	eps      epCache
	doubts   doubts
	keepMu   sync.Mutex // guards keep
	keep     keepState
	time     serverClock
	hub      *hub
	owed     owed
	life     context.Context // ends with Close
	end      context.CancelFunc
	sends    sync.WaitGroup // the goroutines of senders
}

const (
	dialTimeout  = 2 * time.Second
	callTimeout  = 5 * time.Second
	lookTimeout  = time.Second // for what a running handler waits for
	maxCallTries = 3
)

// Open connects to a server, checks that it can be used (version, role, rights of the user, eviction policy; on a Cluster of each
// master) and loads the scripts that run in pipelines. It writes nothing, and waits while the server is loading its data.
//
// Errors: broker.ErrUnreachable when it does not answer, refuses the credentials (the password is never part of the text) or is not what
// the URL says, with the remedy; broker.ErrRights, broker.ErrEviction, broker.ErrInvalid for a URL or namespace that cannot be understood
// or a version that is too old.
func Open(ctx context.Context, opt Options) (*Broker, error) {
	if opt.URL == "" {
		opt.URL = "redis://127.0.0.1:6379"
	}
	u, cluster, err := parseURL(opt.URL)
	if err != nil {
		return nil, err
	}
	u.ClientName, u.PoolSize = cleanName(opt.ClientName), 32
	var c conns
	rdb := c.newClient(u, cluster)
	b, err := start(ctx, opt, rdb, cluster)
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	return b, nil
}

// newClient makes a client that repeats nothing by itself (an automatic retry doubles what is not idempotent, M6), bounds every call,
// ends a call with its context, and leaves a server that became a replica.
func (c *conns) newClient(u *redis.UniversalOptions, cluster bool) redis.UniversalClient {
	u.MaxRetries, u.DialerRetries = -1, 1
	u.DialTimeout, u.ReadTimeout, u.WriteTimeout = dialTimeout, callTimeout, callTimeout
	u.ContextTimeoutEnabled, u.DisableIdentity, u.IsClusterMode = true, true, cluster
	u.Dialer = c.dialer(redis.NewDialer(&redis.Options{DialTimeout: dialTimeout, TLSConfig: u.TLSConfig}))
	rdb := redis.NewUniversalClient(u)
	rdb.AddHook(leaveReplicas{c})
	return rdb
}

// OpenEmbedded starts an in-process server and connects to it. It keeps nothing: when the Broker is closed, or the process
// ends, everything is gone.
func OpenEmbedded(ctx context.Context, opt Options) (*Broker, error) {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		return nil, fmt.Errorf("start the embedded server: %w", err)
	}
	opt.URL = "redis://" + m.Addr()
	rdb := redis.NewClient(&redis.Options{Addr: m.Addr(), MaxRetries: -1, DisableIdentity: true, PoolSize: 32, Protocol: 2})
	b, err := start(ctx, opt, rdb, false)
	if err != nil {
		m.Close()
		return nil, err
	}
	b.embedded = m
	return b, nil
}

// Embedded reports whether the server is the in-process one, which keeps nothing.
func (b *Broker) Embedded() bool { return b.embedded != nil }

// URL returns the server's URL without credentials.
func (b *Broker) URL() string { return redact(b.opt.URL) }

// Namespace returns the namespace.
func (b *Broker) Namespace() string { return b.ns }

// Close closes the connections. Readers must be closed before.
func (b *Broker) Close() error {
	b.end()
	b.owed.close()
	b.hub.close()
	err := b.rdb.Close()
	b.sends.Wait()
	if b.embedded != nil {
		b.embedded.Close()
	}
	return err
}

func start(ctx context.Context, opt Options, rdb redis.UniversalClient, cluster bool) (*Broker, error) {
	if opt.Namespace == "" {
		opt.Namespace = "default"
	}
	if err := broker.CheckNamespace(opt.Namespace); err != nil {
		return nil, err
	}
	if opt.Log == nil {
		opt.Log = func(string, ...any) {}
	}
	if opt.ClientName == "" {
		opt.ClientName, _ = os.Hostname()
	}
	b := &Broker{
		opt: opt, rdb: rdb, ns: opt.Namespace, cluster: cluster, senders: map[string]*sender{}, producer: randomName(), denied: make(chan struct{}, 1),
	}
	b.hub = newHub(b)
	b.life, b.end = context.WithCancel(context.Background())
	if err := b.admit(ctx); err != nil {
		return nil, err
	}
	rdb.AddHook(noticeDenials{b.denied})
	if err := b.loadScripts(ctx); err != nil {
		return nil, err
	}
	b.boot = "r:" + cleanName(opt.ClientName) + ":" + randomName()
	return b, b.dir.load(ctx, b)
}

// randomName is 65 random bits. A number from the server would name two processes when the server lost its last writes.
func randomName() string { return rand.Text()[:13] }

// fault turns an error of the client into one of the catalogue, naming the server but never a password.
func (b *Broker) fault(op string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var be *broker.Error
	if errors.As(err, &be) {
		return err
	}
	msg := err.Error()
	switch {
	case strings.HasPrefix(msg, "OOM ") || strings.Contains(msg, "used memory > 'maxmemory'"):
		return broker.ErrQuota.With("%s: redis out of memory at %s; raise maxmemory, or make room: receiving, purging, ending dialogs and deleting queues work meanwhile", op, redact(b.opt.URL))
	}
	if e := b.remedied(op, msg); e != nil { // what a server refuses at the start of a connection is wrapped
		return e
	}
	var answer redis.Error
	switch refused := errors.As(err, &answer); {
	case refused && passesBy(err):
		return broker.ErrUnreachable.With("%s: %s takes no commands for now: %s", op, redact(b.opt.URL), msg)
	case !refused && !errors.Is(err, redis.ErrClosed):
		return broker.ErrUnreachable.With("%s: no answer from %s; is Redis running there?", op, redact(b.opt.URL))
	}
	return fmt.Errorf("%s: %w", op, err)
}

func cleanName(s string) string {
	f := func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}
	if s == "" {
		return "parley"
	}
	return strings.Map(f, s)
}
