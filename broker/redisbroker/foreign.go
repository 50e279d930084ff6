package redisbroker

import (
	"strconv"
	"strings"
)

// tops knows which entries of the lanes were written by others: those whose numbers were never given to their lane. See
// scripts/rare/foreign.lua, which states the same rule.
type tops struct {
	seq  int64            // the last number given
	top  map[string]int64 // lane → the last number given to it, where that is not seq
	gaps map[string][][2]int64
}

// parseTops reads the fields seq and tops of a queue's meta.
func parseTops(seq, text string) tops {
	t := tops{seq: num(seq)}
	for part := range strings.SplitSeq(text, ",") {
		if lane, n, ok := strings.Cut(part, ":"); ok {
			if t.top == nil {
				t.top = map[string]int64{}
			}
			t.top[lane] = num(n)
		} else if lane, span, ok := strings.Cut(part, "!"); ok {
			if t.gaps == nil {
				t.gaps = map[string][][2]int64{}
			}
			from, to, _ := strings.Cut(span, "-")
			t.gaps[lane] = append(t.gaps[lane], [2]int64{num(from), num(to)})
		}
	}
	return t
}

// strange reports whether the entry id of a lane was written by others. unread counts in the lanes whose own entries are filed
// as they come.
func (t *tops) strange(lane, id string, unread bool) bool {
	if lane == "sys" || lane == "back" {
		return unread
	}
	digits, rest, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(digits, 10, 64)
	top, ok := t.top[lane]
	if !ok {
		top = t.seq
	}
	if err != nil || rest != "0" || n > top {
		return true
	}
	for _, g := range t.gaps[lane] {
		if n >= g[0] && n <= g[1] {
			return true
		}
	}
	return false
}

// rawFields reads the netstrings in which a dead letter keeps the fields of an entry that was no message. ok is false when body
// is something else.
func rawFields(body []byte) (fields [][]byte, ok bool) {
	for len(body) > 0 {
		digits, _, found := strings.Cut(string(body[:min(len(body), 20)]), ":")
		n, err := strconv.Atoi(digits)
		if !found || err != nil || n < 0 {
			return nil, false
		}
		body = body[len(digits)+1:]
		if len(body) <= n || body[n] != ',' {
			return nil, false
		}
		fields = append(fields, body[:n:n])
		body = body[n+1:]
	}
	return fields, true
}
