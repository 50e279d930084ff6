package meter

// Cost is one row of the cost model.
type Cost struct {
	Name   string // which instructions
	Units  int
	Reason string
}

// class of an instruction: its row in the cost table.
type class uint8

const (
	classFree class = iota
	classPlain
	classMemory
	classIntDiv
	classFloatDiv
	classConvert
	classCall
	classIndirect
	classHost
	classBulk
	classGrow
	classVector
	classVectorMemory
	classVectorDiv
	classVectorSlow
	classes
)

// costs is the whole model. One unit is about one machine instruction of a compiled guest, some 0.2 to 0.4 ns. What matters is
// that nothing is much dearer than its price, because then a guest could run longer between two checks than the slice says.
var costs = [classes]Cost{
	classFree:         {"nop, drop, block, else, end", 0, "no machine code"},
	classPlain:        {"everything not named below", 1, "one or two machine instructions"},
	classMemory:       {"loads and stores; table.get, table.set", 3, "bounds check, and the cache may miss"},
	classIntDiv:       {"integer division and remainder", 10, "20 to 40 cycles, tests for zero and overflow"},
	classFloatDiv:     {"float division and square root", 8, "10 to 20 cycles, not pipelined"},
	classConvert:      {"float rounding, minimum, maximum, conversion to integer", 4, "several instructions and branches for NaN and range"},
	classCall:         {"call, return_call of an own function", 5, "saves registers, checks the stack"},
	classIndirect:     {"call_indirect, return_call_indirect", 10, "as call; loads and compares the type; covers the smallest leaf functions"},
	classHost:         {"imported function, directly or through a table, on top of the call", 500, "leaves compiled code: 50 ns and what the host does"},
	classBulk:         {"memory.fill, copy, init; table.fill, copy, init, grow", 10, "set-up; on top of it one unit per 16 bytes or elements"},
	classGrow:         {"memory.grow", 10_000, "may copy the memory; flat, so that a refused growth costs no more"},
	classVector:       {"SIMD", 2, "one to three machine instructions"},
	classVectorMemory: {"SIMD loads and stores", 4, "as loads and stores, twice the width"},
	classVectorDiv:    {"SIMD division and square root", 16, "as float division, two to four lanes"},
	classVectorSlow:   {"SIMD shifts of bytes, 64-bit multiplication, rounding, conversion, popcnt", 8, "no machine instruction of their own: sequences of up to ten"},
}

// Costs returns the cost model, for documents and for showing it to users.
func Costs() []Cost { return append([]Cost(nil), costs[:]...) }

func (c class) units() int64 { return int64(costs[c].Units) }

const (
	// bulkShift: bulk instructions cost one unit for 16 bytes or elements, about what memory bandwidth allows.
	bulkShift = 4

	// maxStretch is the most that one check covers, apart from a single dearer instruction. Longer bodies get further checks
	// within, so that a straight line of millions of instructions cannot run past a deadline.
	maxStretch = 50_000

	// maxLeaf is the most that a leaf function (no call, no loop) may cost to go without a check of its own. Every direct call of
	// it pays its cost instead.
	maxLeaf = 1_000

	// maxSharedLeaf is maxLeaf for functions that are also reachable in other ways than a direct call: what call_indirect is
	// charged over call.
	maxSharedLeaf = 5
)
