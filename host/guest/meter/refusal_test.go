package meter_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"parley/host/guest/meter"
)

// Two modules that kill a host by their mere decoding in wazero 1.12.0: the Go runtime ends the process for lack of memory,
// which no recover can catch.
var (
	// An import section that claims 2^32-1 imports.
	importsKiller = wasm([]byte{secCustom, 7, 6, 'k', 'i', 'l', 'l', 'e', 'r'}, section(secImport, 0xff, 0xff, 0xff, 0xff, 0x0f))
	// A function that declares 2^32-1 locals.
	localsKiller = wasm(section(secType, 1, 0x60, 0, 0), section(secFunction, 1, 0),
		section(secCode, 1, 10, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0x01, 0x01, 0x0b))
)

func TestRefusedModules(t *testing.T) {
	voidType := section(secType, 1, 0x60, 0, 0)
	oneFunc := section(secFunction, 1, 0)
	emptyBody := section(secCode, 1, 2, 0, 0x0b)
	cases := []struct {
		name   string
		module []byte
		kind   error
		in     string // section
		offset int    // -1: not looked at
		reason string // part of it
	}{
		{"nothing", nil, meter.ErrMalformed, "header", 0, "not a WebAssembly"},
		{"another version", []byte("\x00asm\x02\x00\x00\x00"), meter.ErrMalformed, "header", 0, "not a WebAssembly"},
		{"2^32-1 imports in 24 bytes", importsKiller, meter.ErrMalformed, "import", 19, "4294967295 imports do not fit"},
		{"2^32-1 locals in 32 bytes", localsKiller, meter.ErrTooLarge, "code", 23, "4294967295 locals"},
		{"2^32-1 types", wasm(section(secType, 0xff, 0xff, 0xff, 0xff, 0x0f)), meter.ErrMalformed, "type", 10, "types do not fit"},
		{"2^32-1 functions", wasm(voidType, section(secFunction, 0xff, 0xff, 0xff, 0xff, 0x0f)), meter.ErrMalformed, "function", -1, "do not fit"},
		{"2^32-1 exports", wasm(section(secExport, 0xff, 0xff, 0xff, 0xff, 0x0f)), meter.ErrMalformed, "export", -1, "do not fit"},
		{"2^32-1 element segments", wasm(section(secElement, 0xff, 0xff, 0xff, 0xff, 0x0f)), meter.ErrMalformed, "element", -1, "do not fit"},
		{"2^32-1 data segments", wasm(section(secData, 0xff, 0xff, 0xff, 0xff, 0x0f)), meter.ErrMalformed, "data", -1, "do not fit"},
		{"2^32-1 labels", oneFunction(0x41, 0, 0x0e, 0xff, 0xff, 0xff, 0xff, 0x0f, 0), meter.ErrMalformed, "code", -1, "labels do not fit"},
		{"section longer than the file", wasm([]byte{secType, 5, 0}), meter.ErrMalformed, "header", 9, "do not fit"},
		{"section longer than its content", wasm(section(secType, 0, 0)), meter.ErrMalformed, "type", 11, "1 bytes too many"},
		{"section shorter than its content", wasm(section(secType, 1, 0x60, 0)), meter.ErrMalformed, "type", 10, "do not fit"},
		{"body longer than its code", wasm(voidType, oneFunc, section(secCode, 1, 3, 0, 0x0b, 0x0b)), meter.ErrMalformed, "code", -1, "behind the end"},
		{"body without end", wasm(voidType, oneFunc, section(secCode, 1, 2, 0, 0x01)), meter.ErrMalformed, "code", -1, "unexpected end"},
		{"section twice", wasm(voidType, voidType), meter.ErrMalformed, "header", 14, "type section twice or out of order"},
		{"sections out of order", wasm(section(secMemory, 1, 0, 1), voidType), meter.ErrMalformed, "header", -1, "out of order"},
		{"tag section", wasm(section(13, 0)), meter.ErrUnsupported, "header", 8, "section number 13"},
		{"custom section with a name that is not UTF-8", wasm(section(secCustom, 1, 0xff)), meter.ErrMalformed, "custom", 10, "UTF-8"},
		{"functions without code", wasm(voidType, oneFunc), meter.ErrMalformed, "header", -1, "without a code section"},
		{"more bodies than functions", wasm(voidType, emptyBody), meter.ErrMalformed, "code", -1, "1 bodies for 0"},
		{"data count without data", wasm(section(secDataCount, 1)), meter.ErrMalformed, "header", -1, "without a data section"},
		{"data count that is wrong", wasm(section(secDataCount, 1), section(secData, 0)), meter.ErrMalformed, "data", -1, "data count of 1"},

		{"index longer than 32 bits", oneFunction(0x10, 0x80, 0x80, 0x80, 0x80, 0x10), meter.ErrMalformed, "code", -1, "too long or too large"},
		{"constant longer than 32 bits", oneFunction(0x41, 0x80, 0x80, 0x80, 0x80, 0x70), meter.ErrMalformed, "code", -1, "too long or too large"},

		{"struct type", wasm(section(secType, 1, 0x5f, 0, 0)), meter.ErrUnsupported, "type", 11, "type form 0x5f"},
		{"typed reference as parameter", wasm(section(secType, 1, 0x60, 1, 0x63, 0)), meter.ErrUnsupported, "type", -1, "value type 0x63"},
		{"shared memory", wasm(section(secMemory, 1, 3, 1, 1)), meter.ErrUnsupported, "memory", 11, "shared"},
		{"64-bit memory", wasm(section(secMemory, 1, 4, 1)), meter.ErrUnsupported, "memory", 11, "64-bit"},
		{"two memories", wasm(section(secMemory, 2, 0, 1, 0, 1)), meter.ErrUnsupported, "memory", -1, "more than one memory"},
		{"memory beyond 4 GiB", wasm(section(secMemory, cat([]byte{1, 0}, leb(65_537))...)), meter.ErrMalformed, "memory", -1, "65537"},
		{"element flags 8", wasm(section(secElement, 1, 8, 0)), meter.ErrUnsupported, "element", 11, "flags 8"},
		{"atomics", oneFunction(0xfe, 0x03, 0), meter.ErrUnsupported, "code", -1, "opcode fe"},
		{"exceptions", oneFunction(0x08, 0), meter.ErrUnsupported, "code", -1, "opcode 08"},
		{"call_ref", oneFunction(0x14, 0), meter.ErrUnsupported, "code", -1, "opcode 14"},
		{"garbage collection", oneFunction(0xfb, 0, 0), meter.ErrUnsupported, "code", -1, "opcode fb"},
		{"relaxed SIMD", oneFunction(0xfd, 0x80, 0x02), meter.ErrUnsupported, "code", -1, "SIMD opcode 0x100"},
		{"SIMD number that was never assigned", oneFunction(0xfd, 0x9a, 0x01), meter.ErrUnsupported, "code", -1, "opcode fd 9a 01"},
		{"bulk number that was never assigned", oneFunction(0xfc, 0x12), meter.ErrUnsupported, "code", -1, "opcode fc 12"},
		{"SIMD opcode in a longer form", oneFunction(0xfd, 0x8c, 0x00), meter.ErrUnsupported, "code", -1, "SIMD opcode 0xc in 2 bytes"},
		{"memory index in a load", oneFunction(0x41, 0, 0x28, 0x42, 0, 0, 0x1a), meter.ErrUnsupported, "code", -1, "memory index"},
		{"block in a constant", wasm(section(secGlobal, 1, 0x7f, 0, 0x02, 0x40, 0x0b)), meter.ErrUnsupported, "global", -1, "opcode 0x2 in a constant"},

		{"reserved import module", wasm(voidType, section(secImport, 1, 4, '_', '_', 'r', 't', 1, 'x', 0, 0)), meter.ErrReserved, "import", -1, `"__rt"`},
		{"reserved import module with suffix", wasm(voidType, section(secImport, 1, 5, '_', '_', 'r', 't', '.', 1, 'x', 0, 0)), meter.ErrReserved, "import", -1, `"__rt."`},
		{"reserved export", wasm(section(secMemory, 1, 0, 1), section(secExport, cat([]byte{1}, sized([]byte(meter.CounterExport)...), []byte{2, 0})...)), meter.ErrReserved, "export", 16, meter.CounterExport},

		{"unknown type of an import", wasm(voidType, section(secImport, 1, 0, 0, 0, 1)), meter.ErrIndex, "import", -1, "type 1 of 1"},
		{"unknown type of a function", wasm(voidType, section(secFunction, 1, 1)), meter.ErrIndex, "function", -1, "type 1 of 1"},
		{"unknown type of a block", oneFunction(0x02, 1, 0x0b), meter.ErrIndex, "code", -1, "block type 1 of 1"},
		{"unknown type of an indirect call", oneFunction(0x41, 0, 0x11, 1, 0), meter.ErrIndex, "code", -1, "type 1 of 1"},
		{"counter read", oneFunction(0x23, 1, 0x1a), meter.ErrIndex, "code", -1, "global 1 of 1"},
		{"counter set", oneFunction(0x42, 0, 0x24, 1), meter.ErrIndex, "code", -1, "global 1 of 1"},
		{"counter in a constant", wasm(section(secGlobal, 1, 0x7e, 0, 0x23, 0, 0x0b)), meter.ErrIndex, "global", -1, "global 0 of 0"},
		{"counter exported", wasm(section(secExport, 1, 1, 'x', 3, 0)), meter.ErrIndex, "export", -1, "global 0 of 0"},
		{"checkpoint called", oneFunction(0x10, 1), meter.ErrIndex, "code", -1, "function 1 of 1"},
		{"checkpoint called in tail position", oneFunction(0x12, 1), meter.ErrIndex, "code", -1, "function 1 of 1"},
		{"checkpoint as value", oneFunction(0xd2, 1, 0x1a), meter.ErrIndex, "code", -1, "function 1 of 1"},
		{"checkpoint exported", wasm(voidType, oneFunc, section(secExport, 1, 1, 'x', 0, 1), emptyBody), meter.ErrIndex, "export", -1, "function 1 of 1"},
		{"checkpoint as start", wasm(voidType, oneFunc, section(secStart, 1), emptyBody), meter.ErrIndex, "start", -1, "function 1 of 1"},
		{"checkpoint as element", wasm(voidType, oneFunc, section(secTable, 1, 0x70, 0, 1), section(secElement, 1, 0, 0x41, 0, 0x0b, 1, 1), emptyBody), meter.ErrIndex, "element", -1, "function 1 of 1"},
		{"spare local", oneFunction(0x20, 0, 0x1a), meter.ErrIndex, "code", -1, "local 0 of 0"},
		{"label beyond the function", oneFunction(0x0c, 1), meter.ErrIndex, "code", -1, "label 1 of 1"},
		{"unknown element segment", oneFunction(0xfc, 0x0d, 0), meter.ErrIndex, "code", -1, "element segment 0 of 0"},
		{"data segment without data count", oneFunction(0xfc, 0x09, 0), meter.ErrMalformed, "code", -1, "without a data count"},
		{"unknown table", oneFunction(0x41, 0, 0x25, 1, 0x1a), meter.ErrIndex, "code", -1, "table 1 of 1"},
		{"load without memory", wasm(voidType, oneFunc, section(secCode, 1, 7, 0, 0x41, 0, 0x28, 0, 0, 0x0b)), meter.ErrIndex, "code", -1, "memory 0 of 0"},
		{"else without if", oneFunction(0x05), meter.ErrMalformed, "code", -1, "else without if"},
		{"second else", oneFunction(0x41, 0, 0x04, 0x40, 0x05, 0x05, 0x0b), meter.ErrMalformed, "code", -1, "else without if"},

		{"too many locals", functions(cat([]byte{1}, leb(50_001), []byte{0x7f, 0x0b})), meter.ErrTooLarge, "code", -1, "50001 locals"},
		{"too many locals in several groups", functions(cat([]byte{2}, leb(50_000), []byte{0x7f, 1, 0x7e, 0x0b})), meter.ErrTooLarge, "code", -1, "50001 locals"},
		{"too many locals of all functions", functions(slicesRepeat(cat([]byte{1}, leb(50_000), []byte{0x7f, 0x0b}), 101)...), meter.ErrTooLarge, "code", -1, "5000000 in a module"},
		{"too many parameters", wasm(section(secType, cat([]byte{1, 0x60}, leb(1001), bytes.Repeat([]byte{0x7f}, 1001), []byte{0})...)), meter.ErrTooLarge, "type", -1, "1001 parameters"},
		{"too large a table", wasm(section(secTable, cat([]byte{1, 0x70, 0}, leb(1<<20+1))...)), meter.ErrTooLarge, "table", -1, "1048577 table elements"},
		{"too large tables together", wasm(section(secTable, cat([]byte{2, 0x70, 0}, leb(1<<19), []byte{0x70, 0}, leb(1<<19+1))...)), meter.ErrTooLarge, "table", -1, "1048577 table elements"},
		{"too many loops", oneFunction(bytes.Repeat([]byte{0x03, 0x40, 0x0b}, 4001)...), meter.ErrTooLarge, "code", -1, "4000 loops"},
		{"too deep blocks", oneFunction(cat(bytes.Repeat([]byte{0x02, 0x40}, 50_000), bytes.Repeat([]byte{0x0b}, 50_000))...), meter.ErrTooLarge, "code", -1, "nested deeper"},
		{"too long a body", oneFunction(bytes.Repeat([]byte{0x01}, 7_654_321)...), meter.ErrTooLarge, "code", -1, "7654323 bytes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := meter.Rewrite(c.module, meter.Options{})
			var e *meter.Error
			if !errors.As(err, &e) || !errors.Is(err, c.kind) {
				t.Fatalf("got %v, want %v", err, c.kind)
			}
			if e.Section != c.in || c.offset >= 0 && e.Offset != c.offset || !strings.Contains(e.Reason, c.reason) {
				t.Errorf("got %v; want %q in section %q at %#x", err, c.reason, c.in, c.offset)
			}
		})
	}
}

