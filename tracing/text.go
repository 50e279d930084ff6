package tracing

import (
	"strings"
	"unicode/utf8"
)

// maxText is the greatest length of a string in a span, in bytes. Bodies never become attributes, so what is longer is an
// error text or a log line.
const maxText = 4096

// clean makes s fit for an attribute: valid UTF-8, since one bad byte makes a collector refuse the whole batch (field
// case 39), and at most maxText bytes, cut between two characters.
func clean(s string) string {
	const mark = "…"
	if len(s) > maxText {
		s = cut(s, maxText-len(mark)) + mark
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// cut returns at most n bytes of s and never part of a character that is whole in s.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := n; i > n-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n] // not UTF-8 here anyway
}
