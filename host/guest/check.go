package guest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"parley/host/guest/meter"
	"parley/sdk/abi"
)

// Import modules besides abi.Module.
const (
	wasiModule  = "wasi_snapshot_preview1"
	abortModule = "env"
)

var (
	magic     = []byte("\x00asm")
	component = []byte("\x00asm\x0d\x00\x01\x00")
)

// decode rewrites the module. What is not WebAssembly at all gets a plainer error than the decoder has.
func decode(wasm []byte) (meter.Module, error) {
	switch {
	case bytes.HasPrefix(wasm, component):
		return meter.Module{}, errors.New("it is a WebAssembly component: build a core module, for WASI preview 1")
	case !bytes.HasPrefix(wasm, magic):
		return meter.Module{}, errors.New("it is no WebAssembly module (the first bytes are not \\0asm): give the .wasm file that `runtime plugin build` or a compiler made")
	}
	module, err := meter.Rewrite(wasm, meter.Options{})
	if err != nil {
		return meter.Module{}, fmt.Errorf("it is refused: %w", err)
	}
	return module, nil
}

// check refuses a module that cannot be a handler under limits.
func check(m meter.Module, info Info, limits Limits) error {
	if err := checkMemory(m, limits); err != nil {
		return err
	}
	entry := abi.Handle
	want := "() -> (i32)"
	if info.Command {
		entry, want = abi.Start, "() -> ()"
	}
	e, ok := m.Export(entry)
	switch {
	case !ok:
		return fmt.Errorf("it exports no function %s: export %s as () -> i32, or be a WASI command that exports %s", abi.Handle, abi.Handle, abi.Start)
	case e.Kind != meter.Func || e.Func.String() != want:
		return fmt.Errorf("its export %s is %s: it must be a function %s", entry, shape(e.Kind, e.Func), want)
	}
	if e, ok := m.Export(abi.Initialize); ok && !info.Command && (e.Kind != meter.Func || e.Func.String() != "() -> ()") {
		return fmt.Errorf("its export %s is %s: it must be a function () -> ()", abi.Initialize, shape(e.Kind, e.Func))
	}
	for _, i := range m.Imports {
		if err := checkImport(i); err != nil {
			return err
		}
	}
	return nil
}

func shape(k meter.Kind, f meter.Signature) string {
	if k == meter.Func {
		return "a function " + f.String()
	}
	return "a " + k.String()
}

func checkMemory(m meter.Module, limits Limits) error {
	e, ok := m.Export(abi.Memory)
	switch {
	case !ok || e.Kind != meter.Mem || len(m.Memories) == 0:
		return fmt.Errorf("it exports no memory named %q: the host reads and writes messages there", abi.Memory)
	case m.Memories[0].Imported:
		return fmt.Errorf("it imports its memory: let it have its own and export it as %q", abi.Memory)
	case m.Memories[0].Min > limits.pages():
		return fmt.Errorf("it wants %s of memory at its start, its limit is %s: raise limits.memory, or build it with less",
			mib(m.Memories[0].Min), mib(limits.pages()))
	}
	return nil
}

func mib(pages uint32) string {
	if pages%16 == 0 {
		return fmt.Sprintf("%d MiB", pages/16)
	}
	return fmt.Sprintf("%d KiB", pages*64)
}

func checkImport(i meter.Import) error {
	want, known := importType(i)
	switch {
	case i.Kind == meter.Func && known && want == i.Func.String():
		return nil
	case i.Kind == meter.Func && known:
		return fmt.Errorf("it imports %s.%s as %s, here it is %s: build it with an SDK of this version", i.Module, i.Name, i.Func, want)
	case i.Module == abi.Module:
		return fmt.Errorf("it imports %s.%s, which this version does not have: see docs/abi.md, or update the runtime", i.Module, i.Name)
	case strings.HasPrefix(i.Module, "parley_"):
		return fmt.Errorf("it imports from %s, this version has %s only: update the runtime", i.Module, abi.Module)
	case i.Module == wasiModule:
		return fmt.Errorf("it imports %s.%s, which is no function of WASI preview 1", i.Module, i.Name)
	}
	return fmt.Errorf("it imports %s %s.%s: a handler may import functions of %s, %s and %s.abort only",
		i.Kind, i.Module, i.Name, abi.Module, wasiModule, abortModule)
}

// importType returns the type that the host has for an import.
func importType(i meter.Import) (string, bool) {
	switch i.Module {
	case abi.Module:
		f, ok := abi.Lookup(i.Name)
		if !ok {
			return "", false
		}
		var params []string
		for _, p := range strings.Fields(f.Params) {
			_, typ, _ := strings.Cut(p, ":")
			params = append(params, typ)
		}
		return "(" + strings.Join(params, ", ") + ") -> (" + f.Result + ")", true
	case wasiModule:
		t, ok := wasiTypes()[i.Name]
		return t, ok
	case abortModule:
		return "(i32, i32, i32, i32) -> ()", i.Name == "abort"
	}
	return "", false
}
