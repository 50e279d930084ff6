package sbxml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"parley/broker/validate/wellformed"
)

// MaxBody is the largest body Parse reads, in bytes. A description of 3,000 characters, each written as the longest
// reference, stays far below it.
const MaxBody = 256 << 10

// ErrNotError is returned by Parse for a body that is not that of an Error message. The text says what is wrong with it;
// a body that is not well-formed XML is reported with its position, as a *wellformed.Error.
var ErrNotError = errors.New("not the body of an Error message")

// Parse returns the code and the description of the body of an Error message, whatever its namespace. The text element
// may be called Description or Message; its text is returned as it is, white space included. Unknown elements are
// passed over. Code must be a 32-bit integer. Errors wrap ErrNotError.
func Parse(body []byte) (code int, description string, err error) {
	if len(body) > MaxBody {
		return 0, "", fmt.Errorf("%w: %d bytes, at most %d are read", ErrNotError, len(body), MaxBody)
	}
	if err := wellformed.XML(body); err != nil {
		return 0, "", fmt.Errorf("%w: %w", ErrNotError, err)
	}
	codes, texts, err := children(body)
	switch {
	case err != nil:
		return 0, "", err
	case len(codes) != 1 || len(texts) != 1:
		return 0, "", fmt.Errorf("%w: it has %d Code and %d Description elements, one of each is needed", ErrNotError, len(codes), len(texts))
	}
	n, err := strconv.ParseInt(strings.TrimSpace(codes[0]), 10, 32)
	if err != nil {
		return 0, "", fmt.Errorf("%w: the code %.40q is not a 32-bit integer", ErrNotError, codes[0])
	}
	return int(n), texts[0], nil
}

// children returns the texts of the root's Code and Description elements. The body is known to be well-formed.
func children(body []byte) (codes, texts []string, err error) {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\uFEFF"))))
	depth := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return codes, texts, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrNotError, err)
		}
		start, opens := token.(xml.StartElement)
		_, closes := token.(xml.EndElement)
		switch {
		case closes:
			depth--
		case !opens:
		case depth == 0 && start.Name.Local != "Error":
			return nil, nil, fmt.Errorf("%w: the root element is %s", ErrNotError, start.Name.Local)
		case depth == 1 && start.Name.Local == "Code":
			codes, err = appendText(codes, d, start)
		case depth == 1 && (start.Name.Local == "Description" || start.Name.Local == "Message"):
			texts, err = appendText(texts, d, start)
		default:
			depth++
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// appendText reads the rest of an element that holds only text, its end included.
func appendText(list []string, d *xml.Decoder, start xml.StartElement) ([]string, error) {
	var text strings.Builder
	for {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotError, err)
		}
		switch t := token.(type) {
		case xml.CharData:
			text.Write(t)
		case xml.StartElement:
			return nil, fmt.Errorf("%w: element %s inside %s", ErrNotError, t.Name.Local, start.Name.Local)
		case xml.EndElement:
			return append(list, text.String()), nil
		}
	}
}
