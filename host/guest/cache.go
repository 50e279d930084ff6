package guest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// features is what package meter understands, no more.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst

// compile turns the rewritten module into native code, from the cache where it has it.
//
// Each module has its own folder in the cache, named by the digest of its bytes, so that a broken entry (a file cut short
// by a full disk, say) can be thrown away without touching the others. A second host may share the directory: entries
// appear by renaming a finished file.
func (p *Plugin) compile(ctx context.Context, module []byte) error {
	if p.opts.CacheDir == "" {
		return p.compileIn(ctx, module, "")
	}
	if err := secure(p.opts.CacheDir); err != nil {
		return err
	}
	sum := sha256.Sum256(module)
	dir := filepath.Join(p.opts.CacheDir, hex.EncodeToString(sum[:]))
	err := p.compileIn(ctx, module, dir)
	if err == nil {
		return nil
	}
	if rerr := os.RemoveAll(dir); rerr != nil {
		return p.compileIn(ctx, module, "")
	}
	if p.compileIn(ctx, module, dir) == nil {
		return nil
	}
	return p.compileIn(ctx, module, "")
}

// secure makes the cache directory and refuses one that others may write to: it holds code that this process will run.
func secure(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("compile cache: %w", err)
	}
	st, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("compile cache: %w", err)
	case st.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("compile cache %s may be written by others (mode %#o): run chmod 700 %s", dir, st.Mode().Perm(), dir)
	}
	return nil
}

// compileIn compiles with a cache in dir, or without one. On an error nothing is left behind in p.
//
// Each plugin has an engine of its own, so that closing one never frees the code of another with the same bytes.
func (p *Plugin) compileIn(ctx context.Context, module []byte, dir string) (err error) {
	cfg := wazero.NewRuntimeConfig().WithCoreFeatures(features).WithDebugInfoEnabled(true)
	if dir != "" {
		if p.cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return fmt.Errorf("compile cache: %w", err)
		}
		cfg = cfg.WithCompilationCache(p.cache)
	}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, cfg)
	defer func() {
		if err != nil {
			p.discard(ctx)
		}
	}()
	if err := provide(ctx, p.runtime); err != nil {
		return err
	}
	p.code, err = p.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), module)
	if err != nil {
		return fmt.Errorf("it does not compile: %w", err)
	}
	return nil
}

func (p *Plugin) discard(ctx context.Context) {
	_ = p.runtime.Close(ctx) // nothing runs in it
	if p.cache != nil {
		_ = p.cache.Close(ctx)
	}
	p.runtime, p.cache, p.code = nil, nil, nil
}
