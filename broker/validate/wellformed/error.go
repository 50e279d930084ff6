package wellformed

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Error says where a body breaks which rule. Line and Column count from 1, columns in bytes.
type Error struct {
	Format string // "XML" or "JSON"
	Line   int
	Column int
	Reason string
}

// Error returns format, position and reason on one line.
func (e *Error) Error() string {
	return fmt.Sprintf("%s, line %d, column %d: %s", e.Format, e.Line, e.Column, e.Reason)
}

// errorAt makes an Error for the byte at offset.
func errorAt(format string, body []byte, offset int, reason string, args ...any) *Error {
	before := body[:min(max(offset, 0), len(body))]
	line := bytes.Count(before, []byte{'\n'})
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return &Error{Format: format, Line: line + 1, Column: column, Reason: fmt.Sprintf(reason, args...)}
}

// badUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func badUTF8(body []byte) int {
	for i := 0; i < len(body); {
		if body[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(body[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
