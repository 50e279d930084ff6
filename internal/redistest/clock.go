package redistest

import (
	"bytes"
	_ "embed"
	native "encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// clockSource is a library that moves the time of day of the process it is preloaded into.
//
//go:embed testdata/clock.c
var clockSource []byte

// clockFile, in the folder of a server, holds how far its clock is moved: nanoseconds, 8 bytes.
const clockFile = "clock"

// Clocked gives the server a clock of its own, which [Server.SetClock] moves. It needs a C compiler.
func Clocked() Option { return func(o *options) { o.clocked = true } }

// SetClock sets the clock of a [Clocked] server ahead of the machine's by d, or back when d is below 0, from now on.
func (s *Server) SetClock(t testing.TB, d time.Duration) {
	t.Helper()
	if !s.opts.clocked {
		t.Fatal("redistest: SetClock: the server was not started with Clocked")
	}
	if err := s.setClock(d); err != nil {
		t.Fatalf("redistest: set the clock: %v", err)
	}
}

// setClock writes the 8 bytes in place, in one step: the server has them mapped.
func (s *Server) setClock(d time.Duration) error {
	f, err := os.OpenFile(filepath.Join(s.dir, clockFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(native.NativeEndian.AppendUint64(nil, uint64(d.Nanoseconds())), 0)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// clocked has cmd run with the library, compiled in the server's folder. A clock that was set stays so over a restart.
func (s *Server) clocked(cmd *exec.Cmd) error {
	file, lib := filepath.Join(s.dir, clockFile), filepath.Join(s.dir, "clock.so")
	if _, err := os.Stat(lib); os.IsNotExist(err) {
		if err := compileClock(lib); err != nil {
			return err
		}
		if err := s.setClock(0); err != nil {
			return err
		}
	}
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+lib, "PARLEY_TEST_CLOCK="+file)
	return nil
}

func compileClock(lib string) error {
	cc := exec.Command("cc", "-shared", "-fPIC", "-O1", "-x", "c", "-o", lib, "-")
	cc.Stdin = bytes.NewReader(clockSource)
	if out, err := cc.CombinedOutput(); err != nil {
		return fmt.Errorf("compile a clock for redis-server: install a C compiler (Debian: apt-get install gcc libc6-dev, or make tools): %w\n%s", err, out)
	}
	return nil
}
