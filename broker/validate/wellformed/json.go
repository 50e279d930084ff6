package wellformed

import (
	"encoding/json"
	"errors"
	"strings"
)

// MaxDepth is how deep elements, arrays and objects may nest.
const MaxDepth = 256

const formatJSON = "JSON"

// JSON returns nil for a body that is one well-formed JSON value within the bounds, else an *Error. An empty body is not
// a JSON value.
func JSON(body []byte) error {
	if len(body) == 0 {
		return errorAt(formatJSON, body, 0, "the body is empty")
	}
	if i := badUTF8(body); i >= 0 {
		return errorAt(formatJSON, body, i, "byte 0x%02X is not UTF-8", body[i])
	}
	if len(body) >= len(mark) && string(body[:len(mark)]) == mark {
		return errorAt(formatJSON, body, 0, "a byte order mark is not allowed")
	}
	// The depth first, since the decoder's own bound is far above ours and its message has no position.
	if err := jsonDepth(body); err != nil {
		return err
	}
	var value json.RawMessage
	err := json.Unmarshal(body, &value)
	if err == nil {
		return nil
	}
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return errorAt(formatJSON, body, 0, "%s", err)
	}
	// The offset is that of the byte after the offending one, or the end.
	offset := int(syntax.Offset)
	if offset > 0 && offset <= len(body) && !strings.HasPrefix(syntax.Error(), "unexpected end") {
		offset--
	}
	return errorAt(formatJSON, body, offset, "%s", syntax)
}

// jsonDepth looks at brackets outside strings only; whether they match is the decoder's business.
func jsonDepth(body []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > MaxDepth {
				return errorAt(formatJSON, body, i, "nested more than %d deep", MaxDepth)
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil
}
