package meter

import "math"

// reference reads the index of a function in a place where it becomes a value that may be called from anywhere: exports,
// element segments, ref.func.
func (d *decoder) reference() uint32 {
	start := d.pos
	f := d.index(len(d.funcs), "function")
	if d.err != nil {
		return 0
	}
	d.referenced[f] = true
	if d.rewrite != nil {
		d.rewrite.replace(start, d.pos, d.rewrite.referenceIndex(f))
	}
	return f
}

// constant reads a constant expression, in which the first globals are visible.
func (d *decoder) constant(globals int) {
	for d.err == nil {
		start := d.pos
		switch op := d.byte(); op {
		case opEnd:
			return
		case opI32Const:
			d.signed(32)
		case opI64Const:
			d.signed(64)
		case opF32Const:
			d.skip(4)
		case opF64Const:
			d.skip(8)
		case opGlobalGet:
			d.index(globals, "global")
		case opRefNull:
			d.refType()
		case opRefFunc:
			d.reference()
		case opI32Add, opI32Sub, opI32Mul, opI64Add, opI64Sub, opI64Mul:
		case opVector:
			if d.vectorOpcode() != vecConst && d.err == nil {
				d.fail(ErrUnsupported, start, "SIMD instruction in a constant expression")
			}
			d.skip(16)
		default:
			d.fail(ErrUnsupported, start, "opcode %#x in a constant expression", op)
		}
	}
}

// readElements reads the element segments, whose flags say: bit 0 no place (passive or declarative), bit 1 an explicit table or,
// without a place, declarative, bit 2 expressions instead of function indices.
func (d *decoder) readElements() {
	n := d.count(2, noLimit, "element segments")
	for i := 0; i < n && d.err == nil; i++ {
		start := d.pos
		flags := d.u32()
		if d.err == nil && flags > 7 {
			d.fail(ErrUnsupported, start, "element segment flags %d", flags)
		}
		placed, explicit, expressions := flags&1 == 0, flags&2 != 0, flags&4 != 0
		if placed && explicit {
			d.index(len(d.tables), "table")
		} else if placed && len(d.tables) == 0 {
			d.fail(ErrIndex, start, "table 0 of 0")
		}
		if placed {
			d.constant(d.globals)
		}
		if flags&3 != 0 {
			d.elementKind(expressions)
		}
		d.elementItems(expressions)
	}
	d.elements = n
}

func (d *decoder) elementKind(expressions bool) {
	if expressions {
		d.refType()
	} else {
		d.zero("element kind")
	}
}

func (d *decoder) elementItems(expressions bool) {
	n := d.count(1, noLimit, "elements")
	for i := 0; i < n && d.err == nil; i++ {
		if expressions {
			d.constant(d.globals)
		} else {
			d.reference()
		}
	}
}

func (d *decoder) readData() {
	start := d.pos
	n := d.count(2, noLimit, "data segments")
	if d.err == nil && d.dataCount >= 0 && d.dataCount != n {
		d.fail(ErrMalformed, start, "%d data segments, but a data count of %d", n, d.dataCount)
	}
	for i := 0; i < n && d.err == nil; i++ {
		at := d.pos
		flags := d.u32()
		switch {
		case flags > 2:
			d.fail(ErrUnsupported, at, "data segment flags %d", flags)
		case flags == 2:
			d.index(len(d.memories), "memory")
		case flags == 0 && len(d.memories) == 0:
			d.fail(ErrIndex, at, "memory 0 of 0")
		}
		if flags != 1 {
			d.constant(d.globals)
		}
		d.skip(d.count(1, math.MaxUint32, "bytes of data"))
	}
}
