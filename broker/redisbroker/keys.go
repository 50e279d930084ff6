package redisbroker

import (
	"strings"

	"parley/broker"
)

// prefix returns the prefix of all keys of a queue; its hash tag keeps them in one slot.
func (b *Broker) prefix(queue string) string { return "{" + b.ns + "/" + escape(queue) + "}:" }

// pathPrefix returns the prefix of the keys of a queue or of one of its sub-queues, and the queue's name.
func (b *Broker) pathPrefix(path string) (prefix, queue string) {
	p := broker.ParsePath(path)
	prefix = b.prefix(p.Entity)
	switch p.Sub {
	case broker.SubDeadLetter:
		prefix += "d:"
	case broker.SubTransfer:
		prefix += "t:"
	}
	return prefix, p.Entity
}

// nsKey names a key of the namespace itself.
func (b *Broker) nsKey(name string) string { return "{" + b.ns + "}:" + name }

func (b *Broker) channel() string { return "parley:" + b.ns + ":wake" }

// queueOf returns the queue's name of a key prefix, or "".
func (b *Broker) queueOf(prefix string) string {
	s, ok := strings.CutPrefix(prefix, "{"+b.ns+"/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(s, "}")
	return unescape(name)
}

const hexDigits = "0123456789ABCDEF"

func mustEscape(c byte) bool {
	return c <= ' ' || c == '%' || c == '|' || c == '&' || c == '=' || c == ',' || c == '{' || c == '}' || c == 0x7f
}

// escape makes s safe inside a record of '|' fields, lines and lists: reserved and control bytes become %XX. Bytes above
// 0x7f stay, so names remain readable.
func escape(s string) string {
	n := 0
	for i := range len(s) {
		if mustEscape(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	out := make([]byte, 0, len(s)+2*n)
	for i := range len(s) {
		if c := s[i]; mustEscape(c) {
			out = append(out, '%', hexDigits[c>>4], hexDigits[c&15])
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

func unhex(c byte) int { return strings.IndexByte(hexDigits, c) }

// unescape undoes escape. A broken sequence is kept as it is.
func unescape(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if h, l := unhex(s[i+1]), unhex(s[i+2]); h >= 0 && l >= 0 {
				out = append(out, byte(h<<4|l))
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return string(out)
}
