package meter

import (
	"errors"
	"fmt"
)

// Why a module is refused; errors.Is finds them in the error of Rewrite.
var (
	// ErrMalformed: the bytes are no WebAssembly module, or one that contradicts itself.
	ErrMalformed = errors.New("malformed module")
	// ErrUnsupported: a proposal outside WebAssembly 2.0, tail calls and extended constants, such as threads or exceptions.
	ErrUnsupported = errors.New("unsupported feature")
	// ErrIndex: an index names nothing in the module.
	ErrIndex = errors.New("index out of range")
	// ErrReserved: the module uses a name that only the rewriter may use, or was rewritten before.
	ErrReserved = errors.New("reserved name")
	// ErrTooLarge: a limit that protects the host, such as the number of locals of a function, is exceeded.
	ErrTooLarge = errors.New("limit exceeded")
)

// Error says where and why a module was refused.
type Error struct {
	Kind    error  // one of the Err… values of this package
	Section string // name of the section, "header" for what is outside of all
	Offset  int    // position in the module, in bytes
	Reason  string // what was found there
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("%v: %s (%s section, offset %#x)", e.Kind, e.Reason, e.Section, e.Offset)
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }
