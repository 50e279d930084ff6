package main

// handlerModule is the smallest handler: it exports memory, with so many pages at the start, and a function of that name (13
// characters, as parley_handle has), which answers 0, a commit. It imports nothing.
func handlerModule(pages byte, name string) []byte { return answeringModule(pages, name, 0) }

// answeringModule is handlerModule with another answer, from 0 to 63.
func answeringModule(pages byte, name string, answer byte) []byte {
	m := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, body ...byte) { m = append(append(m, id, byte(len(body))), body...) }
	section(1, 1, 0x60, 0, 1, 0x7f) // type 0: () -> i32
	section(3, 1, 0)                // function 0 has type 0
	section(5, 1, 0, pages)         // a memory of at least that many pages
	exports := append([]byte{2, 6}, "memory"...)
	exports = append(append(exports, 2, 0, 13), name...)
	section(7, append(exports, 0, 0)...)
	section(10, 1, 4, 0, 0x41, answer, 0x0b) // i32.const answer, end
	return m
}
