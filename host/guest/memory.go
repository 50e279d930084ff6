package guest

import (
	"github.com/tetratelabs/wazero/experimental"
)

// linear is the memory of one instance. Where the system allows it, its whole limit is reserved once, so that growing
// moves nothing; the system gives pages as they are touched.
type linear struct {
	limit   uint64
	refused bool // a growth beyond limit was refused in this attempt
	buf     []byte
	mapped  bool
}

// Allocate implements experimental.MemoryAllocator. An instance has one memory.
func (l *linear) Allocate(_, most uint64) experimental.LinearMemory {
	if reserved, ok := reserve(min(most, l.limit)); ok {
		l.buf, l.mapped = reserved, true
	}
	return l
}

// Reallocate implements experimental.LinearMemory.
func (l *linear) Reallocate(size uint64) []byte {
	if size > l.limit {
		l.refused = true
		return nil
	}
	if l.mapped {
		return l.buf[:size:size]
	}
	if uint64(cap(l.buf)) < size {
		grown := make([]byte, len(l.buf), min(max(size, 2*uint64(cap(l.buf))), l.limit))
		copy(grown, l.buf)
		l.buf = grown
	}
	l.buf = l.buf[:size]
	return l.buf
}

// Free implements experimental.LinearMemory.
func (l *linear) Free() {
	if l.mapped {
		release(l.buf)
	}
	l.buf, l.mapped = nil, false
}
