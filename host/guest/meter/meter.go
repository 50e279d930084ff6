package meter

import (
	"fmt"
	"slices"
)

// Version changes whenever the same input and options would give other bytes or another count of units.
const Version = 1

// Names of what a rewritten module has in addition. Modules that use a reserved name themselves are refused.
const (
	CounterExport    = "__rt.counter"         // exported mutable i64 global: units left
	CheckpointModule = "__rt"                 // import module of the checkpoint
	CheckpointName   = "checkpoint"           // import name of the checkpoint, type () -> ()
	reservedPrefix   = CheckpointModule + "." // with CheckpointModule itself the reserved space
)

// DefaultTableElements is the total number of table elements a module may have when Options do not say: 8 MiB of pointers on a
// 64-bit host. The largest tables of real modules (one element per function) hold some ten thousands.
const DefaultTableElements = 1 << 20

// Options of a rewriting. The zero value is what production uses.
type Options struct {
	// TableElements bounds the number of elements of all own tables of the module together, now and after any table.grow, because
	// a memory limit does not count them. A module that declares more is refused; growth beyond it fails as the specification
	// allows (table.grow returns -1). Defaults to [DefaultTableElements].
	TableElements uint32

	// DropNames leaves the function names out, so that the runtime keeps none: traps then show indices only. Defaults to keeping
	// them.
	DropNames bool
}

func (o Options) withDefaults() Options {
	if o.TableElements == 0 {
		o.TableElements = DefaultTableElements
	}
	return o
}

// CacheKey names the options and the version of the rewriter: with the digest of the input it identifies the output.
func (o Options) CacheKey() string {
	o = o.withDefaults()
	return fmt.Sprintf("meter%d/tables=%d/names=%t", Version, o.TableElements, !o.DropNames)
}

// Rewrite decodes module completely and returns it with metering added. The same module and options always give the same
// bytes. It is safe for concurrent use, keeps no reference to module and never needs more than a small multiple of its length.
//
// Accepted is WebAssembly 1.0 and 2.0 (SIMD included) with tail calls and extended constant expressions. Everything else is
// refused with an [*Error]. Types of operands are not checked: an ill-typed module stays ill-typed, and the runtime refuses it.
func Rewrite(module []byte, options Options) (Module, error) {
	options = options.withDefaults()
	d := newDecoder(module, options)
	if err := d.decode(); err != nil {
		return Module{}, err
	}
	e := newEncoder(d)
	out := e.encode()
	if e.err != nil {
		return Module{}, e.err
	}
	return Module{
		Bytes:    slices.Clip(out),
		Imports:  d.imports,
		Exports:  d.exports,
		Memories: d.memories,
		Checks:   e.checks,
		Options:  options,
	}, nil
}
