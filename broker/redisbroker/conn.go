package redisbroker

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// errStale says that a connection was to be left before the command went out on it.
var errStale = errors.New("redisbroker: the connection leads to a server that is a replica now")

// conns lets a client leave the connections it has. Behind an address that stays (a proxy, a name) the server may be another
// after a failover: who is told READONLY must connect again to reach it. go-redis does so for one spelling of that answer, and
// for the connection that got it.
type conns struct{ generation atomic.Int64 }

// leave has every connection that is open now closed instead of used again. Calls under way are not disturbed.
func (c *conns) leave() { c.generation.Add(1) }

// dialer wraps what dial connects.
func (c *conns) dialer(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		born := c.generation.Load()
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if sys, ok := nc.(syscall.Conn); ok {
			return &systemConn{leavable{nc, c, born}, sys}, nil
		}
		return &leavable{nc, c, born}, nil
	}
}

// leavable is a connection that refuses to carry another command once it was left.
type leavable struct {
	net.Conn
	conns *conns
	born  int64
}

func (l *leavable) stale() bool { return l.conns.generation.Load() != l.born }

// Write implements net.Conn.
func (l *leavable) Write(b []byte) (int, error) {
	if l.stale() {
		return 0, errStale
	}
	return l.Conn.Write(b)
}

// systemConn is one whose file descriptor go-redis looks at before it uses it again: there it finds out that it was left.
type systemConn struct {
	leavable
	sys syscall.Conn
}

// SyscallConn implements syscall.Conn.
func (s *systemConn) SyscallConn() (syscall.RawConn, error) {
	if s.stale() {
		return nil, errStale
	}
	return s.sys.SyscallConn()
}

// leaveReplicas is the hook that has a client leave its connections when a command was answered READONLY.
type leaveReplicas struct{ conns *conns }

// DialHook is none.
func (h leaveReplicas) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook looks at the answers of single commands.
func (h leaveReplicas) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil && isReadOnly(err) {
			h.conns.leave()
		}
		return err
	}
}

// ProcessPipelineHook looks at the answers of pipelines and transactions.
func (h leaveReplicas) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if cmd.Err() != nil && isReadOnly(cmd.Err()) {
				h.conns.leave()
				break
			}
		}
		return err
	}
}
