package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"parley/broker"
	"parley/cmd/runtime/config"
	"parley/cmd/runtime/pluginbuild"
	"parley/host/guest"
)

func (a *app) pluginCommand() *cobra.Command {
	return group("plugin", "Build and look at plugins", a.pluginBuildCommand(), a.pluginInspectCommand())
}

func (a *app) pluginBuildCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "build DIR --out FILE.wasm",
		Short: "Compile a Go plugin folder with the stock Go toolchain",
		Args:  exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return usage("--out FILE.wasm is missing")
			}
			if err := pluginbuild.Build(cmd.Context(), args[0], out); err != nil {
				return err
			}
			code, err := os.ReadFile(out)
			if err != nil {
				return err
			}
			info, err := guest.Inspect(code, guest.Limits{})
			if err != nil {
				return fmt.Errorf("%s was written, but it is no plugin: %w", out, err)
			}
			return a.object(cmd, builtJSON{out, info.Digest, info.Size}, "module", out, "sha256", info.Digest, "bytes", info.Size)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "the module to write")
	return cmd
}

func (a *app) pluginInspectCommand() *cobra.Command {
	var memory, limit string
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what a module imports and exports, and whether it can run",
		Long: `Show what a module imports and exports, the limits that would apply, and whether it can run under them: exit 2 and the reason
if not.`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			limits, err := inspectLimits(memory, limit)
			if err != nil {
				return err
			}
			code, err := os.ReadFile(args[0])
			if err != nil {
				return usage("the module cannot be read: %v", err)
			}
			info, refused := guest.Inspect(code, limits)
			if refused != nil {
				return nameFile(args[0], refused)
			}
			return a.inspected(cmd, info)
		},
	}
	cmd.Flags().StringVar(&memory, "memory", "", "memory limit to check against, such as 64MiB")
	cmd.Flags().StringVar(&limit, "time", "", "time limit to show, such as 5s")
	return cmd
}

func inspectLimits(memory, limit string) (guest.Limits, error) {
	var l guest.Limits
	if memory != "" {
		size, err := config.ParseSize(memory)
		if err != nil {
			return l, usage("--memory %v", err)
		}
		l.Memory = int64(size)
	}
	if limit != "" {
		d, err := config.ParseDuration(limit)
		if err != nil {
			return l, usage("--time %v", err)
		}
		l.Time = d
	}
	return l, nil
}

// nameFile puts the name of a module in front of why it is refused.
func nameFile(file string, err error) error {
	var e *broker.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s: %w", file, err)
	}
	c := *e
	c.Text = file + ": " + e.Text
	return &c
}

func (a *app) inspected(cmd *cobra.Command, info guest.Info) error {
	kind := "handler (exports parley_handle)"
	if info.Command {
		kind = "WASI command (body on stdin, reply on stdout)"
	}
	j := newInspectJSON(&info)
	pairs := []any{
		"sha256", info.Digest, "bytes", info.Size, "kind", kind,
		"memory", fmt.Sprintf("%s at the start, at most %s", kib(j.Memory.MinBytes), kib(j.Memory.MaxBytes)),
		"limit memory", kib(info.Limits.Memory), "limit time", info.Limits.Time, "limit fuel", fuelText(info.Limits.Fuel),
		"limit output", kib(int64(info.Limits.Output)), "limit effects", info.Limits.Effects,
		"limit effect bytes", kib(int64(info.Limits.EffectBytes)), "limit host calls", info.Limits.HostCalls,
	}
	for _, c := range info.Needs {
		pairs = append(pairs, "needs capability", string(c))
	}
	for _, f := range j.Imports {
		pairs = append(pairs, "imports", f.Module+"."+f.Name+" "+f.Kind)
	}
	for _, f := range j.Exports {
		pairs = append(pairs, "exports", f.Name+" "+f.Kind)
	}
	return a.object(cmd, j, pairs...)
}

func kib(n int64) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

func fuelText(n uint64) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// guestOptions turns one plugin of the file into what Load takes; what is not stated stays zero, the default there.
func guestOptions(p *config.Plugin) guest.Options {
	o := guest.Options{Name: p.Name, Config: p.Config, Instances: guest.Instances(p.Instances)}
	for _, c := range p.Capabilities {
		o.Capabilities = append(o.Capabilities, guest.Capability(c))
	}
	if p.MaxInvocations != nil {
		o.MaxInvocations = *p.MaxInvocations
	}
	l := p.Limits
	o.Limits = guest.Limits{
		Memory: int64(stated(l.Memory)), Time: time.Duration(stated(l.Time)), Fuel: uint64(stated(l.Fuel)),
		Output: int(stated(l.Output)), Reply: int(stated(l.Reply)), Effects: stated(l.Effects),
		EffectBytes: int(stated(l.EffectBytes)), HostCalls: stated(l.HostCalls),
	}
	return o
}

// stated is *v, or zero for a key that is not stated.
func stated[T any](v *T) T {
	if v == nil {
		var zero T
		return zero
	}
	return *v
}
