// Package pluginbuild compiles plugin folders for commands: what package build refuses is the user's to mend, so it is a
// broker.ErrInvalid here.
package pluginbuild

import (
	"context"

	"parley/broker"
	"parley/sdk/build"
)

// Build compiles the Go package in dir and writes the module to out, at once when it is complete. Errors are ErrInvalid,
// on one line, or those of ctx.
func Build(ctx context.Context, dir, out string) error {
	return invalid(ctx, build.Build(ctx, dir, out))
}

// Compile is Build with the module as its result.
func Compile(ctx context.Context, dir string) ([]byte, error) {
	code, err := build.Compile(ctx, dir)
	return code, invalid(ctx, err)
}

func invalid(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return broker.ErrInvalid.With("%v", err)
}
