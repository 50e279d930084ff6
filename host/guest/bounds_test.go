package guest

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"parley/broker"
	"parley/sdk/abi"
)

func wantEffects(t *testing.T, got, want []broker.Effect) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d effects, want %d: %+v", len(got), len(want), got)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("effect %d is\n%+v, want\n%+v", i, got[i], want[i])
		}
	}
}

// pointers returns where the pointers of a function stand among its parameters, with the place of their length; −1 for
// those with a fixed length.
func pointers(f abi.Function) map[int]int {
	found := make(map[int]int)
	params := strings.Fields(f.Params)
	for i, p := range params {
		name, _, _ := strings.Cut(p, ":")
		if i+1 < len(params) && strings.HasPrefix(params[i+1], name+"_len:") {
			found[i] = i + 1
		} else if name == "out" {
			found[i] = -1
		}
	}
	return found
}

// legal is arguments that every function takes: small numbers, and for each pointer a place of its own with a length.
func legal(f abi.Function) []uint64 {
	params := strings.Fields(f.Params)
	args := make([]uint64, len(params))
	for i, j := range pointers(f) {
		args[i] = uint64(1000 + 100*i)
		if j >= 0 {
			args[j] = 40
		}
	}
	for i, p := range params {
		switch name, _, _ := strings.Cut(p, ":"); name {
		case "field", "number", "code", "span", "max":
			args[i] = 1
		case "props_len":
			args[i] = 0
		}
	}
	return args
}

// TestOnePastTheEnd: each pointer with its length may reach to the last byte of memory and not one further.
func TestOnePastTheEnd(t *testing.T) {
	for _, f := range abi.Functions {
		if f.Name == "topic_publish" {
			continue // answers ERR_NOT_AVAILABLE before it looks at anything
		}
		for at, length := range pointers(f) {
			p := newProxy(t, Options{Config: map[string]string{"x": "y"}, Capabilities: Capabilities(), Peeker: lookout{}, Retainer: lookout{}}, dialogInvocation())
			size := uint64(8)
			if length >= 0 {
				size = legal(f)[length]
			}
			for _, c := range []struct {
				name    string
				pointer uint64
				length  uint64
				fault   bool
			}{
				{"at the end", memorySize - size, size, false},
				{"one past the end", memorySize - size + 1, size, true},
				{"far out", 1<<32 - 1, size, true},
				{"longest", 1, 1<<32 - 1, true},
				{"wraps around", 1<<32 - 4, 8, true},
			} {
				if length < 0 && c.length != size {
					continue
				}
				p.wipe()
				args := legal(f)
				args[at] = c.pointer
				if length >= 0 {
					args[length] = c.length
				}
				n := p.call(f.Name, args...)
				if fault := n == int64(abi.ErrFault); fault != c.fault {
					t.Errorf("%s, parameter %d %s: returned %d", f.Name, at, c.name, n)
				}
			}
		}
	}
}

// FuzzPointers: no arguments make the host panic, read beyond the memory, or write outside of it.
func FuzzPointers(f *testing.F) {
	f.Add(uint8(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0), uint64(0))
	for i := range abi.Functions {
		f.Add(uint8(i), uint64(memorySize-1), uint64(2), uint64(1<<32-1), uint64(1<<32-1), uint64(1<<63), uint64(36))
	}
	inv := dialogInvocation()
	inv.Effects = effects{check: func(context.Context, *broker.Effect) error { return nil }}
	p := newProxy(f, Options{Capabilities: Capabilities(), Peeker: lookout{}, Retainer: lookout{}}, inv)
	f.Fuzz(func(t *testing.T, which uint8, a, b, c, d, e, g uint64) {
		fn := abi.Functions[int(which)%len(abi.Functions)]
		params := strings.Fields(fn.Params)
		values := []uint64{a, b, c, d, e, g}
		args := make([]uint64, len(params))
		for i, p := range params {
			args[i] = values[i%len(values)]
			if strings.HasSuffix(p, ":i32") {
				args[i] = uint64(uint32(args[i]))
			}
		}
		p.in.reset(inv)
		res, err := p.in.module.ExportedFunction(fn.Name).Call(&p.in.call, args...)
		if err != nil {
			if !strings.Contains(err.Error(), errEffectLimit.Error()) {
				t.Fatalf("%s%v: %v", fn.Name, args, err)
			}
			return
		}
		if n := int32(uint32(res[0])); fn.Result == "i32" && n < -int32(abi.Errnos) {
			t.Fatalf("%s%v returned %d, which is no error code", fn.Name, args, n)
		}
	})
}
