// Command bench measures Parley beside its peers and beside bare Redis commands,
// in one run on one machine against one private redis-server.
//
//	go run . [-rounds 5] [-o text|json] [-rows plain,send,...|all] [-messages N] [-redis-server PATH]
//
// It exits 0 when every measurement ran and lost nothing, whatever the ratios;
// with -check also only when every target that was run is met. It exits 1
// otherwise and 2 on wrong flags.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"parley/bench/contenders"
	"parley/bench/measure"
)

// errTargets is returned with -check when a row missed its target.
var errTargets = errors.New("a target is not met")

type options struct {
	rounds      int
	messages    int
	output      string
	redisServer string
	profiles    string
	limit       time.Duration
	check       bool
	rows        []row
}

func main() {
	options, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, options, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 5, "interleaved rounds")
	flags.IntVar(&o.messages, "messages", 100_000, "messages a measurement at full speed; slower contenders get a share")
	flags.StringVar(&o.output, "o", "text", "text or json")
	flags.StringVar(&o.redisServer, "redis-server", "redis-server", "the server's binary")
	flags.DurationVar(&o.limit, "limit", 5*time.Minute, "time limit of each step of a measurement")
	flags.StringVar(&o.profiles, "profiles", "", "folder for a CPU profile and command statistics of each workload's last round")
	flags.BoolVar(&o.check, "check", false, "exit 1 when a target is not met")
	rows := flags.String("rows", defaultRows, "rows to run, or all; backlog, idle and timers take minutes")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	switch {
	case flags.NArg() > 0:
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.rounds < 1 || o.messages < 1:
		return options{}, errors.New("-rounds and -messages must be at least 1")
	case o.output != "text" && o.output != "json":
		return options{}, fmt.Errorf("-o: %q is neither text nor json", o.output)
	}
	var err error
	o.rows, err = chooseRows(*rows)
	return o, err
}

func run(ctx context.Context, o options, out, progress io.Writer) (err error) {
	bullmq, guests := &contenders.BullMQ{}, &contenders.Guests{}
	server, err := measure.StartServer(ctx, o.redisServer)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(), bullmq.Close(), guests.Close()) }()

	works := append(contenders.Peers(o.messages, bullmq), contenders.Parley(o.messages, guests)...)
	names := needed(o.rows)
	works = slices.DeleteFunc(works, func(w measure.Workload) bool { return !names[w.Name] })
	for i := range works {
		works[i].Profile = o.profiles
	}
	results, missing, err := rounds{server, o.rounds, o.limit, progress}.run(ctx, works)
	if err != nil {
		return err
	}
	report := build(o, server.Version, works, results, missing)
	if err := write(out, o.output, report); err != nil {
		return err
	}
	if o.check && slices.ContainsFunc(report.Rows, func(c comparison) bool { return c.Ratios != nil && !c.Met }) {
		return errTargets
	}
	return nil
}

func build(o options, redis string, works []measure.Workload, results []measure.Result, missing map[string]string) report {
	r := report{
		Machine: machine{runtime.Version(), redis, runtime.GOMAXPROCS(0), o.rounds, o.messages},
		Conditions: append([]string{
			fmt.Sprintf("one private redis-server on the loopback interface, no persistence, emptied before each measurement; bodies of %d bytes", measure.BodySize),
			"every drain starts with all its messages waiting; filling is not timed; after each measurement the server is checked: a lost or doubled message fails the run",
			"Redis CPU is used_cpu_user + used_cpu_sys of the server, host CPU is getrusage of this process (BullMQ: of its node process), both over the timed part only",
		}, contenders.ParleyConditions...),
		Results: results,
	}
	for _, row := range o.rows {
		r.Rows = append(r.Rows, compare(row, results, missing))
	}
	for _, work := range works {
		r.Workloads = append(r.Workloads, summarize(work, results, missing))
	}
	return r
}

func write(out io.Writer, format string, r report) error {
	if format == "text" {
		return writeText(out, r)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
