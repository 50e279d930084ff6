package sbxml

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Namespace is the namespace Encode writes.
const Namespace = "http://schemas.microsoft.com/SQL/ServiceBroker"

const (
	head   = `<?xml version="1.0"?><Error xmlns="` + Namespace + `"><Code>`
	middle = `</Code><Description>`
	tail   = `</Description></Error>`
)

// Encode returns the body of an Error message. Any code and any description are written; their limits are the caller's.
// What XML cannot hold (control characters, bytes that are not UTF-8) becomes U+FFFD.
func Encode(code int, description string) []byte {
	var b strings.Builder
	b.Grow(len(head) + len(middle) + len(tail) + len(description) + 16)
	b.WriteString(head)
	b.WriteString(strconv.Itoa(code))
	b.WriteString(middle)
	for _, r := range description {
		escape(&b, r)
	}
	b.WriteString(tail)
	return []byte(b.String())
}

// escape writes one character of a text. A carriage return is written as a reference, since readers turn a bare one into
// a line feed.
func escape(b *strings.Builder, r rune) {
	switch {
	case r == '&':
		b.WriteString("&amp;")
	case r == '<':
		b.WriteString("&lt;")
	case r == '>':
		b.WriteString("&gt;")
	case r == '\r':
		b.WriteString("&#xD;")
	case r < ' ' && r != '\t' && r != '\n', r == 0xFFFE, r == 0xFFFF:
		b.WriteRune(utf8.RuneError)
	default:
		b.WriteRune(r)
	}
}
