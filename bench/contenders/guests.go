package contenders

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"parley/host/guest"
)

// Plugins of this module, by the names of their folders.
const (
	guestNoop    = "noop"
	guestForward = "forward"
)

// Guests compiles the plugins once for all workloads. Its zero value is ready; it
// is not for concurrent use.
type Guests struct {
	folder string
	built  map[string][]byte
}

// Close removes what was compiled.
func (g *Guests) Close() error {
	if g.folder == "" {
		return nil
	}
	return os.RemoveAll(g.folder)
}

// load builds the plugin, unless it was built, and loads it with the limits every plugin has.
func (g *Guests) load(ctx context.Context, name string) (*guest.Plugin, error) {
	if g.folder == "" {
		folder, err := os.MkdirTemp("", "parley-guests-")
		if err != nil {
			return nil, err
		}
		g.folder, g.built = folder, map[string][]byte{}
	}
	if g.built[name] == nil {
		wasm, err := g.build(ctx, name)
		if err != nil {
			return nil, err
		}
		g.built[name] = wasm
	}
	return guest.Load(ctx, g.built[name], guest.Options{Name: name, CacheDir: filepath.Join(g.folder, "cache")})
}

// build needs the working folder to be inside this module.
func (g *Guests) build(ctx context.Context, name string) ([]byte, error) {
	out := filepath.Join(g.folder, name+".wasm")
	build := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-o", out, "parley/bench/guests/"+name)
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build plugin %s: %w: %s", name, err, text)
	}
	return os.ReadFile(out)
}

// openWith connects to the server at addr and loads the plugin called name, for a host that runs it.
func openWith(ctx context.Context, addr string, guests *Guests, name string) (*parley, *guest.Plugin, error) {
	runner, err := guests.load(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	p, err := openParley(ctx, addr)
	if err != nil {
		return nil, nil, errors.Join(err, runner.Close(ctx))
	}
	return p, runner, nil
}
