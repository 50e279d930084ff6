package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/internal/redistest"
)

// asRuntime makes the test binary be the command itself, so that a test sees what a real process writes and how it ends.
const asRuntime = "PARLEY_TEST_AS_RUNTIME"

func TestMain(m *testing.M) {
	if os.Getenv(asRuntime) != "" {
		main()
		return
	}
	redistest.Main(m)
}

// command is the binary as a process of its own.
func command(t *testing.T, args ...string) (*exec.Cmd, *safeBuffer, *safeBuffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asRuntime+"=1")
	out, errs := &safeBuffer{}, &safeBuffer{}
	cmd.Stdout, cmd.Stderr = out, errs
	return cmd, out, errs
}

// compilePatience is how long a process may take until it is ready: under the race detector, and beside other tests,
// compiling a plugin takes its time.
const compilePatience = 5 * time.Minute

// awaitReady waits for the line that serve prints.
func awaitReady(t *testing.T, out, errs *safeBuffer) {
	t.Helper()
	late := time.After(compilePatience)
	for {
		said, failed := out.next(), errs.next()
		if out.String() == "ready\n" {
			return
		}
		if strings.Contains(errs.String(), "runtime serve: ") {
			t.Fatal(errs.String())
		}
		select {
		case <-said:
		case <-failed:
		case <-late:
			t.Fatalf("serve was not ready after %v: %s", compilePatience, errs.String())
		}
	}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

// TestProcessWritesOneLine looks at a real stderr: libraries write to it behind a command's back.
func TestProcessWritesOneLine(t *testing.T) {
	server := redistest.Start(t, redistest.Password("s3cret-word"))
	wrong := "redis://:wr0ng-word@" + server.Addr()
	right := server.URL()
	cmd, out, errs := command(t, "queue", "list", "--redis", wrong)
	code := exitCode(t, cmd.Run())
	checkRefusal(t, result{code, out.String(), errs.String()}, 5, []string{"queue", "list"}, "credentials")
	wantSilence(t, result{0, out.String(), errs.String()}, "wr0ng-word")
	server.Kill(t)
	for _, args := range [][]string{{"queue", "list"}, {"doctor"}, {"send", "q", "--body", "x"}} {
		cmd, out, errs := command(t, append(args, "--redis", right)...)
		code := exitCode(t, cmd.Run())
		r := result{code, out.String(), errs.String()}
		checkRefusal(t, r, 5, args, "BrokerUnreachable")
		wantSilence(t, r, "s3cret-word")
	}
}

// TestServeEndsOnSignals sends a real SIGTERM and a real interrupt.
func TestServeEndsOnSignals(t *testing.T) {
	s := newShell(t)
	file := writeFile(t, "f.yaml", "queues: [{name: q}]\n")
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		cmd, out, errs := command(t, "serve", "-f", file, "--redis", s.redis, "--namespace", s.ns)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		awaitReady(t, out, errs)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(t, <-ended); code != 0 || out.String() != "ready\n" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", sig, code, out.String(), errs.String())
		}
	}
}

// TestClosedOutput ends a command whose reader has gone: the message it could not show stays on the queue.
func TestClosedOutput(t *testing.T) {
	s := newShell(t)
	s.apply(plainQueues)
	s.must("send", "hooks", "--body", "x")
	var errs bytes.Buffer
	args := []string{"receive", "hooks", "--redis", s.redis, "--namespace", s.ns, "-o", "json"}
	if code := run(t.Context(), args, brokenWriter{}, &errs, strings.NewReader("")); code != 1 {
		t.Errorf("exit %d, want 1 (%s)", code, errs.String())
	}
	s.wantCount("hooks", "ready", 1)
	if got := s.must("receive", "hooks").object(t); got["delivery_count"] != 0.0 {
		t.Errorf("an attempt that nobody saw is counted: %v", got)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }
