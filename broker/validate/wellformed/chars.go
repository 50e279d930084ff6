package wellformed

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// declaration is the grammar of an XML declaration; the decoder has checked version and encoding themselves.
var declaration = regexp.MustCompile(`^<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?:"1\.0"|'1\.0')` +
	`(?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(?:"[A-Za-z][A-Za-z0-9._-]*"|'[A-Za-z][A-Za-z0-9._-]*'))?` +
	`(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\r\n]*\?>$`)

// isSpace reports whether c is white space in XML.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// isChar reports whether XML 1.0 allows r in a document.
func isChar(r rune) bool {
	switch {
	case r < 0x20:
		return r == '\t' || r == '\n' || r == '\r'
	case r <= 0xD7FF:
		return true
	case r >= 0xE000 && r <= 0xFFFD:
		return true
	}
	return r >= 0x10000 && r <= 0x10FFFF
}

// beginsName reports whether the first character of a name may begin one.
func beginsName(name string) bool {
	r, _ := utf8.DecodeRuneInString(name)
	return r != '-' && r != '.' && r != 0xB7 && !unicode.In(r, unicode.Nd, unicode.M)
}

// isReference reports whether text, what stands between &# and ;, names a character of XML.
func isReference(text string) bool {
	base := 10
	if hex, found := strings.CutPrefix(text, "x"); found {
		text, base = hex, 16
	}
	n, err := strconv.ParseUint(text, base, 32)
	return err == nil && n <= utf8.MaxRune && isChar(rune(n))
}

// xmlCharacters refuses the characters XML forbids everywhere, also in comments, where the decoder does not look.
func xmlCharacters(body []byte) error {
	for i := 0; i < len(body); {
		r, size := rune(body[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(body[i:])
		}
		if !isChar(r) {
			return errorAt(formatXML, body, i, "character U+%04X is not allowed in XML", r)
		}
		i += size
	}
	return nil
}
