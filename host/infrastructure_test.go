package host_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/broker"
	"parley/broker/redisbroker"
	"parley/host"
	"parley/internal/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// strikes is how often each call fails, if it is made so often: more often than a queue forgives a handler.
const strikes = 6

// faults are the ways in which a call fails.
var faults = []struct {
	name  string
	times int
	whole bool // nothing of it was done: every message has one attempt
	add   func(p *redistest.Proxy, m redistest.Match) *redistest.Fault
}{
	{"refused", strikes, true, func(p *redistest.Proxy, m redistest.Match) *redistest.Fault {
		return p.Refuse(m, "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
	}},
	{"refused by a proxy", strikes, true, func(p *redistest.Proxy, m redistest.Match) *redistest.Fault {
		return p.Refuse(m, "ERR NOREPLICAS Not enough good replicas to write.")
	}},
	{"cut before", strikes, false, (*redistest.Proxy).CutRequest},
	{"cut reply", strikes, false, (*redistest.Proxy).CutReply},
	{"late", strikes, false, func(p *redistest.Proxy, m redistest.Match) *redistest.Fault {
		f := p.HoldReply(m)
		go func() {
			<-f.Hit()
			time.AfterFunc(150*time.Millisecond, f.Release)
		}()
		return f
	}},
	{"stalled", 1, false, (*redistest.Proxy).HoldReply}, // until the client gives the connection up
}

// call is a call that a host makes. Only what a host cannot do without it is said of a run: prepare makes it necessary.
type call struct {
	name  string
	match func(s *site) redistest.Match
	also  string        // another script, each of whose calls loses its reply once, so that this call is made
	lease time.Duration // the longest there is, unless said otherwise: what is found again was given back
}

func script(name string) func(*site) redistest.Match {
	return func(s *site) redistest.Match { return s.script(name) }
}

var hostCalls = []call{
	{name: "register", match: script("register")},
	{name: "turn", match: script("turn")},
	{name: "settle", match: func(s *site) redistest.Match { // one that commits what a handler did
		turn := s.script("turn")
		return func(words []string) bool { return turn(words) && slices.Contains(words, "re m1") }
	}},
	{name: "plain", match: script("plain")},
	{name: "resume", match: script("resume"), also: "turn"},
	{name: "renew", match: script("renew"), lease: 3 * time.Second},
	{name: "release", match: script("release")},
	{name: "reap", match: script("reap")},
	{name: "due", match: script("due")},
	{name: "sweep", match: script("sweep")},
	{name: "txhead", match: script("txhead")},
	{name: "arrive", match: script("arrive")},
	{name: "txdone", match: script("txdone")},
	{name: "endpoints", match: func(s *site) redistest.Match { return redistest.Command("HMGET", "{"+s.ns+"/work}:ep") }},
	{name: "version", match: func(s *site) redistest.Match { return redistest.Command("GET", "{"+s.ns+"}:version") }},
	{name: "directory", match: func(s *site) redistest.Match { return redistest.Command("HGETALL", "{"+s.ns+"}:entities") }},
}

// TestNoFailureOfTheInfrastructureIsTheHandlers: every call that a host makes, failing in every way: nothing counts for a message, every message is
// handled exactly once, in order, and no queue goes OFF. What a failed call held is given back, since no lease ends while a run lasts.
func TestNoFailureOfTheInfrastructureIsTheHandlers(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var runs sync.WaitGroup
			for _, c := range hostCalls {
				s := newSite(t, c)
				runs.Go(func() {
					err := s.run(f.times, f.add)
					if err == nil && f.whole && c.also == "" {
						err = s.oneAttempt()
					}
					if err != nil {
						t.Errorf("%s %s: %v\n%s", c.name, f.name, err, s.log)
					}
				})
			}
			runs.Wait()
		})
	}
}

// site is a namespace of its own with a host in it whose calls pass a proxy.
type site struct {
	call    call
	ns      string
	proxy   *redistest.Proxy
	admin   *redisbroker.Broker
	hosts   *redisbroker.Broker
	scripts map[string]string // name → hash
	log     *logText

	mu      sync.Mutex // guards what follows
	counted []string
	seen    map[string][]string // queue → bodies of attempts
}

