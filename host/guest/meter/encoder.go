package meter

import (
	"encoding/binary"
	"math"
)

// encoder writes the rewritten module: it copies the original and replaces or adds what has to change. For that it reads the
// sections a second time through the decoder, which tells it where the indices are.
type encoder struct {
	d      *decoder
	out    []byte
	mark   int // the original is copied up to here
	checks int
	err    error

	thunks  []uint32 // imported functions that become values, each of which gets a function of our own in front
	thunkOf []uint32 // per imported function, its thunk's index
	body    body
}

func newEncoder(d *decoder) *encoder {
	e := &encoder{d: d, thunkOf: make([]uint32, d.importedFuncs)}
	for f := range d.importedFuncs {
		if d.referenced[f] {
			e.thunkOf[f] = uint32(len(d.funcs) + 1 + len(e.thunks))
			e.thunks = append(e.thunks, uint32(f))
		}
	}
	return e
}

// Indices of what is added. The types and globals go behind the original ones, the checkpoint behind the imported functions.
func (e *encoder) checkpointType() uint32 { return uint32(len(e.d.types)) }
func (e *encoder) counter() uint32        { return uint32(e.d.globals) }
func (e *encoder) checkpoint() uint32     { return uint32(e.d.importedFuncs) }

// callIndex is the new index of an original function.
func (e *encoder) callIndex(f uint32) uint32 {
	if int(f) < e.d.importedFuncs {
		return f
	}
	return f + 1
}

// referenceIndex is the new index of an original function where it becomes a value. An imported one is replaced by its thunk,
// which charges for the host call that whoever calls the value cannot foresee.
func (e *encoder) referenceIndex(f uint32) uint32 {
	if int(f) < e.d.importedFuncs {
		return e.thunkOf[f]
	}
	return f + 1
}

func (e *encoder) encode() []byte {
	e.out = make([]byte, 0, len(e.d.b)+e.d.inserts+64*len(e.thunks)+256)
	e.out = append(e.out, e.d.b[:8]...)
	e.d.locals = 0
	for _, id := range sectionOrder {
		e.encodeSection(id)
	}
	e.d.rewrite = nil
	if !e.d.options.DropNames {
		e.encodeNames()
	}
	e.err = e.d.err
	return e.out
}

func (e *encoder) encodeSection(id int) {
	s := e.d.spans[id]
	switch id {
	case secType, secImport, secGlobal, secExport: // always something to add
	case secFunction, secCode:
		if !s.present() && len(e.thunks) == 0 {
			return
		}
	default:
		if !s.present() {
			return
		}
	}
	e.d.pos, e.d.end, e.mark = s.start, s.end, s.start
	e.d.rewrite = e
	e.out = append(e.out, byte(id))
	e.sized(func() { e.encodeContent(id) })
}

func (e *encoder) encodeContent(id int) {
	switch id {
	case secType:
		e.vector(1)
		e.add(0x60, 0, 0)
	case secImport:
		e.vector(1)
		e.string(CheckpointModule)
		e.string(CheckpointName)
		e.add(byte(Func))
		e.u32(e.checkpointType())
	case secFunction:
		e.vector(len(e.thunks))
		for _, f := range e.thunks {
			e.u32(e.d.funcs[f])
		}
	case secTable:
		e.encodeTables()
	case secGlobal:
		e.encodeGlobals()
	case secExport:
		e.encodeExports()
	case secStart:
		e.u32(e.callIndex(e.d.u32()))
	case secElement:
		e.d.readElements()
		e.copyTo(e.d.end)
	case secCode:
		e.encodeCode()
	default:
		e.copyTo(e.d.end)
	}
}

// begin writes the count of a vector that gets more elements, and leaves the decoder at its first element.
func (e *encoder) begin(more int) int {
	n := 0
	if e.d.left() > 0 {
		n = int(e.d.u32())
	}
	e.u32(uint32(n + more))
	e.mark = e.d.pos
	return n
}

// vector copies a vector that gets more elements, which the caller adds.
func (e *encoder) vector(more int) {
	e.begin(more)
	e.copyTo(e.d.end)
}

// encodeTables writes the own tables with a maximum that keeps all of them together within the limit.
func (e *encoder) encodeTables() {
	own := e.d.tables[e.d.importedTables:]
	room := e.d.options.TableElements
	for _, t := range own {
		room -= t.min
	}
	e.u32(uint32(len(own)))
	for _, t := range own {
		most := min(t.max, t.min+room/uint32(len(own)))
		if e.d.options.TableElements == math.MaxUint32 {
			most = t.max
		}
		e.add(byte(t.elem))
		if t.hasMax || most != math.MaxUint32 {
			e.add(1)
			e.u32(t.min)
			e.u32(most)
		} else {
			e.add(0)
			e.u32(t.min)
		}
	}
}

func (e *encoder) encodeGlobals() {
	for range e.begin(1) {
		e.d.globalType()
		e.d.constant(e.d.globals)
	}
	e.copyTo(e.d.end)
	e.add(byte(I64), 1, opI64Const, 0, opEnd)
}

func (e *encoder) encodeExports() {
	for range e.begin(1) {
		e.d.skip(int(e.d.u32()))
		if Kind(e.d.byte()) == Func {
			e.d.reference()
		} else {
			e.d.u32()
		}
	}
	e.copyTo(e.d.end)
	e.string(CounterExport)
	e.add(byte(Global))
	e.u32(e.counter())
}

// copyTo copies the original up to pos.
func (e *encoder) copyTo(pos int) {
	e.out = append(e.out, e.d.b[e.mark:pos]...)
	e.mark = pos
}

// replace copies the original up to start and writes index instead of what is there up to end.
func (e *encoder) replace(start, end int, index uint32) {
	e.copyTo(start)
	e.u32(index)
	e.mark = end
}

func (e *encoder) add(b ...byte) { e.out = append(e.out, b...) }

func (e *encoder) string(s string) {
	e.u32(uint32(len(s)))
	e.out = append(e.out, s...)
}

func (e *encoder) u32(v uint32) { e.out = binary.AppendUvarint(e.out, uint64(v)) }

func (e *encoder) s64(v int64) {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			e.add(b)
			return
		}
		e.add(b | 0x80)
	}
}

// sized writes what f writes, with its length in front.
func (e *encoder) sized(f func()) {
	start := len(e.out)
	e.add(0, 0, 0, 0, 0)
	f()
	content := e.out[start+binary.MaxVarintLen32:]
	n := binary.PutUvarint(e.out[start:], uint64(len(content)))
	copy(e.out[start+n:], content)
	e.out = e.out[:start+n+len(content)]
}
