package meter

// instruction is one decoded instruction.
type instruction struct {
	opcode
	prefix uint8  // opMisc, opVector or 0
	code   uint8  // opcode, after the prefix where there is one
	start  int    // position of the opcode
	at     int    // position of the immediates
	index  uint32 // of the function, for immFunc and immFuncRef
}

// scope is what the indices of instructions refer to besides the module: the function they are in.
type scope struct {
	locals uint32
	depth  int // number of blocks open, the function's own included
}

// instruction reads the next instruction and checks every index in it.
func (d *decoder) instruction(s scope) instruction {
	i := instruction{start: d.pos}
	i.code = d.byte()
	switch i.code {
	case opMisc:
		code := d.u32()
		i.prefix, i.code = opMisc, uint8(code)
		if code < 256 {
			i.opcode = miscOps[code]
		}
	case opVector:
		i.prefix, i.code = opVector, d.vectorOpcode()
		i.opcode = vectorOps[i.code]
	default:
		i.opcode = plainOps[i.code]
	}
	i.at = d.pos
	switch {
	case d.err != nil:
	case i.imm == immUnknown:
		d.fail(ErrUnsupported, i.start, "opcode % x", d.b[i.start:d.pos])
	case i.imm != immNone:
		d.immediates(&i, s)
	}
	return i
}

// vectorOpcode reads the number after the SIMD prefix. Only its shortest form is accepted: runtimes have been seen to read one
// byte only, after which a longer form would make them decode other instructions than the ones metered here.
func (d *decoder) vectorOpcode() uint8 {
	start := d.pos
	code := d.u32()
	if d.err != nil {
		return 0
	}
	length := 1
	if code >= 0x80 {
		length = 2
	}
	if code > 0xff || d.pos-start != length {
		d.fail(ErrUnsupported, start-1, "SIMD opcode %#x in %d bytes", code, d.pos-start)
		return 0
	}
	return uint8(code)
}

func (d *decoder) immediates(i *instruction, s scope) {
	switch i.imm {
	case immLocal:
		d.index(int(s.locals), "local")
	case immGlobal:
		d.index(d.globals, "global")
	case immI32:
		d.signed(32)
	case immI64:
		d.signed(64)
	case immAccess, immAccessLn:
		d.access(i.imm == immAccessLn)
	case immLabel:
		d.index(s.depth, "label")
	case immLabels:
		for n := d.count(1, noLimit, "labels"); n >= 0 && d.err == nil; n-- { // one more: the default
			d.index(s.depth, "label")
		}
	case immFunc:
		i.index = d.index(len(d.funcs), "function")
	case immFuncRef:
		i.index = d.reference()
	case immBlock:
		d.blockType()
	case immFour:
		d.skip(4)
	case immEight:
		d.skip(8)
	case immSixteen:
		d.skip(16)
	case immShuffle:
		for range 16 {
			d.lane(32)
		}
	case immLane:
		d.lane(lanes(i.code))
	default:
		d.rareImmediates(i)
	}
}

func (d *decoder) rareImmediates(i *instruction) {
	switch i.imm {
	case immIndirect:
		d.index(len(d.types), "type")
		d.index(len(d.tables), "table")
	case immTypes:
		if n := d.byte(); n != 1 && d.err == nil {
			d.fail(ErrUnsupported, i.at, "select with %d types", n)
		}
		d.valueType()
	case immTable:
		d.index(len(d.tables), "table")
	case immMemory:
		d.memoryIndex()
	case immHeap:
		d.refType()
	case immMemInit:
		d.dataIndex()
		d.memoryIndex()
	case immData:
		d.dataIndex()
	case immTwoMem:
		d.memoryIndex()
		d.memoryIndex()
	case immTableInit:
		d.index(d.elements, "element segment")
		d.index(len(d.tables), "table")
	case immElem:
		d.index(d.elements, "element segment")
	case immTwoTables:
		d.index(len(d.tables), "table")
		d.index(len(d.tables), "table")
	}
}

// access reads the immediates of a load or store. How far the alignment may go depends on the width: left to the runtime.
func (d *decoder) access(lane bool) {
	start := d.pos
	if align := d.u32(); d.err == nil && align > 31 {
		d.fail(ErrUnsupported, start, "alignment 2^%d, or a memory index", align)
	}
	d.u32()
	if lane {
		d.lane(16)
	}
	d.hasMemory(start)
}

func (d *decoder) memoryIndex() {
	d.zero("memory index")
	d.hasMemory(d.pos)
}

func (d *decoder) hasMemory(pos int) {
	if d.err == nil && len(d.memories) == 0 {
		d.fail(ErrIndex, pos, "memory 0 of 0")
	}
}

func (d *decoder) dataIndex() {
	if d.dataCount < 0 {
		d.fail(ErrMalformed, d.pos, "data segment used without a data count section")
		return
	}
	d.index(d.dataCount, "data segment")
}

// blockType reads 0x40, a value type or the index of a type.
func (d *decoder) blockType() {
	if d.left() > 0 && (d.b[d.pos] == 0x40 || ValueType(d.b[d.pos]).String() != "?") {
		d.pos++
		return
	}
	start := d.pos
	if t := d.signed(33); d.err == nil && (t < 0 || t >= int64(len(d.types))) {
		d.fail(ErrIndex, start, "block type %d of %d", t, len(d.types))
	}
}

func (d *decoder) lane(n byte) {
	if l := d.byte(); d.err == nil && l >= n {
		d.fail(ErrIndex, d.pos-1, "lane %d of %d", l, n)
	}
}

// lanes is the number of lanes of an extract_lane or replace_lane instruction.
func lanes(code uint8) byte {
	switch {
	case code <= 0x17:
		return 16 // i8x16
	case code <= 0x1a:
		return 8 // i16x8
	case code <= 0x1c, code == 0x1f, code == 0x20:
		return 4 // i32x4, f32x4
	default:
		return 2 // i64x2, f64x2
	}
}
