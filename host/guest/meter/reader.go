package meter

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// reader reads one stretch of the module. The first failure sticks: it moves to the end, so that every later read fails at once
// and loops only need to look at err. All positions are offsets in the whole module.
type reader struct {
	b       []byte
	pos     int
	end     int // never beyond len(b)
	section string
	err     error
}

func (r *reader) fail(kind error, pos int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Kind: kind, Section: r.section, Offset: pos, Reason: fmt.Sprintf(format, args...)}
	}
	r.pos = r.end
}

func (r *reader) left() int { return r.end - r.pos }

func (r *reader) byte() byte {
	if r.pos >= r.end {
		r.fail(ErrMalformed, r.pos, "unexpected end")
		return 0
	}
	b := r.b[r.pos]
	r.pos++
	return b
}

func (r *reader) skip(n int) {
	if n > r.left() {
		r.fail(ErrMalformed, r.pos, "unexpected end: %d bytes wanted, %d left", n, r.left())
		return
	}
	r.pos += n
}

func (r *reader) u32() uint32 {
	if r.pos < r.end && r.b[r.pos] < 0x80 {
		r.pos++
		return uint32(r.b[r.pos-1])
	}
	return uint32(r.unsigned(32))
}

// unsigned reads an LEB128 number of at most bits bits, and refuses longer encodings and set bits beyond, as the
// specification does: a lenient reader would make malformed modules valid by encoding them anew.
func (r *reader) unsigned(bits int) uint64 {
	start, v := r.pos, uint64(0)
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		if rest := bits - shift; rest < 7 && b>>rest != 0 {
			r.fail(ErrMalformed, start, "number too long or too large for %d bits", bits)
			return 0
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

// signed is unsigned for two's complement numbers: bits beyond the width must repeat the sign.
func (r *reader) signed(bits int) int64 {
	start, v := r.pos, int64(0)
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		if rest := bits - shift; rest <= 7 {
			sign := int8(b<<1) >> rest // the bits from the sign bit up, sign-extended from bit 6
			if b >= 0x80 || sign != 0 && sign != -1 {
				r.fail(ErrMalformed, start, "number too long or too large for %d bits", bits)
				return 0
			}
		}
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if shift+7 < 64 && b&0x40 != 0 {
				v |= math.MinInt64 >> (63 - shift - 7)
			}
			return v
		}
	}
}

// count reads the length of a vector whose elements take at least size bytes each, so that no count can be larger than what the
// section really holds.
func (r *reader) count(size int, limit uint32, what string) int {
	start := r.pos
	n := r.u32()
	switch {
	case r.err != nil:
		return 0
	case int64(n)*int64(size) > int64(r.left()):
		r.fail(ErrMalformed, start, "%d %s do not fit into the %d bytes left", n, what, r.left())
		return 0
	case n > limit:
		r.fail(ErrTooLarge, start, "%d %s, at most %d are allowed", n, what, limit)
		return 0
	}
	return int(n)
}

// index reads an index into a space of n things of the original module.
func (r *reader) index(n int, what string) uint32 {
	start := r.pos
	i := r.u32()
	if r.err == nil && int64(i) >= int64(n) {
		r.fail(ErrIndex, start, "%s %d of %d", what, i, n)
		return 0
	}
	return i
}

// name reads a vector of bytes that must be UTF-8.
func (r *reader) name() string {
	start := r.pos
	n := r.count(1, math.MaxUint32, "bytes of a name")
	b := r.b[r.pos : r.pos+n]
	r.pos += n
	if !utf8.Valid(b) {
		r.fail(ErrMalformed, start, "name is not UTF-8")
		return ""
	}
	return string(b)
}

// zero reads a byte that must be 0: a flag or an index that WebAssembly 2.0 reserves.
func (r *reader) zero(what string) {
	if r.byte() != 0 && r.err == nil {
		r.fail(ErrMalformed, r.pos-1, "%s must be zero", what)
	}
}

func (r *reader) valueType() ValueType {
	b := ValueType(r.byte())
	if r.err == nil && b.String() == "?" {
		r.fail(ErrUnsupported, r.pos-1, "value type %#x", uint8(b))
	}
	return b
}

func (r *reader) refType() ValueType {
	t := r.valueType()
	if r.err == nil && t != FuncRef && t != ExternRef {
		r.fail(ErrMalformed, r.pos-1, "%s is no reference type", t)
	}
	return t
}
