package guest

import (
	"context"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"parley/host/guest/meter"
)

// Info describes a module and the limits it runs under.
type Info struct {
	Digest  string         // sha256 of the module, in hexadecimal
	Size    int            // of the module, in bytes
	Command bool           // a WASI command; otherwise it exports parley_handle
	Memory  meter.Memory   // pages of 64 KiB it starts with and may grow to
	Imports []meter.Import // in the order of the module
	Exports []meter.Export // in the order of the module
	Needs   []Capability   // what the functions it imports need
	Checks  int            // places at which its work is counted
	Limits  Limits         // that apply, defaults filled in
}

// Inspect describes a module without compiling it. The error says why Load would refuse it; the Info is then filled in as
// far as the module could be read.
func Inspect(wasm []byte, limits Limits) (Info, error) {
	limits = limits.withDefaults()
	if err := limits.check(); err != nil {
		return Info{}, refused("", err)
	}
	module, err := decode(wasm)
	if err != nil {
		return Info{}, refused("", err)
	}
	info, err := describe(wasm, module, limits)
	if err != nil {
		return info, refused("", err)
	}
	return info, nil
}

// wasiTypes is the type of every function of WASI preview 1.
var wasiTypes = sync.OnceValue(func() map[string]string {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	b := r.NewHostModuleBuilder(wasiModule)
	exportWASI(b)
	types := make(map[string]string)
	code, err := b.Compile(ctx)
	if err != nil {
		return types
	}
	for name, f := range code.ExportedFunctions() {
		types[name] = "(" + valueTypes(f.ParamTypes()) + ") -> (" + valueTypes(f.ResultTypes()) + ")"
	}
	return types
})

func valueTypes(types []api.ValueType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = api.ValueTypeName(t)
	}
	return strings.Join(names, ", ")
}