func TestKillersAreAsSmallAsTheyWereFound(t *testing.T) {
	if len(importsKiller) != 24 || len(localsKiller) != 32 {
		t.Errorf("got %d and %d bytes, want 24 and 32", len(importsKiller), len(localsKiller))
	}
}

func slicesRepeat(b []byte, n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = b
	}
	return all
}

// TestWorkingMemoryStaysSmall rewrites modules of almost 1 MiB that are as dense as possible in what the rewriter keeps or adds.
func TestWorkingMemoryStaysSmall(t *testing.T) {
	const size = 1<<20 - 1000
	fill := func(code ...byte) []byte { return bytes.Repeat(code, size/len(code)) }
	loops := func(code ...byte) []byte {
		body := cat([]byte{0}, bytes.Repeat(code, 4000), []byte{0x0b})
		return functions(slicesRepeat(body, size/(len(body)+4))...)
	}
	elements := cat([]byte{1, 0, 0x41, 0, 0x0b}, leb(size), make([]byte, size))
	var names []byte
	for i := range size / 8 {
		names = append(names, 4, byte('a'+i&15), byte('a'+i>>4&15), byte('a'+i>>8&15), byte('a'+i>>12), 2, 0)
	}
	cases := map[string][]byte{
		"loops":          loops(0x03, 0x40, 0x0b),
		"loops and bulk": loops(0x03, 0x40, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 0x0b, 0, 0x0b),
		"bulk":           oneFunction(fill(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 0x0b, 0)...),
		"bulk only":      oneFunction(cat([]byte{0x00}, fill(0xfc, 0x0b, 0))...),
		"calls":          oneFunction(fill(0x10, 0)...),
		"blocks":         oneFunction(fill(0x02, 0x40, 0x0b)...),
		"functions":      functions(slicesRepeat([]byte{0, 0x10, 0, 0x0b}, size/6)...),
		"types":          wasm(section(secType, cat(leb(100_000), bytes.Repeat([]byte{0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f}, 100_000))...)),
		"exports":        wasm(section(secMemory, 1, 0, 1), section(secExport, cat(leb(100_000), names[:700_000])...)),
		"elements":       wasm(section(secType, 1, 0x60, 0, 0), section(secFunction, 1, 0), section(secTable, 1, 0x70, 0, 1), section(secElement, elements...), section(secCode, 1, 2, 0, 0x0b)),
		"globals":        wasm(section(secGlobal, cat(leb(size/5), bytes.Repeat([]byte{0x7f, 0, 0x41, 0, 0x0b}, size/5))...)),
		"data":           wasm(section(secData, cat(leb(size/2), bytes.Repeat([]byte{1, 0}, size/2))...)),
		"import thunks":  wasm(section(secType, cat([]byte{1, 0x60}, leb(100), bytes.Repeat([]byte{0x7f}, 100), []byte{0})...), section(secImport, cat(leb(10_000), make([]byte, 40_000))...), section(secExport, thunkExports(10_000)...)),
	}
	for name, module := range cases {
		t.Run(name, func(t *testing.T) {
			allocated, err := allocatedBy(module)
			t.Logf("%d bytes: %d KiB allocated, %v", len(module), allocated>>10, err)
			if err != nil {
				t.Fatal(err)
			}
			if allocated > 64<<20 {
				t.Errorf("got %d MiB allocated, want at most 64", allocated>>20)
			}
		})
	}
}

func thunkExports(n int) []byte {
	out := leb(uint64(n))
	for i := range n {
		out = append(out, 2, byte('a'+i&15), byte(i>>4&63), 0)
		out = append(out, leb(uint64(i))...)
	}
	return out
}

func allocatedBy(module []byte) (bytes uint64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = meter.Rewrite(module, meter.Options{TableElements: math.MaxUint32})
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc, err
}
