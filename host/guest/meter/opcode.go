package meter

// Opcodes that the code names.
const (
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opCall         = 0x10
	opReturnCall   = 0x12
	opLocalGet     = 0x20
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI64LtS       = 0x53
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Mul       = 0x6c
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Mul       = 0x7e
	opI64ShrU      = 0x88
	opI64ExtendI32 = 0xad // unsigned
	opRefNull      = 0xd0
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opVector       = 0xfd

	vecConst = 0x0c
)

// immediate says what follows an opcode.
type immediate uint8

const (
	immUnknown immediate = iota // no such instruction
	immNone
	immBlock     // block type
	immLabel     // depth of a block
	immLabels    // vector of depths and a default
	immFunc      // function called directly
	immFuncRef   // function made a value
	immIndirect  // type and table
	immTypes     // vector of one value type
	immLocal     // local
	immGlobal    // global
	immTable     // table
	immAccess    // alignment and offset
	immMemory    // memory, reserved zero
	immI32       // signed numbers
	immI64       //
	immFour      // that many bytes
	immEight     //
	immSixteen   //
	immHeap      // reference type
	immMemInit   // data segment and memory
	immData      // data segment
	immTwoMem    // two memories
	immTableInit // element segment and table
	immElem      // element segment
	immTwoTables // two tables
	immShuffle   // 16 lanes of 32
	immLane      // one lane
	immAccessLn  // alignment, offset, lane
)

type opcode struct {
	imm   immediate
	class class
}

// opcodes from first to last share immediates and price.
type opcodes struct {
	first, last uint8
	opcode
}

func table256(rows []opcodes) (t [256]opcode) {
	for _, r := range rows {
		for i := int(r.first); i <= int(r.last); i++ {
			t[i] = r.opcode
		}
	}
	return t
}

// plainOps are the one-byte opcodes; later rows refine earlier ones.
var plainOps = table256([]opcodes{
	{0x00, 0x00, opcode{immNone, classPlain}}, // unreachable
	{0x01, 0x01, opcode{immNone, classFree}},  // nop
	{0x02, 0x02, opcode{immBlock, classFree}},
	{0x03, 0x04, opcode{immBlock, classPlain}}, // loop, if
	{0x05, 0x05, opcode{immNone, classFree}},   // else
	{0x0b, 0x0b, opcode{immNone, classFree}},   // end
	{0x0c, 0x0d, opcode{immLabel, classPlain}},
	{0x0e, 0x0e, opcode{immLabels, classPlain}},
	{0x0f, 0x0f, opcode{immNone, classPlain}}, // return
	{0x10, 0x10, opcode{immFunc, classCall}},
	{0x11, 0x11, opcode{immIndirect, classIndirect}},
	{0x12, 0x12, opcode{immFunc, classCall}},
	{0x13, 0x13, opcode{immIndirect, classIndirect}},
	{0x1a, 0x1a, opcode{immNone, classFree}},  // drop
	{0x1b, 0x1b, opcode{immNone, classPlain}}, // select
	{0x1c, 0x1c, opcode{immTypes, classPlain}},
	{0x20, 0x22, opcode{immLocal, classPlain}},
	{0x23, 0x24, opcode{immGlobal, classPlain}},
	{0x25, 0x26, opcode{immTable, classMemory}},
	{0x28, 0x3e, opcode{immAccess, classMemory}},
	{0x3f, 0x3f, opcode{immMemory, classPlain}}, // memory.size
	{0x40, 0x40, opcode{immMemory, classGrow}},
	{0x41, 0x41, opcode{immI32, classPlain}},
	{0x42, 0x42, opcode{immI64, classPlain}},
	{0x43, 0x43, opcode{immFour, classPlain}},
	{0x44, 0x44, opcode{immEight, classPlain}},
	{0x45, 0xc4, opcode{immNone, classPlain}}, // arithmetic
	{0x6d, 0x70, opcode{immNone, classIntDiv}},
	{0x7f, 0x82, opcode{immNone, classIntDiv}},
	{0x8d, 0x90, opcode{immNone, classConvert}},  // f32 ceil, floor, trunc, nearest
	{0x91, 0x91, opcode{immNone, classFloatDiv}}, // f32.sqrt
	{0x95, 0x95, opcode{immNone, classFloatDiv}},
	{0x96, 0x97, opcode{immNone, classConvert}},  // f32 min, max
	{0x9b, 0x9e, opcode{immNone, classConvert}},  // f64 ceil, floor, trunc, nearest
	{0x9f, 0x9f, opcode{immNone, classFloatDiv}}, // f64.sqrt
	{0xa3, 0xa3, opcode{immNone, classFloatDiv}},
	{0xa4, 0xa5, opcode{immNone, classConvert}}, // f64 min, max
	{0xa8, 0xab, opcode{immNone, classConvert}}, // i32.trunc
	{0xae, 0xba, opcode{immNone, classConvert}}, // i64.trunc, convert
	{0xd0, 0xd0, opcode{immHeap, classPlain}},
	{0xd1, 0xd1, opcode{immNone, classPlain}}, // ref.is_null
	{0xd2, 0xd2, opcode{immFuncRef, classPlain}},
})

