package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/broker"
	"parley/broker/redisbroker"
	"parley/cmd/runtime/pluginbuild"
	"parley/internal/redistest"
)

// factory is two hosts that move messages of many sessions from queue in to queue out, on a server of their own.
type factory struct {
	t        *testing.T
	s        shell
	b        *redisbroker.Broker
	file     string
	hosts    []*exec.Cmd
	logs     []*safeBuffer
	sessions int
	each     int
}

func newFactory(t *testing.T, sessions, each int) *factory {
	f := &factory{t: t, s: shell{t, redistest.Start(t).URL(), "crash"}, sessions: sessions, each: each}
	dir := t.TempDir()
	if err := pluginbuild.Build(t.Context(), filepath.Join("testdata", "forward"), filepath.Join(dir, "forward.wasm")); err != nil {
		t.Fatal(err)
	}
	f.file = filepath.Join(dir, "f.yaml")
	yaml := `
host: {lease: 1s, drain: 5s, cache: ` + dir + `}
queues:
  - {name: in, max_delivery_count: 100, retry: {initial: 0s, max: 0s}}
  - {name: out}
plugins: [{name: forward, source: forward.wasm, queue: in}]
`
	if err := os.WriteFile(f.file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	f.s.must("apply", "-f", f.file)
	b, err := redisbroker.Open(t.Context(), redisbroker.Options{URL: f.s.redis, Namespace: f.s.ns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	f.b = b
	for range 2 {
		f.hosts, f.logs = append(f.hosts, nil), append(f.logs, &safeBuffer{})
		f.start(len(f.hosts) - 1)
	}
	t.Cleanup(func() {
		for _, h := range f.hosts {
			_ = h.Process.Kill()
			_ = h.Wait()
		}
	})
	return f
}

// start starts host i as a process.
func (f *factory) start(i int) {
	f.t.Helper()
	cmd, out, errs := command(f.t, "serve", "-f", f.file, "--redis", f.s.redis, "--namespace", f.s.ns)
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.hosts[i], f.logs[i] = cmd, errs
	awaitReady(f.t, out, errs)
}

// feed sends each session its messages, numbered from 0, the sessions mixed. It does so in the background; what it
// returns is closed, or gets the error, at the end.
func (f *factory) feed() <-chan error {
	fed := make(chan error, 1)
	go func() {
		defer close(fed)
		if err := f.send(); err != nil {
			fed <- err
		}
	}()
	return fed
}

func (f *factory) send() error {
	for n := range f.each {
		msgs := make([]broker.Outgoing, f.sessions)
		for i := range msgs {
			msgs[i] = broker.Outgoing{SessionID: "s" + strconv.Itoa(i), Body: []byte(strconv.Itoa(n))}
		}
		if _, err := f.b.Send(f.t.Context(), "in", msgs...); err != nil {
			return err
		}
	}
	return nil
}

func (f *factory) arrived() int {
	f.t.Helper()
	q, err := f.b.Queue(f.t.Context(), "out")
	if err != nil {
		f.t.Fatal(err)
	}
	return int(q.Counts.Total)
}

// await waits until n messages have arrived; it fails when none arrives for a minute.
func (f *factory) await(n int) {
	f.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	last, at := -1, time.Now()
	for {
		now := f.arrived()
		if now >= n {
			return
		}
		if now > last {
			last, at = now, time.Now()
		}
		if time.Since(at) > time.Minute {
			f.t.Fatalf("%d of %d messages arrived, and no more for a minute; hosts say:\n%s\n%s", now, n, f.logs[0], f.logs[1])
		}
		<-tick.C
	}
}

// check proves that each message arrived once and in order, and that nothing else is anywhere.
func (f *factory) check() {
	f.t.Helper()
	next := map[string]int{}
	total := 0
	for from := int64(0); ; {
		page, err := f.b.Peek(f.t.Context(), "out", from, 500)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for i := range page {
			m := &page[i]
			if want := strconv.Itoa(next[m.SessionID]); !bytes.Equal(m.Body, []byte(want)) {
				f.t.Fatalf("session %s: message %s arrived where %s belongs", m.SessionID, m.Body, want)
			}
			next[m.SessionID]++
			total++
			from = m.SequenceNumber + 1
		}
	}
	if want := f.sessions * f.each; total != want {
		f.t.Errorf("%d messages arrived, want %d", total, want)
	}
	q, err := f.b.Queue(f.t.Context(), "in")
	if err != nil {
		f.t.Fatal(err)
	}
	if q.Counts != (broker.Counts{}) {
		f.t.Errorf("left on the source: %+v", q.Counts)
	}
	f.s.must("audit")
}

// TestHostsThatAreKilled kills a host at random moments, ten times, while two of them work.
func TestHostsThatAreKilled(t *testing.T) {
	sessions, each := 200, 100
	if testing.Short() {
		each = 20
	}
	f := newFactory(t, sessions, each)
	moments := make([]int, 10)
	for i := range moments {
		moments[i] = rand.IntN(sessions * each)
	}
	slices.Sort(moments)
	t.Logf("kills after %v messages", moments)
	fed := f.feed()
	for _, moment := range moments {
		f.await(moment)
		i := rand.IntN(len(f.hosts))
		if err := f.hosts[i].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = f.hosts[i].Wait() // it says that it was killed
		f.start(i)
	}
	if err := <-fed; err != nil {
		t.Fatal(err)
	}
	f.await(sessions * each)
	f.settle()
	f.check()
}

// settle waits until the source is empty: an attempt that died after its commit is still to be reaped.
func (f *factory) settle() {
	f.t.Helper()
	redistest.Eventually(f.t, "the source to be empty", func() bool {
		q, err := f.b.Queue(f.t.Context(), "in")
		return err == nil && q.Counts == (broker.Counts{})
	})
}

// status switches the source.
func (f *factory) status(s broker.QueueStatus) {
	f.t.Helper()
	if err := f.b.SetStatus(f.t.Context(), "in", s); err != nil {
		f.t.Fatal(err)
	}
}

// TestHostThatIsStopped freezes a host until its lease is over and the other one has done all the work. What it held was
// given away, so it commits nothing when it wakes, and goes on to work.
func TestHostThatIsStopped(t *testing.T) {
	const sessions, each = 50, 200
	f := newFactory(t, sessions, each)
	// With all of them waiting, whenever the host is stopped it holds some.
	f.status(broker.QueueReceiveDisabled)
	if err := f.send(); err != nil {
		t.Fatal(err)
	}
	f.status(broker.QueueActive)
	f.await(100)
	signal := func(sig syscall.Signal) {
		if err := f.hosts[0].Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	f.await(sessions * each)
	f.settle()
	signal(syscall.SIGCONT)
	redistest.Eventually(t, "the stopped host to find its attempts lost", func() bool {
		return strings.Contains(f.logs[0].String(), "attempts lost their lock")
	})
	f.check()
	// Alone, the one that was stopped works again.
	if err := f.hosts[1].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := f.hosts[1].Wait(); err != nil {
		t.Errorf("the other host ended with %v", err)
	}
	f.s.must("send", "in", "--session", "after", "--body", "0")
	f.await(sessions*each + 1)
	f.s.must("audit")
}
