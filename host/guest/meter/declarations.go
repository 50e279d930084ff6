package meter

import "strings"

func (d *decoder) readTypes() {
	n := d.count(3, maxTypes, "types")
	d.types = make([]Signature, 0, n)
	for range n {
		if form := d.byte(); d.err == nil && form != 0x60 {
			d.fail(ErrUnsupported, d.pos-1, "type form %#x is no function type", form)
		}
		params := d.valueTypes()
		results := d.valueTypes()
		if d.err != nil {
			return
		}
		d.types = append(d.types, Signature{params, results})
	}
}

func (d *decoder) valueTypes() []ValueType {
	n := d.count(1, maxParams, "parameters or results")
	if n == 0 {
		return nil
	}
	types := make([]ValueType, n)
	for i := range types {
		types[i] = d.valueType()
	}
	return types
}

func (d *decoder) readImports() {
	n := d.count(4, maxImports, "imports")
	d.imports = make([]Import, 0, n)
	for range n {
		start := d.pos
		i := Import{Module: d.name(), Name: d.name(), Kind: Kind(d.byte())}
		if d.err == nil && reserved(i.Module) {
			d.fail(ErrReserved, start, "import module %q", i.Module)
		}
		d.readImported(&i)
		if d.err != nil {
			return
		}
		d.imports = append(d.imports, i)
	}
}

func (d *decoder) readImported(i *Import) {
	if d.err != nil {
		return
	}
	switch i.Kind {
	case Func:
		t := d.index(len(d.types), "type")
		if d.err == nil {
			i.Func = d.types[t]
			d.funcs = append(d.funcs, t)
			d.referenced = append(d.referenced, false)
			d.importedFuncs++
		}
	case Table:
		d.tables = append(d.tables, d.tableType())
		d.importedTables++
	case Mem:
		m := d.memoryType()
		m.Imported, m.Module, m.Name = true, i.Module, i.Name
		d.memories = append(d.memories, m)
		d.oneMemory()
	case Global:
		d.globalType()
		d.importedGlobals++
		d.globals++
	default:
		d.fail(ErrUnsupported, d.pos-1, "import kind %d", i.Kind)
	}
}

func reserved(name string) bool {
	return name == CheckpointModule || strings.HasPrefix(name, reservedPrefix)
}

func (d *decoder) readFunctions() {
	n := d.count(1, uint32(maxFunctions-d.importedFuncs), "functions")
	own := make([]uint32, n)
	for i := range own {
		own[i] = d.index(len(d.types), "type")
	}
	d.funcs = append(d.funcs, own...)
	d.referenced = append(d.referenced, make([]bool, n)...)
}

func (d *decoder) readTables() {
	start := d.pos
	n := d.count(3, maxTables, "tables")
	total := uint64(0)
	for range n {
		t := d.tableType()
		total += uint64(t.min)
		d.tables = append(d.tables, t)
	}
	if d.err == nil && total > uint64(d.options.TableElements) {
		d.fail(ErrTooLarge, start, "%d table elements, at most %d are allowed", total, d.options.TableElements)
	}
}

func (d *decoder) tableType() table {
	t := table{elem: d.refType()}
	t.min, t.max, t.hasMax = d.limits(noLimit)
	return t
}

func (d *decoder) readMemories() {
	n := d.count(2, noLimit, "memories")
	for range n {
		d.memories = append(d.memories, d.memoryType())
		d.oneMemory()
		if d.err != nil {
			return
		}
	}
}

func (d *decoder) memoryType() Memory {
	var m Memory
	m.Min, m.Max, m.HasMax = d.limits(maxPages)
	return m
}

func (d *decoder) oneMemory() {
	if d.err == nil && len(d.memories) > 1 {
		d.fail(ErrUnsupported, d.pos, "more than one memory")
	}
}

// limits reads the size of a table or memory. Without a maximum, max is bound.
func (d *decoder) limits(bound uint32) (lo, hi uint32, hasMax bool) {
	start := d.pos
	flags := d.byte()
	if d.err == nil && flags > 1 {
		d.fail(ErrUnsupported, start, "limits flags %#x: shared or 64-bit", flags)
	}
	lo, hi = d.u32(), bound
	if hasMax = flags == 1; hasMax {
		hi = d.u32()
	}
	if d.err == nil && (lo > hi || hi > bound) {
		d.fail(ErrMalformed, start, "limits %d to %d, allowed up to %d", lo, hi, bound)
	}
	return lo, hi, hasMax
}

func (d *decoder) readGlobals() {
	n := d.count(4, noLimit, "globals")
	for i := 0; i < n && d.err == nil; i++ {
		d.globalType()
		d.constant(d.importedGlobals + i)
	}
	d.globals = d.importedGlobals + n
}

func (d *decoder) globalType() {
	d.valueType()
	if mut := d.byte(); d.err == nil && mut > 1 {
		d.fail(ErrMalformed, d.pos-1, "mutability %d", mut)
	}
}

func (d *decoder) readExports() {
	n := d.count(3, maxExports, "exports")
	d.exports = make([]Export, 0, n)
	for range n {
		start := d.pos
		e := Export{Name: d.name()}
		if d.err == nil && reserved(e.Name) {
			d.fail(ErrReserved, start, "export %q", e.Name)
		}
		e.Kind = Kind(d.byte())
		d.readExported(&e)
		if d.err != nil {
			return
		}
		d.exports = append(d.exports, e)
	}
}

func (d *decoder) readExported(e *Export) {
	if d.err != nil {
		return
	}
	switch e.Kind {
	case Func:
		f := d.reference()
		if d.err == nil {
			e.Func = d.types[d.funcs[f]]
		}
	case Table:
		d.index(len(d.tables), "table")
	case Mem:
		d.index(len(d.memories), "memory")
	case Global:
		d.index(d.globals, "global")
	default:
		d.fail(ErrUnsupported, d.pos-1, "export kind %d", e.Kind)
	}
}
