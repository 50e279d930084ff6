package meter

import "strings"

// Module is a rewritten module and what a host needs to know about it without decoding it again. The description is that of
// the original: neither the counter nor the checkpoint appear in it.
type Module struct {
	Bytes    []byte   // the rewritten module
	Imports  []Import // in the order of the module
	Exports  []Export // in the order of the module
	Memories []Memory // at most one, imported or own
	Checks   int      // places at which the counter is checked
	Options  Options  // those that applied, defaults filled in
}

// Export returns the export of that name.
func (m Module) Export(name string) (Export, bool) {
	for _, e := range m.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// Kind of an import or export.
type Kind uint8

// The kinds of WebAssembly 2.0, with their numbers in the binary format.
const (
	Func   Kind = 0
	Table  Kind = 1
	Mem    Kind = 2
	Global Kind = 3
)

// String returns the keyword of the text format.
func (k Kind) String() string { return [...]string{"func", "table", "memory", "global"}[k&3] }

// ValueType is a type of value, with its number in the binary format.
type ValueType uint8

// The value types of WebAssembly 2.0.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// String returns the keyword of the text format, or "?" for a number that is no type.
func (t ValueType) String() string {
	switch t {
	case I32:
		return "i32"
	case I64:
		return "i64"
	case F32:
		return "f32"
	case F64:
		return "f64"
	case V128:
		return "v128"
	case FuncRef:
		return "funcref"
	case ExternRef:
		return "externref"
	}
	return "?"
}

// Signature is the type of a function. The slices are shared: do not change them.
type Signature struct {
	Params, Results []ValueType
}

// String writes the signature like "(i32, i32) -> (i64)".
func (s Signature) String() string {
	var b strings.Builder
	list := func(types []ValueType) {
		b.WriteByte('(')
		for i, t := range types {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(t.String())
		}
		b.WriteByte(')')
	}
	list(s.Params)
	b.WriteString(" -> ")
	list(s.Results)
	return b.String()
}

// Import is one thing the module needs.
type Import struct {
	Module, Name string
	Kind         Kind
	Func         Signature // of a Func, empty otherwise
}

// Export is one thing the module offers.
type Export struct {
	Name string
	Kind Kind
	Func Signature // of a Func, empty otherwise
}

// Memory is a declared linear memory.
type Memory struct {
	Module, Name string // where it is imported from; empty for an own memory
	Imported     bool
	Min          uint32 // pages of 64 KiB at the start
	Max          uint32 // pages it may grow to; 65,536 when HasMax is false
	HasMax       bool   // whether the module itself states a maximum
}
