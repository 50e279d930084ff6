package abi

import "encoding/binary"

// A property list is how a map of properties crosses the border: for each property the length of its name (4 bytes,
// little-endian), the name, the length of its value (4 bytes, little-endian), the value. Nothing stands between them. The
// host writes them sorted by name.

// AppendProperty appends one property to a property list.
func AppendProperty(list []byte, name, value string) []byte {
	list = binary.LittleEndian.AppendUint32(list, uint32(len(name)))
	list = append(list, name...)
	list = binary.LittleEndian.AppendUint32(list, uint32(len(value)))
	return append(list, value...)
}

// ParseProperties calls add for each property of list. It reports false when list is no property list; add may then have
// been called for its first properties. name and value lie inside list.
func ParseProperties(list []byte, add func(name, value []byte)) bool {
	for len(list) > 0 {
		name, rest, ok := cutSized(list)
		if !ok {
			return false
		}
		value, rest, ok := cutSized(rest)
		if !ok {
			return false
		}
		add(name, value)
		list = rest
	}
	return true
}

func cutSized(b []byte) (item, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	if uint64(n) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}
