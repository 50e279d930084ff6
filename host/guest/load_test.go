package guest

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/broker"
	"parley/sdk/abi"
)

// module is a small module from its sections.
func module(sections ...[]byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"), bytes.Join(sections, nil)...)
}

// handler is a module with these imports, pages of memory and exports; its one function has type () -> i32.
func handler(imports [][]byte, pages int, exports ...[]byte) []byte {
	types := section(1, vec([]byte{0x60, 0, 1, 0x7f}, []byte{0x60, 0, 0}))
	code := []byte{0, 0x41, 0, 0x0b}
	return module(types, section(2, vec(imports...)), section(3, vec([]byte{0})),
		section(5, vec(append([]byte{0}, uleb(pages)...))), section(7, vec(exports...)),
		section(10, vec(append(uleb(len(code)), code...))))
}

func export(name string, kind byte, index int) []byte {
	return append(append(text(name), kind), uleb(index)...)
}

func importFunc(module, name string, typ int) []byte {
	return append(append(text(module), append(text(name), 0)...), uleb(typ)...)
}

// TestRefusedAtLoad: a module that cannot be a handler is refused, with what is wrong and what to do.
func TestRefusedAtLoad(t *testing.T) {
	memory, handle := export(abi.Memory, 2, 0), export(abi.Handle, 0, 0)
	shifted := export(abi.Handle, 0, 1)
	killer := module(section(2, []byte{0xff, 0xff, 0xff, 0xff, 0x0f}))
	for _, c := range []struct {
		name string
		wasm []byte
		opts Options
		want []string
	}{
		{"empty file", nil, Options{}, []string{"no WebAssembly module"}},
		{"text", []byte("package main"), Options{}, []string{"no WebAssembly module", "plugin build"}},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), Options{}, []string{"component", "core module"}},
		{"cut short", wat(t, "trouble")[:100], Options{}, []string{"malformed"}},
		{"huge count", killer, Options{}, []string{"imports"}},
		{"no memory", handler(nil, 1, handle), Options{}, []string{`no memory named "memory"`}},
		{"memory is a function", handler(nil, 1, handle, export(abi.Memory, 0, 0)), Options{}, []string{`no memory named "memory"`}},
		{"no handler", handler(nil, 1, memory), Options{}, []string{"exports no function parley_handle", "_start"}},
		{"handler is a memory", handler(nil, 1, memory, export(abi.Handle, 2, 0)), Options{}, []string{"parley_handle is a memory", "() -> (i32)"}},
		{"handler of another type", handler([][]byte{importFunc("env", "abort", 1)}, 1, memory, handle), Options{}, []string{"parley_handle is a function () -> ()"}},
		{"too much memory", handler(nil, 1025, memory, handle), Options{}, []string{"65600 KiB", "64 MiB", "limits.memory"}},
		{"over a small limit", handler(nil, 17, memory, handle), Options{Limits: Limits{Memory: 1 << 20}}, []string{"1088 KiB", "1 MiB"}},
		{"unknown function", handler([][]byte{importFunc(abi.Module, "teleport", 0)}, 1, memory, shifted), Options{}, []string{"parley_v1.teleport", "docs/abi.md"}},
		{"wrong type", handler([][]byte{importFunc(abi.Module, "message_body", 0)}, 1, memory, shifted), Options{}, []string{"parley_v1.message_body as () -> (i32)", "(i32, i32, i32) -> (i32)"}},
		{"next version", handler([][]byte{importFunc("parley_v2", "message_body", 0)}, 1, memory, shifted), Options{}, []string{"parley_v2", "parley_v1 only"}},
		{"unknown WASI", handler([][]byte{importFunc(wasiModule, "fly", 0)}, 1, memory, shifted), Options{}, []string{"wasi_snapshot_preview1.fly"}},
		{"unknown module", handler([][]byte{importFunc("js", "eval", 0)}, 1, memory, shifted), Options{}, []string{"js.eval", "only"}},
		{"reserved name", handler(nil, 1, memory, handle, export("__rt.counter", 0, 0)), Options{}, []string{"reserved name"}},
		{"start traps", startTrap(), Options{}, []string{"does not start", "unreachable"}},
		{"bad policy", wat(t, "empty"), Options{Instances: "cloned"}, []string{`"cloned"`, `"pooled" or "per_attempt"`}},
		{"bad limit", wat(t, "empty"), Options{Limits: Limits{Memory: 1}}, []string{"limits.memory"}},
		{"no time", wat(t, "empty"), Options{Limits: Limits{Time: time.Microsecond}}, []string{"limits.time"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opts.Name = "stock"
			p, err := Load(t.Context(), c.wasm, c.opts)
			if err == nil {
				_ = p.Close(t.Context())
				t.Fatal("it was accepted")
			}
			if !errors.Is(err, broker.ErrInvalid) || broker.ExitCode(err) != broker.ExitUsage {
				t.Errorf("%v is no ErrInvalid", err)
			}
			for _, want := range append(c.want, "plugin stock: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q has more than one line", err)
			}
		})
	}
}

// startTrap is a handler whose start function traps.
func startTrap() []byte {
	return module(section(1, vec([]byte{0x60, 0, 1, 0x7f}, []byte{0x60, 0, 0})), section(3, vec([]byte{0}, []byte{1})),
		section(5, vec([]byte{0, 1})), section(7, vec(export(abi.Memory, 2, 0), export(abi.Handle, 0, 0))),
		section(8, []byte{1}), section(10, vec([]byte{4, 0, 0x41, 0, 0x0b}, []byte{3, 0, 0, 0x0b})))
}

// TestSmallestHandler: a module that exports memory and parley_handle and imports nothing is a handler.
func TestSmallestHandler(t *testing.T) {
	p := load(t, wat(t, "empty"), Options{})
	wantCommit(t, attemptOf(t, p, "anything"))
	wantCommit(t, attemptOf(t, load(t, handler(nil, 1024, export(abi.Memory, 2, 0), export(abi.Handle, 0, 0)), Options{}), ""))
}

// TestInspect describes what Load would run.
func TestInspect(t *testing.T) {
	info, err := Inspect(wat(t, "trouble"), Limits{Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Digest) != 64 || info.Size != len(wat(t, "trouble")) || info.Command || info.Memory.Min != 2 ||
		len(info.Imports) != 11 || len(info.Exports) != 2 || info.Checks == 0 ||
		info.Limits.Memory != 1<<20 || info.Limits.Time != 30*time.Second {
		t.Errorf("%+v", info)
	}
	if p := load(t, wat(t, "trouble"), Options{}); p.Digest() != info.Digest {
		t.Error("Load and Inspect see different digests")
	}
	info, err = Inspect(handler(nil, 1, export(abi.Memory, 2, 0)), Limits{})
	if !errors.Is(err, broker.ErrInvalid) || len(info.Exports) != 1 {
		t.Errorf("a refused module: %+v, %v", info, err)
	}
}
