package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const startLimit = 10 * time.Second

// flushLimit is how long it may take to forget a million conversations.
const flushLimit = time.Minute

// Server is a private redis-server without persistence, on a free port of the
// loopback interface, with its working folder in a temporary place.
type Server struct {
	// Addr is host:port.
	Addr string
	// Version is what the server says of itself.
	Version string

	process *exec.Cmd
	exited  chan struct{}
	folder  string
	client  *redis.Client
}

// StartServer starts binary (a path, or a name on PATH) and waits until it answers.
func StartServer(ctx context.Context, binary string) (*Server, error) {
	folder, err := os.MkdirTemp("", "parley-bench-")
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Addr: fmt.Sprintf("127.0.0.1:%d", port), folder: folder, exited: make(chan struct{})}
	s.process = exec.Command(binary, "--port", fmt.Sprint(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", folder, "--logfile", "redis.log")
	if err := s.process.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start redis-server: %w", err), os.RemoveAll(folder))
	}
	go func() {
		_ = s.process.Wait()
		close(s.exited)
	}()
	s.client = redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ReadTimeout: flushLimit})
	if err := s.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func (s *Server) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err := Until(ctx, 10*time.Millisecond, func() error {
		select {
		case <-s.exited:
			return fmt.Errorf("redis-server ended at once: %s", s.process.ProcessState)
		default:
			return s.client.Ping(ctx).Err()
		}
	})
	if err != nil {
		return fmt.Errorf("redis-server at %s: %w", s.Addr, err)
	}
	info, err := s.client.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	s.Version, err = infoField(info, "redis_version")
	return err
}

// Flush removes all keys.
func (s *Server) Flush(ctx context.Context) error {
	return s.client.FlushAll(ctx).Err()
}

// CPU returns user plus system time the server has used since it started.
func (s *Server) CPU(ctx context.Context) (time.Duration, error) {
	info, err := s.client.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	return parseCPU(info)
}

// UsedMemory returns the bytes the server has allocated for data and buffers.
func (s *Server) UsedMemory(ctx context.Context) (int64, error) {
	info, err := s.client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	return parseUsedMemory(info)
}

// Stop ends the server and removes its folder.
func (s *Server) Stop() error {
	_ = s.client.Close()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.exited:
	case <-time.After(startLimit):
		_ = s.process.Process.Kill()
		<-s.exited
	}
	return os.RemoveAll(s.folder)
}
