package redistest

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		childMain()
	}
	Main(m)
}

func TestSharedIsOneServer(t *testing.T) {
	a, b := Shared(t), Shared(t)
	if a.Pid() != b.Pid() {
		t.Errorf("shared server changed: got pids %d and %d, want one", a.Pid(), b.Pid())
	}
	if entries, err := os.ReadDir(a.dir); !os.IsNotExist(err) {
		t.Errorf("shared server's folder is left on disk: %v, %v", entries, err)
	}
}

func TestKillAndRestart(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts []Option
		want string
	}{
		{"without persistence nothing survives kill -9", nil, ""},
		{"with persistence every answered write survives kill -9", []Option{Persistent()}, "v"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := Start(t, tc.opts...)
			c := s.Client(t)
			if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			pid, addr := s.Pid(), s.Addr()
			s.Kill(t)
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d after Kill: got %v, want ESRCH", pid, err)
			}
			s.Restart(t)
			if s.Addr() != addr || s.Pid() == pid {
				t.Errorf("restart: got %s pid %d, want %s and another pid than %d", s.Addr(), s.Pid(), addr, pid)
			}
			got, err := c.Get(t.Context(), "k").Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("k after restart: got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOptionsReachTheServer(t *testing.T) {
	t.Parallel()
	s := Start(t, MaxMemory("8mb"), Password(`p "w`), Config("maxmemory-policy allkeys-lru"))
	opts, err := redis.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	fromURL := redis.NewClient(opts)
	defer func() { _ = fromURL.Close() }()
	got, err := fromURL.ConfigGet(t.Context(), "maxmemory*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if got["maxmemory"] != "8388608" || got["maxmemory-policy"] != "allkeys-lru" {
		t.Errorf("settings: got %v, want 8 MiB and allkeys-lru", got)
	}
	stranger := redis.NewClient(clientOptions(s.Addr(), ""))
	defer func() { _ = stranger.Close() }()
	if err := stranger.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("ping without the password: got %v, want NOAUTH", err)
	}
}

func TestPauseAnswersNothingUntilResume(t *testing.T) {
	t.Parallel()
	s := Start(t)
	c := s.Client(t)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Pause(t)
	done := make(chan error, 1)
	go func() { done <- c.Ping(t.Context()).Err() }()
	select {
	case err := <-done:
		t.Errorf("ping of a paused server: got %v, want no answer", err)
	case <-time.After(100 * time.Millisecond):
	}
	s.Resume(t)
	if err := <-done; err != nil {
		t.Errorf("ping after resume: %v", err)
	}
}

func TestBadSettingNamesItself(t *testing.T) {
	t.Parallel()
	_, err := newServer(t.TempDir(), []Option{Config("no-such-setting 1")})
	if err == nil || !strings.Contains(err.Error(), "no-such-setting") {
		t.Errorf("got %v, want redis-server's own words about no-such-setting", err)
	}
}

func TestMissingServerNamesTheRemedy(t *testing.T) {
	t.Setenv(BinaryVariable, "no-such-redis-server")
	_, err := newServer(t.TempDir(), nil)
	if !errors.Is(err, errNoBinary) || !strings.Contains(err.Error(), "apt-get install redis-server") {
		t.Errorf("got %v, want the remedy", err)
	}
}

// childVariable makes this test binary start a server and wait: the child of
// TestServerDiesWithItsTestProcess.
const childVariable = "REDISTEST_CHILD"

func childMain() {
	s, err := startShared()
	if err != nil {
		_, _ = os.Stdout.WriteString(err.Error())
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString(strconv.Itoa(s.Pid()))
	_ = os.Stdout.Close()
	select {}
}

func TestServerDiesWithItsTestProcess(t *testing.T) {
	t.Parallel()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1")
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 200)
	n, _ := out.Read(text)
	pid, err := strconv.Atoi(string(text[:n]))
	if err != nil {
		t.Fatalf("child says %q, want a pid", text[:n])
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("server %d of the child: %v", pid, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	Eventually(t, "the server to die with its test process", func() bool {
		return !running(pid)
	})
}

// running tells a live process from a zombie that init has not collected yet.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func TestLose(t *testing.T) {
	s := Start(t, Persistent())
	c := s.Client(t)
	set := func(v string) {
		t.Helper()
		Eventually(t, "a write", func() bool { return c.Set(t.Context(), "k", v, 0).Err() == nil })
	}
	set("kept")
	written := s.Written(t)
	set("lost")
	s.Lose(t, written)
	var got string
	Eventually(t, "an answer", func() (ok bool) {
		var err error
		got, err = c.Get(t.Context(), "k").Result()
		return err == nil
	})
	if got != "kept" {
		t.Errorf("after the last write was lost: got %q, want %q", got, "kept")
	}
}
