package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"parley/sdk/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(errs)
	length := flags.Duration("for", 40*time.Second, "how long each scenario has load and faults")
	only := flags.String("only", "", "run the scenarios whose names hold one of these, separated by commas")
	list := flags.Bool("list", false, "print the names of the scenarios")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	var chosen []scenario
	for _, s := range scenarios() {
		if wanted(s.name, *only) {
			chosen = append(chosen, s)
		}
	}
	if *list {
		for _, s := range chosen {
			_, _ = fmt.Fprintln(out, s.name)
		}
		return 0
	}
	if len(chosen) == 0 {
		_, _ = fmt.Fprintf(errs, "chaos: no scenario's name holds %q; -list prints them\n", *only)
		return 2
	}
	dir, err := os.MkdirTemp("", "parley-chaos-")
	if err != nil {
		_, _ = fmt.Fprintln(errs, "chaos:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	with, err := prepare(ctx, dir)
	if err != nil {
		_, _ = fmt.Fprintln(errs, "chaos:", err)
		return 1
	}
	return table(ctx, chosen, with, *length, out)
}

// wanted says whether a name holds one of some parts, separated by commas; nothing is held by every name.
func wanted(name, parts string) bool {
	for p := range strings.SplitSeq(parts, ",") {
		if strings.Contains(name, strings.TrimSpace(p)) {
			return true
		}
	}
	return false
}

// prepare builds the command and the plugin. The working folder is one of the module's.
func prepare(ctx context.Context, dir string) (tools, error) {
	with := tools{command: filepath.Join(dir, "runtime"), plugin: filepath.Join(dir, "ledger.wasm"), cache: filepath.Join(dir, "cache")}
	if err := os.Mkdir(with.cache, 0o700); err != nil {
		return with, err
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return with, fmt.Errorf("find the module: %w", err)
	}
	at := strings.TrimSpace(string(root))
	compile := exec.CommandContext(ctx, "go", "build", "-o", with.command, "./cmd/runtime")
	compile.Dir = at
	if text, err := compile.CombinedOutput(); err != nil {
		return with, fmt.Errorf("build the command: %w\n%s", err, text)
	}
	return with, build.Build(ctx, filepath.Join(at, "internal", "chaos", "testdata", "ledger"), with.plugin)
}

// table runs scenarios one after the other and prints a row of each as soon as it is known.
func table(ctx context.Context, list []scenario, with tools, length time.Duration, out io.Writer) int {
	code := 0
	head := true
	for i := range list {
		v := play(ctx, &list[i], with, length)
		if v.failed() {
			code = 1
		}
		printRow(out, v, head)
		head = false
		if ctx.Err() != nil {
			return 1
		}
	}
	return code
}

const rowForm = "| %-54s | %8s | %6s | %10s | %5s | %7s | %12s | %8s | %7s | %12s | %12s |\n"

func printRow(out io.Writer, v *verdict, head bool) {
	if head {
		_, _ = fmt.Fprintf(out, rowForm, "scenario", "messages", "faults", "Redis lost", "lost", "doubled", "out of order", "stranded", "late", "slowest", "slowest send")
		_, _ = fmt.Fprintf(out, rowForm, "---", "---", "---", "---", "---", "---", "---", "---", "---", "---", "---")
	}
	short := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	_, _ = fmt.Fprintf(out, rowForm, v.name, fmt.Sprint(v.sent), fmt.Sprint(v.faults), fmt.Sprint(v.redisLost), fmt.Sprint(v.lost), fmt.Sprint(v.doubled),
		fmt.Sprint(v.order), fmt.Sprint(v.stranded), short(v.late), short(v.slowest), short(v.slowSend))
	for _, n := range v.notes {
		_, _ = fmt.Fprintf(out, "  FAILED: %s\n", n)
	}
}

// play runs one scenario.
func play(ctx context.Context, s *scenario, with tools, length time.Duration) (v *verdict) {
	v = &verdict{name: s.name}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &tb{ctx: ctx, name: s.name}
	defer t.end()
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			v.note("%s", f.text)
		default:
			panic(f)
		}
	}()
	w, err := newWorld(t, s, with)
	if err != nil {
		v.note("set-up: %v", err)
		return v
	}
	l := &load{b: w.b, shape: s.shape}
	if s.shape == (shape{}) {
		l.shape = normal
	}
	sent := make(chan error, 1)
	go func() { sent <- l.run(ctx) }()
	w.harm(s, v, length)
	l.stop()
	if err := <-sent; err != nil {
		v.note("a producer gave up: %v", err)
	}
	w.drain(v)
	if err := w.judge(ctx, l, v); err != nil {
		v.note("the outcome cannot be read: %v", err)
	}
	if v.failed() {
		for i, h := range w.hosts {
			v.note("host %d said last: %s", i, h.log)
		}
		v.note("sends were refused with %v", l.refused)
	}
	return v
}

// harm makes faults until length is over.
func (w *world) harm(s *scenario, v *verdict, length time.Duration) {
	end := time.Now().Add(length)
	for i := 0; w.t.ctx.Err() == nil; i++ {
		w.rest(min(s.every, time.Until(end)))
		if time.Now().After(end) {
			return
		}
		err := s.fault(w, i)
		switch {
		case errors.Is(err, errNoFault):
			v.faults--
		case err != nil:
			v.note("fault %d: %v", i+1, err)
			return
		}
		v.faults++
	}
}
