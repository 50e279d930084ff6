package contenders

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"parley/bench/measure"
)

const (
	bullmqConcurrency = 64
	bullmqVersion     = "6.7.0"
	ioredisVersion    = "6.0.0"
	installLimit      = 2 * time.Minute
)

//go:embed bullmq.mjs
var bullmqScript []byte

// BullMQ installs the npm package once and opens a node process a measurement.
// Its zero value is ready; it is not for concurrent use.
type BullMQ struct {
	folder string
	failed error
}

// Close removes what was installed.
func (b *BullMQ) Close() error {
	if b.folder == "" {
		return nil
	}
	return os.RemoveAll(b.folder)
}

func (b *BullMQ) open(ctx context.Context, addr string) (measure.Side, error) {
	if b.folder == "" && b.failed == nil {
		b.failed = b.install(ctx)
	}
	if b.failed != nil {
		return nil, b.failed
	}
	return &bullmqDrain{folder: b.folder, addr: addr}, nil
}

// install wraps measure.ErrNotRun in whatever keeps BullMQ away: it is optional.
func (b *BullMQ) install(ctx context.Context) error {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("%w: %s is not installed", measure.ErrNotRun, tool)
		}
	}
	folder, err := os.MkdirTemp("", "parley-bullmq-")
	if err != nil {
		return err
	}
	b.folder = folder
	if err := os.WriteFile(filepath.Join(folder, "drain.mjs"), bullmqScript, 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	npm := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
		"bullmq@"+bullmqVersion, "ioredis@"+ioredisVersion)
	npm.Dir = folder
	if err := npm.Run(); err != nil {
		return fmt.Errorf("%w: npm install bullmq@%s: %v", measure.ErrNotRun, bullmqVersion, err)
	}
	return nil
}

// bullmqDrain talks to one node process line by line.
type bullmqDrain struct {
	folder, addr string
	process      *exec.Cmd
	input        io.WriteCloser
	lines        chan string
	errors       bytes.Buffer
}

func (b *bullmqDrain) Prepare(ctx context.Context, n int) error {
	host, port, err := net.SplitHostPort(b.addr)
	if err != nil {
		return err
	}
	b.process = exec.Command("node", "drain.mjs", host, port, strconv.Itoa(n), strconv.Itoa(bullmqConcurrency), measure.Body())
	b.process.Dir = b.folder
	b.process.Stderr = &b.errors
	if b.input, err = b.process.StdinPipe(); err != nil {
		return err
	}
	output, err := b.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := b.process.Start(); err != nil {
		b.process = nil
		return err
	}
	b.lines = make(chan string, 8)
	go readLines(output, b.lines)
	return b.expect(ctx, "ready")
}

func readLines(output io.Reader, lines chan<- string) {
	defer close(lines)
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		lines <- scanner.Text()
	}
}

func (b *bullmqDrain) expect(ctx context.Context, want string) error {
	select {
	case line, open := <-b.lines:
		if !open {
			_ = b.process.Wait()
			return fmt.Errorf("node ended before it said %q: %s", want, strings.TrimSpace(b.errors.String()))
		}
		if line != want {
			return fmt.Errorf("node said %q, want %q", line, want)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: node has not said %q", context.Cause(ctx), want)
	}
}

func (b *bullmqDrain) Run(ctx context.Context) error { return b.ask(ctx, "done") }

func (b *bullmqDrain) Verify(ctx context.Context) error { return b.ask(ctx, "verified") }

func (b *bullmqDrain) ask(ctx context.Context, want string) error {
	if _, err := io.WriteString(b.input, "go\n"); err != nil {
		return err
	}
	return b.expect(ctx, want)
}

// CPU implements measure.Burner for the node process.
func (b *bullmqDrain) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.process.Process.Pid))
	if err != nil {
		return 0, err
	}
	return parseStat(string(stat))
}

// parseStat adds fields 14 and 15, user and system time in ticks of 10 ms. The
// second field is the command in parentheses and may hold blanks.
func parseStat(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc stat line has too few fields: %q", stat)
	}
	var ticks int64
	for _, text := range fields[11:13] {
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc stat line: %w", err)
		}
		ticks += value
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

func (b *bullmqDrain) Close() error {
	if b.process == nil || b.process.ProcessState != nil {
		return nil
	}
	_ = b.process.Process.Kill()
	_ = b.process.Wait()
	return nil
}
