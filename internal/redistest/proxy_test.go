package redistest

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
)

// through is a client of the shared server by way of a new proxy.
func through(t *testing.T) (*Proxy, *redis.Client) {
	t.Helper()
	p := NewProxy(t, Shared(t).Addr())
	c := redis.NewClient(clientOptions(p.Addr(), ""))
	t.Cleanup(func() { _ = c.Close() })
	return p, c
}

func TestCutReplyLosesTheAnswerNotTheWork(t *testing.T) {
	t.Parallel()
	p, c := through(t)
	key := Namespace(t)
	fault := p.CutReply(Command("xadd"))
	add := &redis.XAddArgs{Stream: key, Values: []any{"n", 1}}
	if err := c.XAdd(t.Context(), add).Err(); err == nil {
		t.Error("XADD with a lost reply: got no error")
	}
	fault.Await(t)
	if n := c.XLen(t.Context(), key).Val(); n != 1 {
		t.Errorf("entries after the lost reply: got %d, want 1", n)
	}
	if err := c.XAdd(t.Context(), add).Err(); err != nil {
		t.Errorf("second XADD: got %v, want the fault only once", err)
	}
}

// M6 of the measured facts: the client's own retry doubles the write. The proxy
// must be able to show it, or tests that rely on it prove nothing.
func TestCutReplyShowsTheClientsRetry(t *testing.T) {
	t.Parallel()
	p := NewProxy(t, Shared(t).Addr())
	opts := clientOptions(p.Addr(), "")
	opts.MaxRetries = 3
	c := redis.NewClient(opts)
	defer func() { _ = c.Close() }()
	key := Namespace(t)
	p.CutReply(Command("XADD"))
	if err := c.XAdd(t.Context(), &redis.XAddArgs{Stream: key, Values: []any{"n", 1}}).Err(); err != nil {
		t.Fatal(err)
	}
	if n := c.XLen(t.Context(), key).Val(); n != 2 {
		t.Errorf("entries after a retried XADD: got %d, want 2", n)
	}
}

func TestCutRequestLosesTheWork(t *testing.T) {
	t.Parallel()
	p, c := through(t)
	key := Namespace(t)
	fault := p.CutRequest(Command("INCR", key))
	if err := c.Incr(t.Context(), key).Err(); err == nil {
		t.Error("INCR with a lost request: got no error")
	}
	fault.Await(t)
	if n := c.Exists(t.Context(), key).Val(); n != 0 {
		t.Errorf("keys after the lost request: got %d, want 0", n)
	}
}

func TestRefuseAnswersInTheServersPlace(t *testing.T) {
	t.Parallel()
	p, c := through(t)
	key := Namespace(t)
	fault := p.Refuse(Command("INCR", key), "BUSY wait")
	if err := c.Incr(t.Context(), key).Err(); err == nil || err.Error() != "BUSY wait" {
		t.Errorf("a refused INCR: got %v", err)
	}
	fault.Await(t)
	p.Refuse(Nth(2, Command("INCR", key)), "BUSY wait")
	pipe := c.TxPipeline()
	first, second := pipe.Incr(t.Context(), key), pipe.Incr(t.Context(), key)
	if _, err := pipe.Exec(t.Context()); err == nil || first.Err() == nil || second.Err() == nil || second.Err().Error() != "BUSY wait" {
		t.Errorf("a refused transaction: got %v, %v, %v", err, first.Err(), second.Err())
	}
	if n, err := c.Incr(t.Context(), key).Result(); n != 1 || err != nil {
		t.Errorf("the first INCR that the server got: %d, %v", n, err)
	}
}

func TestCutReplyInsideAPipelineKeepsWhatCameBefore(t *testing.T) {
	t.Parallel()
	p, c := through(t)
	key := Namespace(t)
	p.CutReply(Nth(2, Command("INCR", key)))
	pipe := c.Pipeline()
	first, second, third := pipe.Incr(t.Context(), key), pipe.Incr(t.Context(), key), pipe.Incr(t.Context(), key)
	_, _ = pipe.Exec(t.Context())
	// The client puts the connection's error on every command of a pipeline, but
	// keeps the values that it had read.
	got := []int64{first.Val(), second.Val(), third.Val()}
	if diff := cmp.Diff([]int64{1, 0, 0}, got); diff != "" || second.Err() == nil {
		t.Errorf("replies that arrived (-want +got):\n%s(error %v, want one)", diff, second.Err())
	}
	// Whether the third one still reached the server depends on when it was sent.
	if n, err := c.Get(t.Context(), key).Int(); err != nil || n < 2 {
		t.Errorf("value at the server: got %d, %v, want 2 or 3", n, err)
	}
}

func TestHoldReplyKeepsOneClientWaiting(t *testing.T) {
	t.Parallel()
	p, c := through(t)
	key := Namespace(t)
	fault := p.HoldReply(Command("INCR", key))
	done := make(chan error, 1)
	go func() { done <- c.Incr(context.Background(), key).Err() }()
	fault.Await(t)
	if got := c.Get(t.Context(), key).Val(); got != "1" {
		t.Errorf("value while the reply is held: got %q, want 1", got)
	}
	select {
	case err := <-done:
		t.Errorf("held call returned early: %v", err)
	default:
	}
	fault.Release()
	if err := <-done; err != nil {
		t.Errorf("held call after release: %v", err)
	}
}

func TestStallAndResume(t *testing.T) {
	t.Parallel()
	p, c := through(t)
	key := Namespace(t)
	p.Stall()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var timeout net.Error
	if err := c.Incr(ctx, key).Err(); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("call through a stalled proxy: got %v, want its deadline", err)
	}
	p.Resume()
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("ping after resume: %v", err)
	}
}

func TestDownAndUp(t *testing.T) {
	t.Parallel()
	p, c := through(t)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	p.Down()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("ping through a proxy that is down: got no error")
	}
	p.Up()
	Eventually(t, "the client to connect again", func() bool { return c.Ping(t.Context()).Err() == nil })
}

func TestSubscriptionsPass(t *testing.T) {
	t.Parallel()
	_, c := through(t)
	channel := Namespace(t)
	sub := c.Subscribe(t.Context(), channel)
	defer func() { _ = sub.Close() }()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(t.Context(), channel, "hello").Err(); err != nil {
		t.Fatal(err)
	}
	got, err := sub.ReceiveMessage(t.Context())
	if err != nil || got.Payload != "hello" {
		t.Errorf("got %v, %v, want hello", got, err)
	}
}
