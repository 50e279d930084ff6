package main

import (
	"github.com/spf13/cobra"

	"parley/cmd/runtime/demo"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Tell in half a minute what Parley does; needs the Go toolchain, no Redis",
		Long: `Tell in half a minute what Parley does, on an embedded broker that keeps nothing, with two example plugins built from
source. It needs the Go toolchain and no Redis. The exit code is 0 only if every number in it is right.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), cmd.OutOrStdout(), cacheFolder(""))
		},
	}
}
