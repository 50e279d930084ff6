package main

import (
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// globals are the flags that every command has.
type globals struct {
	redis         string
	namespace     string
	output        string
	allowEviction bool
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "runtime",
		Short: "Run event-driven workers written as WebAssembly plugins, on queues in Redis",
		Long: `Run event-driven workers written as WebAssembly plugins, on queues in Redis.

Every flag has an environment twin: --redis is PARLEY_REDIS, --body-file is PARLEY_BODY_FILE. A flag wins over the
environment, the environment over the file, the file over the default.

Exit codes: 0 done; 1 failed, or refused by a limit; 2 a value in a flag, a file or a module is refused; 3 the state of an
entity forbids it; 4 an entity, handle or sequence number is unknown; 5 the broker is unreachable.`,
		Version:           version(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.prepare(cmd) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%v (see --help)", err) })
	f := root.PersistentFlags()
	f.StringVar(&a.global.redis, "redis", "", "Redis to use, redis://[user][:password]@host:port/db; a password is better kept in PARLEY_REDIS (default "+defaultRedis+")")
	f.StringVar(&a.global.namespace, "namespace", "", "namespace of all names (default "+defaultNamespace+")")
	f.StringVarP(&a.global.output, "output", "o", "table", "output format: table or json")
	f.BoolVar(&a.global.allowEviction, "allow-eviction", false, "accept a Redis that may evict keys, and so lose messages")
	root.AddCommand(
		a.demoCommand(), a.serveCommand(), a.applyCommand(), a.doctorCommand(),
		a.sendCommand(), a.receiveCommand(), a.peekCommand(), a.settleCommand(),
		a.queueCommand(), a.dialogCommand(), a.deadletterCommand(),
		a.eventsCommand(), a.monitorCommand(), a.auditCommand(), a.pluginCommand(),
	)
	return root
}

// group makes a command that only holds others: alone, or with a word that is none of them, it is a usage error.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		var names []string
		for _, s := range subs {
			names = append(names, s.Name())
		}
		if len(args) > 0 {
			return usage("there is no command %q: use one of %s", args[0], strings.Join(names, ", "))
		}
		return usage("name a command: %s", strings.Join(names, ", "))
	}
	cmd.AddCommand(subs...)
	return cmd
}

// exactly refuses any other number of arguments than those named, in words.
func exactly(names ...string) cobra.PositionalArgs { return between(len(names), names...) }

// between accepts the first least of the named arguments up to all of them.
func between(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage("%s is missing: %s", names[len(args)], cmd.UseLine())
		case len(args) > len(names):
			return usage("%q is one argument too many: %s", args[len(names)], cmd.UseLine())
		}
		return nil
	}
}

// positive refuses a flag's number below 1.
func positive(flag string, n int) error {
	if n < 1 {
		return usage("%s wants a number from 1 on, has %d", flag, n)
	}
	return nil
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
