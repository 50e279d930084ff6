package meter_test

import (
	"bytes"
	"compress/bzip2"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"

	"parley/host/guest/meter"
)

//go:embed testdata/spec/seeds.json.bz2
var seedsPacked []byte

// addSeeds adds the two killers, the modules of the other tests and a share of those of the specification, valid and invalid ones.
func addSeeds(f *testing.F) {
	f.Add(importsKiller)
	f.Add(localsKiller)
	f.Add(stopsWasm)
	f.Add(summaryWasm)
	f.Add(named(section(1, 2, 0, 1, 'h', 1, 1, 'x')))
	for _, name := range []string{"empty", "loop", "calls", "bulk", "thunk"} {
		f.Add(form(f, name))
	}
	var modules [][]byte
	if err := json.NewDecoder(bzip2.NewReader(bytes.NewReader(seedsPacked))).Decode(&modules); err != nil {
		f.Fatal(err)
	}
	for _, m := range modules {
		f.Add(m)
	}
}

// FuzzRewrite: no input makes the rewriter panic, need much memory or return something that it would itself take for a guest's
// module.
func FuzzRewrite(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, module []byte) {
		if len(module) >= 1<<20 {
			return
		}
		allocated, err := allocatedBy(module)
		if allocated > 64<<20 {
			t.Errorf("got %d MiB allocated for %d bytes, want at most 64", allocated>>20, len(module))
		}
		if err != nil {
			var e *meter.Error
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > len(module) || e.Section == "" || e.Reason == "" {
				t.Errorf("got %#v, want a *meter.Error that says where and why", err)
			}
			return
		}
		m, err := meter.Rewrite(module, meter.Options{})
		if err != nil {
			return // a table that only the unlimited options of allocatedBy allow
		}
		if _, err = meter.Rewrite(m.Bytes, meter.Options{}); !errors.Is(err, meter.ErrReserved) {
			t.Errorf("got %v for the output as input, want %v", err, meter.ErrReserved)
		}
	})
}

// FuzzRewriteThenCompile: what the runtime accepts after the rewriting it accepts before, and the other way round.
func FuzzRewriteThenCompile(f *testing.F) {
	addSeeds(f)
	ctx := context.Background()
	runtimes := map[string]wazero.Runtime{}
	for engine, config := range engines {
		runtimes[engine] = wazero.NewRuntimeWithConfig(ctx, config().WithCoreFeatures(features))
	}
	compiles := func(engine string, wasm []byte) error {
		m, err := runtimes[engine].CompileModule(ctx, wasm)
		if err == nil {
			m.Close(ctx)
		}
		return err
	}
	f.Fuzz(func(t *testing.T, module []byte) {
		if len(module) >= 1<<16 {
			return // the compiler takes long for it
		}
		m, err := meter.Rewrite(module, meter.Options{})
		if err != nil {
			return
		}
		for engine := range runtimes {
			before, after := compiles(engine, withoutCustom(module)), compiles(engine, m.Bytes)
			if (before == nil) != (after == nil) {
				t.Errorf("%s: got %v with the rewriter, %v without\n%x", engine, after, before, module)
			}
		}
	})
}

// withoutCustom drops the custom sections of a module that the rewriter accepted. wazero refuses a module for a broken name
// section, which has no meaning by the specification; the rewriter leaves it out.
func withoutCustom(module []byte) []byte {
	out := bytes.Clone(module[:8])
	for rest := module[8:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		end := 1 + n + int(size)
		if rest[0] != secCustom {
			out = append(out, rest[:end]...)
		}
		rest = rest[end:]
	}
	return out
}
