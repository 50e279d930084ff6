package wellformed

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// MaxAttributes is how many attributes an element may have, namespace declarations included.
const MaxAttributes = 256

// mark is the UTF-8 byte order mark.
const mark = "\uFEFF"

const formatXML = "XML"

// XML returns nil for a body that is one well-formed XML document within the bounds, else an *Error. An empty body is
// not a document.
func XML(body []byte) error {
	if len(body) == 0 {
		return errorAt(formatXML, body, 0, "the body is empty")
	}
	if i := badUTF8(body); i >= 0 {
		return errorAt(formatXML, body, i, "byte 0x%02X is not UTF-8", body[i])
	}
	if err := xmlCharacters(body); err != nil {
		return err
	}
	d := newDocument(body)
	for {
		done, err := d.token()
		if done || err != nil {
			return err
		}
	}
}

// document is the state of one check.
type document struct {
	body    []byte
	skip    int // length of the byte order mark
	decoder *xml.Decoder
	open    []element
	scope   map[string]string // namespace of each prefix in scope; "" is the default one
	root    bool              // the root element has begun
	start   int               // offset of the current token
	end     int               // offset after it
}

func newDocument(body []byte) *document {
	d := &document{body: body, scope: make(map[string]string)}
	if bytes.HasPrefix(body, []byte(mark)) {
		d.skip = len(mark)
	}
	d.decoder = xml.NewDecoder(bytes.NewReader(body[d.skip:]))
	d.decoder.CharsetReader = func(charset string, _ io.Reader) (io.Reader, error) {
		return nil, d.fail(d.start, "the declared encoding %q is not supported: bodies are UTF-8", charset)
	}
	return d
}

func (d *document) fail(offset int, reason string, args ...any) *Error {
	return errorAt(formatXML, d.body, offset, reason, args...)
}

// raw returns the bytes of the current token.
func (d *document) raw() []byte { return d.body[d.start:d.end] }

// token checks one token; done is true after the last.
func (d *document) token() (done bool, err error) {
	d.start = d.skip + int(d.decoder.InputOffset())
	if d.isDirective() {
		return false, d.fail(d.start, "a document type declaration or other <! markup is not allowed: entities are never expanded")
	}
	token, err := d.decoder.RawToken()
	d.end = d.skip + int(d.decoder.InputOffset())
	if errors.Is(err, io.EOF) {
		return true, d.finish()
	}
	if err != nil {
		return false, d.decoderError(err)
	}
	switch t := token.(type) {
	case xml.StartElement:
		return false, d.startElement(t)
	case xml.EndElement:
		return false, d.endElement(t)
	case xml.CharData:
		return false, d.text(t)
	case xml.ProcInst:
		return false, d.instruction(t)
	}
	return false, nil
}

// isDirective reports whether a document type declaration or the like begins here. It is refused before the decoder
// reads it.
func (d *document) isDirective() bool {
	rest := d.body[d.start:]
	return bytes.HasPrefix(rest, []byte("<!")) && !bytes.HasPrefix(rest, []byte("<!-")) && !bytes.HasPrefix(rest, []byte("<!["))
}

// decoderError keeps our own error, and gives the decoder's the position it stopped at.
func (d *document) decoderError(err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return d.fail(d.end, "%s", syntax.Msg)
	}
	return d.fail(d.end, "%s", strings.TrimPrefix(err.Error(), "xml: "))
}

// finish checks the end of the document.
func (d *document) finish() error {
	switch {
	case len(d.open) > 0:
		return d.fail(len(d.body), "element <%s> is not closed", d.open[len(d.open)-1].name)
	case !d.root:
		return d.fail(len(d.body), "there is no root element")
	}
	return nil
}

// text checks character data, CDATA sections included.
func (d *document) text(data xml.CharData) error {
	section := bytes.HasPrefix(d.raw(), []byte("<![CDATA["))
	if len(d.open) == 0 && (section || len(bytes.Trim(d.raw(), " \t\r\n")) > 0) {
		return d.fail(d.start, "text outside the root element")
	}
	if section {
		return nil
	}
	return d.references()
}

// references refuses the character references to nothing, which the decoder turns into U+FFFD without a word.
func (d *document) references() error {
	raw := d.raw()
	for i := 0; ; {
		next := bytes.Index(raw[i:], []byte("&#"))
		if next < 0 {
			return nil
		}
		i += next
		end := bytes.IndexByte(raw[i:], ';')
		if end < 0 {
			return nil // the decoder has seen to that
		}
		if reference := string(raw[i+2 : i+end]); !isReference(reference) {
			return d.fail(d.start+i, "&#%s; is not a character of XML", reference)
		}
		i += end
	}
}

// instruction checks an XML declaration or a processing instruction.
func (d *document) instruction(p xml.ProcInst) error {
	if strings.Contains(p.Target, ":") {
		return d.fail(d.start, "the name %q of a processing instruction may not have a colon", p.Target)
	}
	rest := d.raw()[len("<?")+len(p.Target):]
	if !bytes.HasPrefix(rest, []byte("?>")) && (len(rest) == 0 || !isSpace(rest[0])) {
		return d.fail(d.start, "white space must follow <?%s", p.Target)
	}
	if !strings.EqualFold(p.Target, "xml") {
		return nil
	}
	if p.Target != "xml" || d.start != d.skip {
		return d.fail(d.start, "an XML declaration is allowed only at the very start")
	}
	if !declaration.Match(d.raw()) {
		return d.fail(d.start, "the XML declaration is not version=\"1.0\", then encoding and standalone if any")
	}
	return nil
}