// logText collects what a host says.
type logText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newSite(t *testing.T, c call) *site {
	t.Helper()
	server := redistest.Shared(t)
	s := &site{
		call: c, ns: redistest.Namespace(t) + "-" + c.name, proxy: redistest.NewProxy(t, server.Addr()), scripts: map[string]string{},
		log: &logText{}, seen: map[string][]string{},
	}
	open := func(url string) *redisbroker.Broker {
		b, err := redisbroker.Open(t.Context(), redisbroker.Options{URL: url, Namespace: s.ns, PatchScript: s.note})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	s.admin = open(server.URL())
	contracts := []string{broker.ContractDefault}
	d := broker.Definitions{Services: []broker.Service{
		{Name: "//home", Queue: "home", Contracts: contracts},
		{Name: "//work", Queue: "work", Contracts: contracts},
		{Name: "//late", Queue: "late", Contracts: contracts},
	}}
	for _, q := range []string{"home", "work", "late"} {
		d.Queues = append(d.Queues, broker.DefaultQueue(q, true))
	}
	for _, q := range []string{"plain", "out", "grave"} {
		d.Queues = append(d.Queues, broker.DefaultQueue(q, false))
	}
	if _, err := s.admin.Apply(t.Context(), d, false); err != nil {
		t.Fatal(err)
	}
	s.hosts = open(s.proxy.URL())
	return s
}

// note learns the hash of a script.
func (s *site) note(name, source string) string {
	sum := sha1.Sum([]byte(source))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[name] = hex.EncodeToString(sum[:])
	return source
}

func (s *site) script(name string) redistest.Match {
	return redistest.Command("EVALSHA", s.scripts[name])
}

// run has a host do everything once while the call fails.
func (s *site) run(times int, add func(*redistest.Proxy, redistest.Match) *redistest.Fault) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := s.prepare(ctx); err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	var struck []*redistest.Fault
	for range times {
		struck = append(struck, add(s.proxy, s.call.match(s)))
		if s.call.also != "" {
			s.proxy.CutReply(s.script(s.call.also))
		}
	}
	defer func() {
		for _, f := range struck {
			f.Release()
		}
	}()
	h, err := s.host()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	err = s.until("everything is handled, and the call has failed", func() bool { return s.done() && isHit(struck[0]) })
	if err == nil {
		err = s.more(ctx)
	}
	if err == nil {
		err = s.until("what came afterwards is handled", func() bool { return slices.Contains(s.bodies("plain"), "afterwards") && s.settled() })
	}
	stop()
	if rerr := <-ended; err == nil {
		err = rerr
	}
	if err == nil {
		err = s.check(context.Background())
	}
	return err
}

func isHit(f *redistest.Fault) bool {
	select {
	case <-f.Hit():
		return true
	default:
		return false
	}
}

// until polls cond for at most a minute.
func (s *site) until(what string, cond func() bool) error {
	for end := time.Now().Add(time.Minute); !cond(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.mu.Lock()
			defer s.mu.Unlock()
			return fmt.Errorf("still not: %s; attempts at %v", what, s.seen)
		}
	}
	return nil
}

