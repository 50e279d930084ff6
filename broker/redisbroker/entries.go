package redisbroker

import (
	"bytes"
	"strconv"
	"unsafe"
)

// entry is one entry of a stream as it came off the wire: its id, the name of its only field and that field's value. The
// three share the memory of the reply.
type entry struct {
	id, head string
	body     []byte
}

// readEntries reads the reply of an XREADGROUP of one stream, in either version of the server's protocol, without a copy:
// by the client's own reading of nested replies an entry costs ten allocations. An entry of another form than ours makes the
// reply errRead. refused is an error that the server answered.
func readEntries(reply []byte) (entries []entry, refused string, err error) {
	p := &wireReply{b: reply}
	switch kind, n := p.head(); {
	case kind == '-':
		return nil, string(reply[1 : len(reply)-2]), nil
	case kind == '_' || kind == '*' && n == -1:
		return nil, "", nil
	case kind == '*' && n == 1:
		p.want('*', 2)
	case kind == '%' && n == 1:
	default:
		return nil, "", errRead
	}
	p.text() // the stream's key
	kind, n := p.head()
	if kind != '*' || n < 0 || n > len(p.b) {
		return nil, "", errRead
	}
	entries = make([]entry, n)
	for i := range entries {
		p.want('*', 2)
		entries[i].id = p.string()
		p.want('*', 2)
		entries[i].head = p.string()
		entries[i].body = p.text()
	}
	if p.bad || len(p.b) != 0 {
		return nil, "", errRead
	}
	return entries, "", nil
}

// wireReply is what has not been read yet of a reply.
type wireReply struct {
	b   []byte
	bad bool
}

// head reads a line: the kind of a value and its number, of elements or of bytes.
func (p *wireReply) head() (kind byte, n int) {
	i := bytes.IndexByte(p.b, '\r')
	if i < 1 || i+1 >= len(p.b) || p.b[i+1] != '\n' {
		p.bad, p.b = true, nil
		return 0, 0
	}
	kind = p.b[0]
	if i > 1 && kind != '-' {
		var err error
		if n, err = strconv.Atoi(unsafe.String(&p.b[1], i-1)); err != nil {
			p.bad = true
		}
	}
	p.b = p.b[i+2:]
	return kind, n
}

// want reads a line that must be of that kind and number.
func (p *wireReply) want(kind byte, n int) {
	if k, m := p.head(); k != kind || m != n {
		p.bad = true
	}
}

// text reads a string; it shares the memory of the reply.
func (p *wireReply) text() []byte {
	kind, n := p.head()
	if kind != '$' || n < 0 || n+2 > len(p.b) || p.b[n] != '\r' || p.b[n+1] != '\n' {
		p.bad, p.b = true, nil
		return nil
	}
	t := p.b[:n:n]
	p.b = p.b[n+2:]
	return t
}

// string is text as a string.
func (p *wireReply) string() string {
	t := p.text()
	return unsafe.String(unsafe.SliceData(t), len(t))
}
