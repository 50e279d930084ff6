package meter

import "math"

const functionNames = 1 // number of the subsection

// encodeNames writes the function names anew, for readable traps. A name section that cannot be read has no effect, as the
// specification wants it.
func (e *encoder) encodeNames() {
	s := e.d.names
	if !s.present() {
		return
	}
	r := reader{b: e.d.b, pos: s.start, end: s.end}
	for r.err == nil && r.left() > 0 {
		id := r.byte()
		size := r.count(1, math.MaxUint32, "")
		list := reader{b: r.b, pos: r.pos, end: r.pos + size}
		r.pos += size
		if id != functionNames || r.err != nil {
			continue
		}
		if e.validNames(list) {
			e.add(secCustom)
			e.sized(func() {
				e.string("name")
				e.add(functionNames)
				e.sized(func() { e.encodeNameMap(list) })
			})
		}
		return
	}
}

func (e *encoder) validNames(r reader) bool {
	next := uint32(0)
	for range r.count(2, math.MaxUint32, "") {
		f := r.u32()
		if f < next || int64(f) >= int64(len(e.d.funcs)) {
			return false
		}
		next = f + 1
		r.name()
	}
	return r.err == nil && r.left() == 0
}

func (e *encoder) encodeNameMap(r reader) {
	n := r.u32()
	e.u32(n)
	for range n {
		e.u32(e.callIndex(r.u32()))
		start := r.pos
		size := int(r.u32())
		r.pos += size
		e.out = append(e.out, e.d.b[start:r.pos]...)
	}
}