// prepare makes work for every call: dialogs, one whose target is off, so that it waits in transmission, sessions, plain messages, a delayed one,
// and a dead reader with a message.
func (s *site) prepare(ctx context.Context) error {
	if err := s.admin.SetStatus(ctx, "late", broker.QueueDisabled); err != nil {
		return err
	}
	if err := s.dialog(ctx, "//late", "late 0", "late 1"); err != nil {
		return err
	}
	if err := s.dialog(ctx, "//work", "m0", "m1", "m2"); err != nil {
		return err
	}
	for _, m := range []broker.Outgoing{
		{Body: []byte("p0")},
		{Body: []byte("p1")},
		{Body: []byte("s0"), SessionID: "s"},
		{Body: []byte("s1"), SessionID: "s"},
		{Body: []byte("delayed"), Delay: 300 * time.Millisecond},
	} {
		queue := "plain"
		if _, err := s.admin.Send(ctx, queue, m); err != nil {
			return err
		}
	}
	if _, err := s.admin.Send(ctx, "grave", broker.Outgoing{Body: []byte("bones")}); err != nil {
		return err
	}
	dead, err := s.admin.OpenReader(ctx, "grave", broker.ReaderOptions{Slots: 1, Lease: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	if _, err := dead.Turn(ctx, broker.TurnRequest{Free: []int{0}, Empty: 1, Top: 1}); err != nil {
		return err
	}
	return s.admin.SetStatus(ctx, "late", broker.QueueActive)
}

func (s *site) dialog(ctx context.Context, to string, bodies ...string) error {
	e, err := s.admin.Begin(ctx, broker.Dialog{From: "//home", To: to})
	for i := 0; err == nil && i < len(bodies); i++ {
		_, err = s.admin.SendOn(ctx, e.Handle, broker.Outgoing{Body: []byte(bodies[i])})
	}
	return err
}

// more sends what a host must still be able to handle when the call has failed for the last time.
func (s *site) more(ctx context.Context) error {
	_, err := s.admin.Send(ctx, "plain", broker.Outgoing{Body: []byte("afterwards")})
	return err
}

func (s *site) host() (*host.Host, error) {
	lease := s.call.lease
	if lease == 0 {
		lease = broker.MaxLease
	}
	cfg := host.Config{
		Readers: s.hosts, Waker: s.hosts, Keeper: s.hosts, Name: "h", Lease: lease, Sweep: 300 * time.Millisecond, Linger: 100 * time.Millisecond,
		Log: slog.New(slog.NewTextHandler(s.log, nil)),
	}
	for _, q := range []string{"home", "work", "late", "plain", "grave"} {
		cfg.Plugins = append(cfg.Plugins, host.PluginConfig{Name: q, Queue: q, Runner: handler{s}, MaxReaders: 1})
	}
	return host.New(cfg)
}

// handler handles all queues: it answers dialogs, sends on what is plain, and asks the broker about what it stages as a guest does.
type handler struct{ s *site }

func (handler) Digest() string              { return "d1" }
func (handler) Close(context.Context) error { return nil }

func (h handler) Run(ctx context.Context, inv *host.Invocation) host.Result {
	m := &inv.Unit.Messages[0]
	body := string(m.Body)
	h.s.attempt(inv.Queue, body, m)
	res := host.Result{}
	var e *broker.Effect
	switch {
	case inv.Queue == "work" && m.Kind == broker.KindApp:
		e = &broker.Effect{Kind: broker.EffectSend, Conversation: m.Conversation, Message: broker.Outgoing{Body: []byte("re " + body)}}
	case inv.Queue == "plain":
		e = &broker.Effect{Kind: broker.EffectSendTo, Queue: "out", Message: broker.Outgoing{Body: []byte("out " + body)}}
	}
	if h.s.call.lease != 0 && body == "m1" {
		<-time.After(h.s.call.lease * 2 / 3) // so long that the lease must be renewed
	}
	if err := h.s.meanwhile(ctx, inv.Queue, body); err != nil {
		res.Fault = err
	}
	if e != nil {
		if err := inv.Effects.CheckEffect(ctx, inv.Unit, e); broker.Unanswered(err) {
			return host.Result{Settlement: broker.Settlement{Verdict: broker.VerdictRelease}, Fault: fmt.Errorf("%w: %w", host.ErrNoAnswer, err)}
		} else if err != nil {
			return host.Result{Settlement: broker.Settlement{Verdict: broker.VerdictRollback, FailReason: broker.ReasonHandlerError, FailText: err.Error()}}
		}
		res.Settlement.Effects = []broker.Effect{*e}
	}
	return res
}

// attempt notes an attempt, and what the message counts; the grave's is counted once, since its reader died.
func (s *site) attempt(queue, body string, m *broker.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[queue] = append(s.seen[queue], body)
	want := 0
	if queue == "grave" {
		want = 1
	}
	if m.DeliveryCount != want {
		s.counted = append(s.counted, fmt.Sprintf("%s on %s: %d deliveries, %d rollbacks", body, queue, m.DeliveryCount, m.PoisonCount))
	}
}

// meanwhile does what the host must notice: it changes the directory, and begins a dialog at a time when no turn asks for endpoints.
func (s *site) meanwhile(ctx context.Context, queue, body string) error {
	switch {
	case queue != "work" || !s.first(body):
	case body == "m0":
		_, err := s.admin.Apply(ctx, broker.Definitions{Queues: []broker.QueueSettings{broker.DefaultQueue("new", false)}}, false)
		return err
	case body == "m2":
		return s.dialog(ctx, "//work", "n0")
	}
	return nil
}

// first reports whether this is the first attempt at body on work.
func (s *site) first(body string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, b := range s.seen["work"] {
		if b == body {
			n++
		}
	}
	return n == 1
}

// bodies are those of all attempts on a queue.
func (s *site) bodies(queue string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen[queue])
}

// done reports whether every message was handled at least once, and committed.
func (s *site) done() bool {
	for queue, want := range map[string][]string{
		"work": {"m0", "m1", "m2", "n0"}, "home": {"re m0", "re m1", "re m2", "re n0"}, "late": {"late 0", "late 1"},
		"plain": {"p0", "p1", "s0", "s1", "delayed"}, "grave": {"bones"},
	} {
		got := s.bodies(queue)
		for _, body := range want {
			if !slices.Contains(got, body) {
				return false
			}
		}
	}
	return s.settled()
}

// settled reports whether nothing waits or is held on the queues of the host.
func (s *site) settled() bool {
	for _, q := range []string{"home", "work", "late", "plain", "grave"} {
		info, err := s.admin.Queue(context.Background(), q)
		if err != nil || info.Counts.Total != 0 {
			return false
		}
	}
	return true
}

// check finds what was counted, doubled, out of order or OFF.
func (s *site) check(ctx context.Context) error {
	var wrong []string
	s.mu.Lock()
	wrong = append(wrong, s.counted...)
	s.mu.Unlock()
	for _, q := range []string{"home", "work", "late", "plain", "grave", "out"} {
		info, err := s.admin.Queue(ctx, q)
		if err != nil {
			return err
		}
		if info.Status != broker.QueueActive || info.Counts.DeadLetter != 0 {
			wrong = append(wrong, fmt.Sprintf("queue %s is %s with %d dead letters", q, info.Status, info.Counts.DeadLetter))
		}
	}
	rows, err := s.admin.Peek(ctx, "out", 0, 100)
	if err != nil {
		return err
	}
	var out []string
	for i := range rows {
		out = append(out, string(rows[i].Body))
	}
	slices.Sort(out)
	if got, want := strings.Join(out, ","), "out afterwards,out delayed,out p0,out p1,out s0,out s1"; got != want {
		wrong = append(wrong, fmt.Sprintf("sent on: %s; want %s", got, want))
	}
	for queue, order := range map[string][]string{"home": {"re m0", "re m1", "re m2"}, "work": {"m0", "m1", "m2"}, "late": {"late 0", "late 1"}} {
		if got := firsts(s.bodies(queue), order); !slices.Equal(got, order) {
			wrong = append(wrong, fmt.Sprintf("handled on %s in the order %v", queue, got))
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%s", strings.Join(wrong, "\n\t"))
	}
	return nil
}

// oneAttempt checks that no handler ran twice.
func (s *site) oneAttempt() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for queue, bodies := range s.seen {
		if sorted := slices.Sorted(slices.Values(bodies)); len(slices.Compact(sorted)) != len(bodies) {
			return fmt.Errorf("attempts on %s: %v; want one each", queue, bodies)
		}
	}
	return nil
}

// firsts are those of bodies that are in of, each where it first is.
func firsts(bodies, of []string) []string {
	var got []string
	for _, b := range bodies {
		if slices.Contains(of, b) && !slices.Contains(got, b) {
			got = append(got, b)
		}
	}
	return got
}