// miscOps follow the prefix 0xfc.
var miscOps = table256([]opcodes{
	{0x00, 0x07, opcode{immNone, classConvert}}, // saturating truncation
	{0x08, 0x08, opcode{immMemInit, classBulk}},
	{0x09, 0x09, opcode{immData, classPlain}},
	{0x0a, 0x0a, opcode{immTwoMem, classBulk}},
	{0x0b, 0x0b, opcode{immMemory, classBulk}}, // memory.fill
	{0x0c, 0x0c, opcode{immTableInit, classBulk}},
	{0x0d, 0x0d, opcode{immElem, classPlain}},
	{0x0e, 0x0e, opcode{immTwoTables, classBulk}},
	{0x0f, 0x0f, opcode{immTable, classBulk}},  // table.grow
	{0x10, 0x10, opcode{immTable, classPlain}}, // table.size
	{0x11, 0x11, opcode{immTable, classBulk}},  // table.fill
})

// vectorOps follow the prefix 0xfd; later rows refine earlier ones.
var vectorOps = table256([]opcodes{
	{0x00, 0x0b, opcode{immAccess, classVectorMemory}},
	{0x0c, 0x0c, opcode{immSixteen, classVector}},
	{0x0d, 0x0d, opcode{immShuffle, classVector}},
	{0x0e, 0x14, opcode{immNone, classVector}},
	{0x15, 0x22, opcode{immLane, classVector}},
	{0x23, 0x53, opcode{immNone, classVector}},
	{0x54, 0x5b, opcode{immAccessLn, classVectorMemory}},
	{0x5c, 0x5d, opcode{immAccess, classVectorMemory}},
	{0x5e, 0xff, opcode{immNone, classVector}},
	{0x5e, 0x5f, opcode{immNone, classVectorSlow}}, // demote, promote
	{0x62, 0x62, opcode{immNone, classVectorSlow}}, // i8x16.popcnt
	{0x67, 0x6a, opcode{immNone, classVectorSlow}}, // f32x4 rounding
	{0x6b, 0x6d, opcode{immNone, classVectorSlow}}, // i8x16 shifts
	{0x74, 0x75, opcode{immNone, classVectorSlow}}, // f64x2 ceil, floor
	{0x7a, 0x7a, opcode{immNone, classVectorSlow}}, // f64x2.trunc
	{0x94, 0x94, opcode{immNone, classVectorSlow}}, // f64x2.nearest
	{0xcc, 0xcc, opcode{immNone, classVectorSlow}}, // i64x2.shr_s
	{0xd5, 0xd5, opcode{immNone, classVectorSlow}}, // i64x2.mul
	{0xe3, 0xe3, opcode{immNone, classVectorDiv}},  // f32x4.sqrt
	{0xe7, 0xe7, opcode{immNone, classVectorDiv}},
	{0xe8, 0xe9, opcode{immNone, classVectorSlow}}, // f32x4 min, max
	{0xef, 0xef, opcode{immNone, classVectorDiv}},  // f64x2.sqrt
	{0xf3, 0xf3, opcode{immNone, classVectorDiv}},
	{0xf4, 0xf5, opcode{immNone, classVectorSlow}}, // f64x2 min, max
	{0xf8, 0xff, opcode{immNone, classVectorSlow}}, // conversions
	{0x9a, 0x9a, opcode{}},
	{0xa2, 0xa2, opcode{}},
	{0xa5, 0xa6, opcode{}},
	{0xaf, 0xb0, opcode{}}, // never assigned
	{0xb2, 0xb4, opcode{}},
	{0xbb, 0xbb, opcode{}},
	{0xc2, 0xc2, opcode{}},
	{0xc5, 0xc6, opcode{}},
	{0xcf, 0xd0, opcode{}},
	{0xd2, 0xd4, opcode{}},
	{0xe2, 0xe2, opcode{}},
	{0xee, 0xee, opcode{}},
})
