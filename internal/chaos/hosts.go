package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// readyPatience is how long a host may take until it says that it is ready.
const readyPatience = 60 * time.Second

// hostProcess is one host: the released command as a process.
type hostProcess struct {
	binary string
	args   []string
	cmd    *exec.Cmd
	log    *lastLines
}

func (h *hostProcess) start(ctx context.Context) error {
	h.cmd = exec.Command(h.binary, h.args...)
	h.log = &lastLines{}
	h.cmd.Stderr = h.log
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := h.cmd.Start(); err != nil {
		return err
	}
	ready := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err == nil && line != "ready\n" {
			err = fmt.Errorf("a host said %q", line)
		}
		ready <- err
		_, _ = io.Copy(io.Discard, out)
	}()
	select {
	case err = <-ready:
	case <-time.After(readyPatience):
		err = fmt.Errorf("no host was ready after %v", readyPatience)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		h.kill()
		return fmt.Errorf("start a host: %w\n%s", err, h.log)
	}
	return nil
}

func (h *hostProcess) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait() // it says that it was killed
}

// restart ends the host by sig and starts it anew. One that was asked to stop must end well.
func (h *hostProcess) restart(ctx context.Context, sig syscall.Signal) error {
	if err := h.cmd.Process.Signal(sig); err != nil {
		return err
	}
	err := h.cmd.Wait()
	var exit *exec.ExitError
	if sig == syscall.SIGTERM && errors.As(err, &exit) {
		return fmt.Errorf("a host that was asked to stop ended with %v: %s", err, h.log)
	}
	return h.start(ctx)
}

// lastLines keeps the end of what a host wrote.
type lastLines struct {
	mu  sync.Mutex // guards buf
	buf []byte
}

const keptLog = 4096

func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	if extra := len(l.buf) - keptLog; extra > 0 {
		l.buf = append(l.buf[:0], l.buf[extra:]...)
	}
	return len(p), nil
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(bytes.TrimSpace(l.buf))
}
