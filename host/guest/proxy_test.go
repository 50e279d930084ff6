package guest

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"

	"parley/host"
	"parley/sdk/abi"
)

// uleb is an unsigned number in the binary format.
func uleb(n int) []byte {
	var b []byte
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func vec(items ...[]byte) []byte { return append(uleb(len(items)), bytes.Join(items, nil)...) }

func text(s string) []byte { return append(uleb(len(s)), s...) }

func section(id byte, body []byte) []byte {
	return append(append([]byte{id}, uleb(len(body))...), body...)
}

// proxyModule is a handler that exports every function it imports, all of parley_v1, under the same name. It has one page
// of memory.
func proxyModule() []byte {
	types := [][]byte{{0x60, 0, 1, 0x7f}} // type 0: parley_handle
	var imports, exports [][]byte
	for i, f := range abi.Functions {
		typ := []byte{0x60}
		var params []byte
		n := 0
		for _, p := range strings.Fields(f.Params) {
			params = append(params, valueByte(p[strings.Index(p, ":")+1:]))
			n++
		}
		typ = append(append(typ, uleb(n)...), params...)
		types = append(types, append(typ, 1, valueByte(f.Result)))
		imports = append(imports, bytes.Join([][]byte{text(abi.Module), text(f.Name), {0}, uleb(i + 1)}, nil))
		exports = append(exports, bytes.Join([][]byte{text(f.Name), {0}, uleb(i)}, nil))
	}
	exports = append(exports, append(text(abi.Memory), 2, 0))
	exports = append(exports, bytes.Join([][]byte{text(abi.Handle), {0}, uleb(len(abi.Functions))}, nil))
	code := []byte{0, 0x41, 0, 0x0b} // no locals; i32.const 0; end
	return bytes.Join([][]byte{
		magic,
		{1, 0, 0, 0},
		section(1, vec(types...)), section(2, vec(imports...)), section(3, vec([]byte{0})),
		section(5, vec([]byte{0, 1})), section(7, vec(exports...)),
		section(10, vec(append(uleb(len(code)), code...))),
	}, nil)
}

func valueByte(name string) byte {
	if name == "i64" {
		return 0x7e
	}
	return 0x7f
}

// proxy calls host functions as a guest would, with memory that the test sees.
type proxy struct {
	t  testing.TB
	in *instance
}

func newProxy(t testing.TB, opts Options, inv *host.Invocation) *proxy {
	t.Helper()
	p := load(t, proxyModule(), opts)
	in, err := p.instantiate(t.Context(), inv, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.close)
	in.begin(context.Background(), 0, 0)
	t.Cleanup(in.rests)
	return &proxy{t, in}
}

const memorySize = pageSize

func (p *proxy) memory() api.Memory { return p.in.module.Memory() }

// wipe fills the memory with question marks.
func (p *proxy) wipe() {
	p.memory().Write(0, bytes.Repeat([]byte{'?'}, memorySize))
}

// put writes s at an offset.
func (p *proxy) put(at uint32, s string) {
	p.t.Helper()
	if !p.memory().WriteString(at, s) {
		p.t.Fatalf("cannot write %d bytes at %d", len(s), at)
	}
}

// call calls a function and returns its result, sign-extended.
func (p *proxy) call(name string, args ...uint64) int64 {
	p.t.Helper()
	p.in.hostCalls = 0
	res, err := p.in.module.ExportedFunction(name).Call(&p.in.call, args...)
	if err != nil {
		p.t.Fatalf("%s%v: %v", name, args, err)
	}
	if f, _ := abi.Lookup(name); f.Result == "i64" {
		return int64(res[0])
	}
	return int64(int32(uint32(res[0])))
}

// want fails unless the memory holds exactly these bytes from an offset, with question marks on both sides.
func (p *proxy) want(at uint32, s string) {
	p.t.Helper()
	from := at - min(at, 4)
	got, _ := p.memory().Read(from, min(uint32(len(s))+8, memorySize-from))
	expect := strings.Repeat("?", int(at-from)) + s
	expect += strings.Repeat("?", len(got)-len(expect))
	if string(got) != expect {
		p.t.Errorf("memory at %d is %q, want %q", from, got, expect)
	}
}
