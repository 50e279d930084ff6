package guest

import (
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// linear is the memory of one instance. Where the system allows it, its whole limit is reserved once, so that growing
// moves nothing; the system gives pages as they are touched.
type linear struct {
	limit   uint64
	refused bool // a growth beyond limit was refused in this attempt
	buf     []byte
	used    uint64  // bytes of a reserved buf that the guest ever had
	spare   *region // where a reserved buf may be left for the next instance; nil: nowhere
	mapped  bool
}

// region keeps one reserved memory of a plugin for its next instance: clearing it costs less than having the system give
// the same pages again, which is most of what a fresh Go instance costs.
type region struct{ kept atomic.Pointer[leftover] }

type leftover struct {
	buf  []byte
	used uint64
}

// maxSpare is how much a memory may have used to be kept.
const maxSpare = 16 << 20

// Allocate implements experimental.MemoryAllocator. An instance has one memory.
func (l *linear) Allocate(_, most uint64) experimental.LinearMemory {
	size := min(most, l.limit)
	if kept := l.spare.take(size); kept != nil {
		clear(kept.buf[:kept.used])
		l.buf, l.mapped = kept.buf, true
	} else if fresh, ok := reserve(size); ok {
		l.buf, l.mapped = fresh, true
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
		l.used = max(l.used, size)
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
	if l.mapped && !l.spare.leave(l.buf, l.used) {
		release(l.buf)
	}
	l.buf, l.mapped = nil, false
}

// take returns the kept memory when it has that size, nil otherwise.
func (r *region) take(size uint64) *leftover {
	if r == nil {
		return nil
	}
	kept := r.kept.Swap(nil)
	if kept != nil && uint64(len(kept.buf)) != size {
		release(kept.buf)
		return nil
	}
	return kept
}

// leave keeps buf and reports whether it did.
func (r *region) leave(buf []byte, used uint64) bool {
	return r != nil && used <= maxSpare && r.kept.CompareAndSwap(nil, &leftover{buf, used})
}

func (r *region) free() {
	if kept := r.kept.Swap(nil); kept != nil {
		release(kept.buf)
	}
}
