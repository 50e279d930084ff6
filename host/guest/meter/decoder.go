package meter

import "bytes"

// Limits that protect the host where the number of bytes alone does not. Those without another reason follow the limits that
// the engines of the browsers agreed on.
const (
	maxTypes      = 100_000
	maxParams     = 1_000
	maxImports    = 10_000    // the summary keeps a record of each
	maxExports    = 100_000   // likewise
	maxFunctions  = 1_000_000 // imported and own
	maxTables     = 100
	maxPages      = 65_536
	maxBody       = 7_654_321 // bytes of one function
	maxLocals     = 50_000    // of one function: runtimes expand "n locals of type t" into n records
	maxAllLocals  = 5_000_000 // of all functions together, for the same reason
	maxLoops      = 4_000     // of one function: compile time grows with the square and worse, 10,000 take a minute in wazero
	maxNesting    = 50_000    // of blocks: a compiler may recurse over them
	noLimit       = 1<<32 - 1
	headerSection = "header"
)

const (
	secCustom = iota
	secType
	secImport
	secFunction
	secTable
	secMemory
	secGlobal
	secExport
	secStart
	secElement
	secCode
	secData
	secDataCount
	sections
)

var sectionNames = [sections]string{
	"custom", "type", "import", "function", "table", "memory", "global", "export", "start", "element", "code", "data",
	"data count",
}

// sectionOrder is the order in a module: the data count comes before the code although its number is higher.
var sectionOrder = []int{
	secType, secImport, secFunction, secTable, secMemory, secGlobal, secExport, secStart, secElement, secDataCount, secCode, secData,
}

// span is a part of the module. The zero value means absent, as no section starts at 0.
type span struct{ start, end int }

func (s span) present() bool { return s.start != 0 }

// table is an own or imported table.
type table struct {
	elem     ValueType
	min, max uint32
	hasMax   bool
}

// decoder reads a module, checks it and keeps what the encoder needs.
type decoder struct {
	reader
	options Options
	rewrite *encoder // set while the encoder reads a section again to copy it
	spans   [sections]span
	names   span // content of the custom section "name"

	types           []Signature
	funcs           []uint32 // type of each function, imported ones first
	importedFuncs   int
	tables          []table
	importedTables  int
	globals         int // imported and own
	importedGlobals int
	elements        int
	dataCount       int     // -1 without a data count section
	locals          int     // declared by all functions read so far
	inserts         int     // upper bound of the bytes that the encoder adds to the code
	referenced      []bool  // per function: reachable other than by a direct call
	leaf            []int32 // per function: cost that the caller of an unchecked leaf bears, 0 for all others

	imports  []Import
	exports  []Export
	memories []Memory
}

func newDecoder(module []byte, options Options) *decoder {
	return &decoder{
		reader:    reader{b: module, end: len(module), section: headerSection},
		options:   options,
		dataCount: -1,
	}
}

func (d *decoder) decode() error {
	if len(d.b) < 8 || !bytes.Equal(d.b[:8], []byte("\x00asm\x01\x00\x00\x00")) {
		d.fail(ErrMalformed, 0, "not a WebAssembly 1 binary module")
		return d.err
	}
	d.pos = 8
	next := 0 // position in sectionOrder
	for d.err == nil && d.left() > 0 {
		next = d.readSection(next)
	}
	d.finish()
	return d.err
}

func (d *decoder) readSection(next int) int {
	d.section = headerSection
	start := d.pos
	id := int(d.byte())
	size := d.count(1, noLimit, "bytes of a section")
	if d.err != nil {
		return next
	}
	if id >= sections {
		d.fail(ErrUnsupported, start, "section number %d", id)
		return next
	}
	s := span{d.pos, d.pos + size}
	if id != secCustom {
		for next < len(sectionOrder) && sectionOrder[next] != id {
			next++
		}
		if next == len(sectionOrder) {
			d.fail(ErrMalformed, start, "%s section twice or out of order", sectionNames[id])
			return next
		}
		next++
		d.spans[id] = s
	}
	end := d.end
	d.section, d.end = sectionNames[id], s.end
	d.readContent(id)
	if d.err == nil && d.pos != s.end {
		d.fail(ErrMalformed, d.pos, "%d bytes too many in the section", s.end-d.pos)
	}
	d.end = end
	return next
}

func (d *decoder) readContent(id int) {
	switch id {
	case secCustom:
		d.readCustom()
	case secType:
		d.readTypes()
	case secImport:
		d.readImports()
	case secFunction:
		d.readFunctions()
	case secTable:
		d.readTables()
	case secMemory:
		d.readMemories()
	case secGlobal:
		d.readGlobals()
	case secExport:
		d.readExports()
	case secStart:
		d.index(len(d.funcs), "function")
	case secElement:
		d.readElements()
	case secCode:
		d.readCode()
	case secData:
		d.readData()
	case secDataCount:
		d.dataCount = int(d.u32())
	}
}

// finish checks what needs the whole module.
func (d *decoder) finish() {
	if d.err != nil {
		return
	}
	d.section = headerSection
	switch {
	case len(d.funcs) > d.importedFuncs && !d.spans[secCode].present():
		d.fail(ErrMalformed, d.pos, "functions without a code section")
	case d.dataCount > 0 && !d.spans[secData].present():
		d.fail(ErrMalformed, d.pos, "data count without a data section")
	}
}

// readCustom keeps the place of the function names. All custom sections are dropped from the output: debug information and
// relocations would hold wrong offsets.
func (d *decoder) readCustom() {
	if d.name() == "name" && d.err == nil && !d.names.present() {
		d.names = span{d.pos, d.end}
	}
	if d.err == nil {
		d.pos = d.end
	}
}
