package redisbroker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/redis/go-redis/v9"

	"parley/broker"
)

func TestWhatIsKnownOfACallThatFailed(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want failure
	}{
		{nil, noFailure},
		{answered("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."), refusedWhole},
		{answered("NOREPLICAS Not enough good replicas to write."), refusedWhole},
		{answered("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."), refusedWhole},
		{answered("LOADING Redis is loading the dataset in memory"), refusedWhole},
		{answered("READONLY You can't write against a read only replica."), refusedWhole},
		{answered("READONLY You can't write against a read only replica. script: 1f, on @user_script:12."), refusedWhole},
		{answered("ERR READONLY You can't write against a read only replica."), refusedWhole},
		{answered("ERR readonly: this node is a replica"), refusedWhole},
		{answered("ERR You can't write against a read only replica"), refusedWhole},
		{answered("ERR Error running script (call to f_1f): @user_script:12: -READONLY You can't write against a read only replica."), refusedWhole},
		{answered("ERR Error running script (call to f_1f): @user_script: 12: -NOREPLICAS Not enough good replicas to write."), refusedWhole},
		{answered("ERR LOADING Redis is loading the dataset in memory"), refusedWhole},
		{answered("ERR max number of clients reached"), refusedWhole},
		{answered("CLUSTERDOWN Hash slot not served"), refusedWhole},
		{answered("TRYAGAIN Multiple keys request during rehashing of slot"), refusedWhole},
		{answered("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."), refusedWhole},
		{answered("MOVED 3999 127.0.0.1:6381"), refusedWhole},
		{answered("EXECABORT Transaction discarded because of: READONLY You can't write against a read only replica."), refusedWhole},
		{answered("EXECABORT Transaction discarded because of: NOREPLICAS Not enough good replicas to write."), refusedWhole},
		{fmt.Errorf("settle: %w", answered("NOREPLICAS Not enough good replicas to write.")), refusedWhole},
		{&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}, refusedWhole},
		{redis.ErrPoolTimeout, refusedWhole},
		{&net.OpError{Op: "write", Net: "tcp", Err: errStale}, refusedWhole},

		{answered("EXECABORT Transaction discarded because of previous errors."), refusedForUs},
		{answered("EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'."), refusedForUs},
		{answered("OOM command not allowed when used memory > 'maxmemory'."), refusedForUs},
		{answered("NOPERM User plain has no permissions to run the 'xadd' command"), refusedForUs},
		{answered("NOAUTH Authentication required."), refusedForUs},
		{answered("WRONGTYPE Operation against a key holding the wrong kind of value"), refusedForUs},
		{answered("BUSYGROUP Consumer Group name already exists"), refusedForUs},
		{answered("NOGROUP No such key"), refusedForUs},
		{answered("NOSCRIPT No matching script."), refusedForUs},
		{answered("ERR unknown command 'READONLY', with args beginning with: "), refusedForUs},
		{redis.Nil, refusedForUs},
		{redis.ErrClosed, refusedForUs},
		{broker.ErrUnreachable.With("said already"), refusedForUs},
		{fmt.Errorf("send: %w", broker.ErrQuota), refusedForUs},

		{io.EOF, outcomeUnknown},
		{io.ErrUnexpectedEOF, outcomeUnknown},
		{errRead, outcomeUnknown},
		{net.ErrClosed, outcomeUnknown},
		{&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, outcomeUnknown},
		{&net.OpError{Op: "write", Net: "tcp", Err: errors.New("broken pipe")}, outcomeUnknown},
		{context.DeadlineExceeded, outcomeUnknown},
		{context.Canceled, outcomeUnknown},
		{errors.New("redis: can't parse reply"), outcomeUnknown},
	} {
		if got := failureOf(tc.err); got != tc.want {
			t.Errorf("%v: got %v, want %v", tc.err, got, tc.want)
		}
		if again := tc.want == refusedWhole || tc.want == outcomeUnknown; infrastructure(tc.err) != again ||
			maybeDone(tc.err) != (tc.want == outcomeUnknown) || passesBy(tc.err) != (tc.want == refusedWhole) {
			t.Errorf("%v: its predicates differ from %v", tc.err, tc.want)
		}
	}
}
