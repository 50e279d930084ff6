package meter_test

import (
	"encoding/binary"
	"slices"
)

// Builders of modules from bytes, for what no text format can express.

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
)

const magic = "\x00asm\x01\x00\x00\x00"

// wasm joins sections to a module.
func wasm(sections ...[]byte) []byte { return append([]byte(magic), slices.Concat(sections...)...) }

// section puts number and length in front of content.
func section(id byte, content ...byte) []byte { return append([]byte{id}, sized(content...)...) }

// sized puts its length in front of content.
func sized(content ...byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(content))), content...)
}

// vector puts their number in front of items.
func vector(items ...[]byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(items))), slices.Concat(items...)...)
}

// oneFunction is a module with a memory, a table, one global i32 and one function () -> () exported as "f", with that code.
func oneFunction(code ...byte) []byte {
	return functions(append(append([]byte{0}, code...), 0x0b))
}

// functions is oneFunction with several functions given as whole bodies, locals and end included; "f" is the first.
func functions(bodies ...[]byte) []byte {
	var types []byte
	var sizedBodies [][]byte
	for _, b := range bodies {
		types = append(types, 0)
		sizedBodies = append(sizedBodies, sized(b...))
	}
	return wasm(
		section(secType, 1, 0x60, 0, 0),
		section(secFunction, append(binary.AppendUvarint(nil, uint64(len(bodies))), types...)...),
		section(secTable, 1, 0x70, 0, 1),
		section(secMemory, 1, 0, 1),
		section(secGlobal, 1, 0x7f, 1, 0x41, 0, 0x0b),
		section(secExport, 1, 1, 'f', 0, 0),
		section(secCode, vector(sizedBodies...)...),
	)
}

// leb is n in LEB128.
func leb(n uint64) []byte { return binary.AppendUvarint(nil, n) }

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }
