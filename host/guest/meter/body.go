package meter

// block is an open block, loop, if or the function itself while its body is read.
type block struct {
	op      uint8
	stretch int // index of the stretch that is charged for the next instruction in it
}

// stretch is code that one check pays for: whoever runs any of it has passed the check before, and runs each instruction of it
// at most once before passing the check again.
type stretch struct {
	pos  int // where the check is: before the instruction at this position
	cost int64
}

// body is what is known about one function after reading it. It is reused from function to function.
type body struct {
	scope
	start, end int // of the code in the module, without its size
	code       int // position of the first instruction, behind the locals
	blocks     []block
	stretches  []stretch // in the order of their positions; the first is the function entry
	calls      bool
	loops      int
	bulk       bool // has bulk instructions, which need a spare local
}

// readCode reads all bodies once, to check them and to find the leaf functions.
func (d *decoder) readCode() {
	start := d.pos
	n := d.count(3, noLimit, "bodies")
	if own := len(d.funcs) - d.importedFuncs; d.err == nil && n != own {
		d.fail(ErrMalformed, start, "%d bodies for %d functions", n, own)
		return
	}
	costs := make([]int32, len(d.funcs))
	var b body
	for f := d.importedFuncs; f < len(d.funcs) && d.err == nil; f++ {
		d.readBody(f, &b)
		if !b.calls && b.loops == 0 && len(b.stretches) == 1 && b.stretches[0].cost <= maxLeaf {
			costs[f] = int32(b.stretches[0].cost)
		}
		d.inserts += 8 + 34*len(b.stretches) // bytes of a check at most, and of longer counts
		if b.bulk {
			d.inserts += 8
		}
	}
	d.leaf = costs
	for f, cost := range costs {
		if cost > maxSharedLeaf && d.referenced[f] {
			costs[f] = 0
		}
	}
}

// readBody reads the next body, of function f, and prices it. Leaf functions are known from the second time on.
func (d *decoder) readBody(f int, b *body) {
	start := d.pos
	size := d.count(1, noLimit, "bytes of a body")
	if d.err == nil && size > maxBody {
		d.fail(ErrTooLarge, start, "body of %d bytes, at most %d are allowed", size, maxBody)
	}
	if d.err != nil {
		return
	}
	end := d.end
	*b = body{start: d.pos, end: d.pos + size, blocks: b.blocks[:0], stretches: b.stretches[:0]}
	d.end = b.end
	b.locals = d.readLocals(len(d.types[d.funcs[f]].Params))
	b.code = d.pos
	b.blocks = append(b.blocks, block{op: opBlock})
	b.stretches = append(b.stretches, stretch{pos: b.code})
	for d.err == nil && len(b.blocks) > 0 {
		b.depth = len(b.blocks)
		d.price(b, d.instruction(b.scope))
	}
	if d.err == nil && d.pos != b.end {
		d.fail(ErrMalformed, d.pos, "%d bytes behind the end of the body", b.end-d.pos)
	}
	d.end = end
}

// readLocals returns the number of locals, parameters included.
func (d *decoder) readLocals(params int) uint32 {
	total := uint64(0)
	for range d.count(2, noLimit, "groups of locals") {
		start := d.pos
		total += uint64(d.u32())
		d.valueType()
		if d.err == nil && (total > maxLocals || uint64(d.locals)+total > maxAllLocals) {
			d.fail(ErrTooLarge, start, "%d locals, at most %d are allowed in a function and %d in a module", total, maxLocals, maxAllLocals)
		}
	}
	d.locals += int(total)
	return uint32(total) + uint32(params)
}

// price adds an instruction to the stretch that pays for it and follows the blocks.
func (d *decoder) price(b *body, i instruction) {
	top := &b.blocks[len(b.blocks)-1]
	b.charge(top, i, d.cost(i))
	switch {
	case i.prefix == opMisc:
		b.bulk = b.bulk || i.class == classBulk
		if i.class == classBulk && d.leaf == nil {
			d.inserts += 48
		}
	case i.prefix == opVector:
	case i.imm == immFunc, i.imm == immIndirect:
		b.calls = true
		d.inserts++
	case i.imm == immFuncRef:
		d.inserts++
	case i.imm == immBlock:
		d.open(b, i)
	case i.code == opElse:
		d.alternative(b, i)
	case i.code == opEnd:
		b.blocks = b.blocks[:len(b.blocks)-1]
	}
}

// cost is what one instruction costs; a call also bears the callee where that has no check of its own.
func (d *decoder) cost(i instruction) int64 {
	switch {
	case i.imm != immFunc:
		return i.class.units()
	case int(i.index) < d.importedFuncs:
		return i.class.units() + classHost.units()
	case d.leaf != nil:
		return i.class.units() + int64(d.leaf[i.index])
	}
	return i.class.units()
}

// charge begins another stretch where the current one would become too long. Within a block that is sound without looking at
// branches: what follows in the block is reached through the new check only, and behind the end of the block the stretch around
// it goes on.
func (b *body) charge(top *block, i instruction, cost int64) {
	s := &b.stretches[top.stretch]
	if s.cost > 0 && cost > 0 && s.cost+cost > maxStretch {
		top.stretch = len(b.stretches)
		b.stretches = append(b.stretches, stretch{pos: i.start})
		s = &b.stretches[top.stretch]
	}
	s.cost += cost
}

func (d *decoder) open(b *body, i instruction) {
	if len(b.blocks) >= maxNesting {
		d.fail(ErrTooLarge, i.start, "blocks nested deeper than %d", maxNesting)
		return
	}
	inner := block{op: i.code, stretch: b.blocks[len(b.blocks)-1].stretch}
	if i.code == opLoop {
		if b.loops++; b.loops > maxLoops {
			d.fail(ErrTooLarge, i.start, "more than %d loops in a function", maxLoops)
		}
		inner.stretch = len(b.stretches)
		b.stretches = append(b.stretches, stretch{pos: d.pos, cost: 1})
	}
	b.blocks = append(b.blocks, inner)
}

// alternative handles else: the other branch goes on with the stretch around the if, because a check within the first branch
// was not passed.
func (d *decoder) alternative(b *body, i instruction) {
	n := len(b.blocks)
	if b.blocks[n-1].op != opIf {
		d.fail(ErrMalformed, i.start, "else without if")
		return
	}
	b.blocks[n-1] = block{op: opElse, stretch: b.blocks[n-2].stretch}
}
