package meter

import "math"

func (e *encoder) encodeCode() {
	e.begin(len(e.thunks))
	for f := e.d.importedFuncs; f < len(e.d.funcs) && e.d.err == nil; f++ {
		e.d.rewrite = nil
		e.d.readBody(f, &e.body)
		next := e.d.pos
		e.d.rewrite = e
		e.sized(func() { e.encodeBody(f, &e.body) })
		e.d.pos = next
	}
	for _, f := range e.thunks {
		e.sized(func() { e.encodeThunk(f) })
	}
}

// encodeBody copies a body, with a check where each stretch begins and a charge in front of each bulk instruction.
func (e *encoder) encodeBody(f int, b *body) {
	end := e.d.end
	e.d.pos, e.d.end, e.mark = b.start, b.end, b.start
	if b.bulk {
		e.u32(e.d.u32() + 1)
		e.mark = e.d.pos
		e.copyTo(b.code)
		e.add(1, byte(I32))
	}
	checks := b.stretches
	if e.d.leaf[f] > 0 || checks[0].cost == 0 { // its callers pay
		checks = checks[1:]
	}
	e.d.pos = b.code
	anywhere := scope{locals: b.locals, depth: math.MaxInt32} // labels were checked before
	for e.d.err == nil && e.d.left() > 0 {
		for ; len(checks) > 0 && checks[0].pos == e.d.pos; checks = checks[1:] {
			e.copyTo(e.d.pos)
			e.charge(checks[0].cost)
		}
		i := e.d.instruction(anywhere)
		switch {
		case i.imm == immFunc:
			e.replace(i.at, e.d.pos, e.callIndex(i.index))
		case i.class == classBulk:
			e.copyTo(i.start)
			e.chargeLength(b.locals)
		}
	}
	e.copyTo(e.d.pos)
	e.d.end = end
}

// encodeThunk writes a function that charges for a host call, makes it and returns its results.
func (e *encoder) encodeThunk(f uint32) {
	e.add(0) // locals
	e.charge(classCall.units() + classHost.units())
	for i := range e.d.types[e.d.funcs[f]].Params {
		e.add(opLocalGet)
		e.u32(uint32(i))
	}
	e.add(opCall)
	e.u32(f)
	e.add(opEnd)
}

// charge subtracts cost from the counter and checks it.
func (e *encoder) charge(cost int64) {
	e.add(opGlobalGet)
	e.u32(e.counter())
	e.add(opI64Const)
	e.s64(cost)
	e.add(opI64Sub)
	e.check()
}

// chargeLength charges for a bulk instruction by the length, which is on top of the stack and stays there.
func (e *encoder) chargeLength(spare uint32) {
	e.add(opLocalTee)
	e.u32(spare)
	e.add(opGlobalGet)
	e.u32(e.counter())
	e.add(opLocalGet)
	e.u32(spare)
	e.add(opI64ExtendI32, opI64Const, bulkShift, opI64ShrU, opI64Sub)
	e.check()
}

// check stores the counter from the stack and calls the checkpoint when it is negative. It leaves the stack as it found it.
func (e *encoder) check() {
	e.checks++
	e.add(opGlobalSet)
	e.u32(e.counter())
	e.add(opGlobalGet)
	e.u32(e.counter())
	e.add(opI64Const, 0, opI64LtS, opIf, 0x40, opCall)
	e.u32(e.checkpoint())
	e.add(opEnd)
}
