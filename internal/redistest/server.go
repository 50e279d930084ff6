package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startTimeout is how long a server may take until it answers. A start takes
// under 0.1 s; the rest is room for a machine that compiles at the same time.
const startTimeout = 20 * time.Second

// BinaryVariable names the environment variable that says which server to run
// instead of the redis-server on PATH, for instance a valkey-server.
const BinaryVariable = "PARLEY_TEST_REDIS_SERVER"

var (
	errPortTaken = errors.New("port is taken")
	errNoBinary  = errors.New("no redis-server on PATH: install it (Debian: apt-get install redis-server, or make tools) or name one in " + BinaryVariable)
)

// Server is a running redis-server. Its methods are safe for concurrent use.
type Server struct {
	opts options
	port int
	dir  string
	log  *tail

	mu     sync.Mutex // guards the fields below
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
}

// Start runs a server for the rest of the test and stops it at its end. Its
// files are in a folder that the test removes.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s, err := newServer(t.TempDir(), opts)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(s.stop)
	return s
}

// newServer starts a server on a free port.
func newServer(dir string, opts []Option) (*Server, error) {
	s := &Server{opts: newOptions(opts), dir: dir, log: &tail{}}
	for range 20 {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s.port = port
		if err = s.start(); !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
	return nil, fmt.Errorf("found no free port: %w", errPortTaken)
}

// Addr is the server's host:port; it stays the same over a restart.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is the server's redis:// address, with the password if it asks for one.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr()}
	if s.opts.password != "" {
		u.User = url.UserPassword("", s.opts.password)
	}
	return u.String()
}

// Dir is the folder of the server's files.
func (s *Server) Dir() string { return s.dir }

// Pid is the process id of the running server, or of the last one that ran.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Pid
}

// Log is the end of what the server wrote, for a failure message.
func (s *Server) Log() string { return s.log.String() }

// Client connects to the server and closes with the test. It never retries a
// command, so a test sees every failure.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	c := redis.NewClient(clientOptions(s.Addr(), s.opts.password))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Kill ends the server at once, as kill -9 does, and returns when it is gone.
// Without [Persistent], what it held is lost.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.stop()
}

// Restart kills the server if it runs and starts it on the same port with the
// same settings and folder.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.stop()
	deadline := time.Now().Add(startTimeout)
	for {
		err := s.start()
		if err == nil {
			return
		}
		if !errors.Is(err, errPortTaken) || time.Now().After(deadline) {
			t.Fatalf("redistest: restart: %v", err)
		}
	}
}

// Pause stops the process as SIGSTOP does: connections stay open and nothing is
// answered until [Server.Resume].
func (s *Server) Pause(t testing.TB) { s.signal(t, syscall.SIGSTOP) }

// Resume lets a paused server go on.
func (s *Server) Resume(t testing.TB) { s.signal(t, syscall.SIGCONT) }

func (s *Server) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("redistest: %v to redis-server: %v", sig, err)
	}
}

// start runs the process and waits until it answers.
func (s *Server) start() error {
	bin, err := binary()
	if err != nil {
		return err
	}
	cmd := exec.Command(bin, "-")
	cmd.Stdin = strings.NewReader(s.opts.config(s.port, s.dir))
	cmd.Stdout, cmd.Stderr = s.log, s.log
	s.log.reset()
	if s.opts.clocked {
		if err := s.clocked(cmd); err != nil {
			return err
		}
	}
	if err := launch(cmd); err != nil {
		return fmt.Errorf("start %s: %w", bin, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	s.mu.Lock()
	s.cmd, s.exited = cmd, exited
	s.mu.Unlock()
	if err := s.awaitReady(exited, cmd.Process.Pid); err != nil {
		s.stop()
		return err
	}
	return nil
}

// awaitReady polls until the process answers, and answers as itself: another
// process may have taken the port meanwhile.
func (s *Server) awaitReady(exited <-chan struct{}, pid int) error {
	c := redis.NewClient(clientOptions(s.Addr(), s.opts.password))
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	own := fmt.Sprintf("process_id:%d\r\n", pid)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := info(ctx, c)
		if err == nil && strings.Contains(info, own) && strings.Contains(info, "\r\nloading:0") {
			return nil
		}
		select {
		case <-tick.C:
		case <-exited:
			if strings.Contains(s.Log(), "Address already in use") {
				return errPortTaken
			}
			return fmt.Errorf("redis-server ended at its start:\n%s", s.Log())
		case <-ctx.Done():
			return fmt.Errorf("redis-server did not answer in %v (last: %v):\n%s", startTimeout, err, s.Log())
		}
	}
}

// info asks a server that listens; a plain dial first keeps the client from
// logging each refused connection of a start.
func info(ctx context.Context, c *redis.Client) (string, error) {
	conn, err := net.Dial("tcp", c.Options().Addr)
	if err != nil {
		return "", err
	}
	_ = conn.Close()
	return c.Info(ctx, "server", "persistence").Result()
}

// stop kills the process and waits until it is gone.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// alive reports whether the process still runs.
func (s *Server) alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.exited:
		return false
	default:
		return true
	}
}

func binary() (string, error) {
	name := os.Getenv(BinaryVariable)
	if name == "" {
		name = "redis-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w (%v)", errNoBinary, err)
	}
	return path, nil
}
