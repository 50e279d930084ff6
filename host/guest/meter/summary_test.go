package meter_test

import (
	"bytes"
	"context"
	_ "embed"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/tetratelabs/wazero"

	"parley/host/guest/meter"
)

//go:embed testdata/guests/summary.wasm
var summaryWasm []byte

func TestSummaryDescribesTheOriginal(t *testing.T) {
	m, err := meter.Rewrite(summaryWasm, meter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	i32 := []meter.ValueType{meter.I32}
	want := meter.Module{
		Imports: []meter.Import{
			{Module: "env", Name: "f", Kind: meter.Func, Func: meter.Signature{
				Params:  []meter.ValueType{meter.I32, meter.I64, meter.F32, meter.F64, meter.V128, meter.FuncRef, meter.ExternRef},
				Results: []meter.ValueType{meter.I32, meter.I64},
			}},
			{Module: "env", Name: "t", Kind: meter.Table},
			{Module: "env", Name: "g", Kind: meter.Global},
			{Module: "env", Name: "m", Kind: meter.Mem},
		},
		Exports: []meter.Export{
			{Name: "f", Kind: meter.Func, Func: meter.Signature{Params: i32}},
			{Name: "t", Kind: meter.Table},
			{Name: "m", Kind: meter.Mem},
			{Name: "g", Kind: meter.Global},
		},
		Memories: []meter.Memory{{Module: "env", Name: "m", Imported: true, Min: 3, Max: 10, HasMax: true}},
		Checks:   m.Checks,
		Options:  meter.Options{TableElements: meter.DefaultTableElements},
		Bytes:    m.Bytes,
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
	if got, want := m.Imports[0].Func.String(), "(i32, i64, f32, f64, v128, funcref, externref) -> (i32, i64)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if e, ok := m.Export("g"); !ok || e.Kind.String() != "global" {
		t.Errorf("got %v and %v, want the global g", e, ok)
	}
	if e, ok := m.Export(meter.CounterExport); ok {
		t.Errorf("got %v, want no trace of the counter", e)
	}
}

func TestOwnMemoryWithoutMaximum(t *testing.T) {
	m, err := meter.Rewrite(wasm(section(secMemory, 1, 0, 2)), meter.Options{})
	if want := (meter.Memory{Min: 2, Max: 65_536}); err != nil || len(m.Memories) != 1 || m.Memories[0] != want {
		t.Errorf("got %+v and %v, want %+v", m.Memories, err, want)
	}
}

func TestOutputIsDeterministicAndConcurrent(t *testing.T) {
	first, err := meter.Rewrite(stopsWasm, meter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			again, err := meter.Rewrite(stopsWasm, meter.Options{})
			if err != nil || !bytes.Equal(first.Bytes, again.Bytes) {
				t.Errorf("got %v and other bytes, want the same bytes", err)
			}
		})
	}
	group.Wait()
}

func TestInputIsNotChanged(t *testing.T) {
	before := bytes.Clone(stopsWasm)
	if _, err := meter.Rewrite(stopsWasm, meter.Options{}); err != nil || !bytes.Equal(before, stopsWasm) {
		t.Errorf("got a changed input and %v", err)
	}
}

func TestCacheKeyTellsApartWhatGivesOtherBytes(t *testing.T) {
	keys := map[string]bool{}
	for _, o := range []meter.Options{{}, {TableElements: 5}, {DropNames: true}} {
		keys[o.CacheKey()] = true
	}
	keys[meter.Options{TableElements: meter.DefaultTableElements}.CacheKey()] = true // the same as the zero value
	if len(keys) != 3 {
		t.Errorf("got keys %v, want 3", keys)
	}
}

func TestARewrittenModuleIsRefused(t *testing.T) {
	m, err := meter.Rewrite(oneFunction(), meter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = meter.Rewrite(m.Bytes, meter.Options{}); err == nil || !strings.Contains(err.Error(), "reserved name") {
		t.Errorf("got %v, want a reserved name", err)
	}
}

// named is a module with one imported function, one own function that traps, and the given function names.
func named(names []byte) []byte {
	return wasm(section(secType, 1, 0x60, 0, 0), section(secImport, 1, 3, 'e', 'n', 'v', 4, 'h', 'o', 's', 't', 0, 0),
		section(secFunction, 1, 0), section(secExport, 1, 1, 'f', 0, 1), section(secCode, 1, 3, 0, 0x00, 0x0b),
		section(secCustom, cat([]byte{4, 'n', 'a', 'm', 'e'}, names)...),
		section(secCustom, cat(sized([]byte(".debug_info")...), []byte("wrong offsets"))...))
}

func TestFunctionNamesMoveWithTheFunctions(t *testing.T) {
	names := section(1, 2, 0, 1, 'h', 1, 7, 'c', 'u', 'l', 'p', 'r', 'i', 't')
	locals := section(2, 1, 1, 0)
	wasm := named(cat(section(0, 3, 'm', 'o', 'd'), names, locals))
	i := newInstance(t, engines["compiler"](), wasm)
	if _, _, err := i.call("f", 0, 1000, 0); err == nil || !strings.Contains(err.Error(), "culprit") {
		t.Errorf("got %v, want a trap in culprit", err)
	}
	m, err := meter.Rewrite(wasm, meter.Options{})
	if err != nil || bytes.Contains(m.Bytes, []byte("debug")) {
		t.Errorf("got debug information in the output, or %v", err)
	}
	if m, err = meter.Rewrite(wasm, meter.Options{DropNames: true}); err != nil || bytes.Contains(m.Bytes, []byte("culprit")) {
		t.Errorf("got names in the output, or %v", err)
	}
}

func TestBrokenNameSectionsHaveNoEffect(t *testing.T) {
	for name, names := range map[string][]byte{
		"empty":                     {},
		"cut off":                   {1},
		"subsection too long":       {1, 9, 0},
		"2^32-1 names":              section(1, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"function out of range":     section(1, 1, 2, 1, 'x'),
		"functions not in order":    section(1, 2, 1, 1, 'x', 0, 1, 'y'),
		"function twice":            section(1, 2, 1, 1, 'x', 1, 1, 'y'),
		"name that is not UTF-8":    section(1, 1, 0, 1, 0xff),
		"bytes behind the names":    section(1, 1, 0, 1, 'x', 0),
		"subsections we do not use": section(7, 1, 2, 3),
	} {
		m, err := meter.Rewrite(named(names), meter.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if bytes.Contains(m.Bytes, []byte("\x04name")) {
			t.Errorf("%s: got a name section, want none", name)
		}
		r := wazero.NewRuntimeWithConfig(context.Background(), wazero.NewRuntimeConfigInterpreter())
		if _, err := r.CompileModule(context.Background(), m.Bytes); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.Close(context.Background())
	}
}

func TestEveryCostHasAReasonAndAllButNothingAPrice(t *testing.T) {
	for i, c := range meter.Costs() {
		if c.Name == "" || c.Reason == "" || (c.Units < 1) != (i == 0) {
			t.Errorf("row %d: got %+v, want a name, a reason, and a price in all rows but the first", i, c)
		}
	}
}
