package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"parley/broker"
	"parley/cmd/runtime/config"
)

func (a *app) applyCommand() *cobra.Command {
	var file string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "apply -f FILE [--dry-run]",
		Short: "Create and alter entities as a file says; nothing is deleted",
		Args:  exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, opt, err := a.load(file)
			if err != nil {
				return err
			}
			opt.log = a.warn
			c, err := a.connect(cmd.Context(), opt)
			if err != nil {
				return err
			}
			defer c.close()
			changes, err := apply(cmd.Context(), c, f, dryRun)
			if err != nil {
				return err
			}
			p := a.rows(cmd, "ACTION", "KIND", "NAME", "DETAIL")
			for _, ch := range changes {
				p.row(changeJSON(ch), ch.Action, ch.Kind, ch.Name, ch.Detail)
			}
			return p.end("the file defines no entities")
		},
	}
	fileFlag(cmd, &file)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the plan and change nothing")
	return cmd
}

func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "file", "f", "", "configuration file (YAML)")
}

// load reads a configuration file and says which broker it is for.
func (a *app) load(file string) (*config.File, connectOptions, error) {
	if file == "" {
		return nil, connectOptions{}, usage("-f FILE is missing: the configuration file (YAML)")
	}
	f, err := config.Load(file)
	if err != nil {
		return nil, connectOptions{}, err
	}
	a.secret(f.Host.Redis)
	opt, err := a.connectOptions(f.Host.Redis, f.Namespace)
	return f, opt, err
}

// apply hands the file's entities to the broker.
func apply(ctx context.Context, c *client, f *config.File, dryRun bool) ([]broker.Change, error) {
	var failed error
	defs, err := f.Definitions(func(queue string) bool {
		info, err := c.admin.Queue(ctx, queue)
		if err != nil && !errors.Is(err, broker.ErrUnknownEntity) {
			failed = errors.Join(failed, err)
		}
		return len(info.Services) > 0
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	return c.admin.Apply(ctx, defs, dryRun)
}
