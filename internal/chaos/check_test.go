package main

import (
	"strings"
	"testing"
	"time"
)

// The checker sees each kind of damage, and takes what Redis itself lost for that.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name string
		seen map[string][]int
		tail string
		want verdict
	}{
		{"all is well", map[string][]int{"s1": {0, 1, 2}, "p0": {2, 0, 1}}, "", verdict{}},
		{"one is missing", map[string][]int{"s1": {0, 2}, "p0": {0, 1, 2}}, "", verdict{lost: 1}},
		{"the last is missing", map[string][]int{"s1": {0, 1}, "p0": {0, 1, 2}}, "", verdict{lost: 1}},
		{"a conversation is missing", map[string][]int{"p0": {0, 1, 2}}, "", verdict{lost: 3}},
		{"one came twice", map[string][]int{"s1": {0, 1, 1, 2}, "p0": {0, 1, 2}}, "", verdict{doubled: 1}},
		{"a plain one came twice", map[string][]int{"s1": {0, 1, 2}, "p0": {0, 1, 2, 0}}, "", verdict{doubled: 1}},
		{"two changed places", map[string][]int{"s1": {1, 0, 2}, "p0": {0, 1, 2}}, "", verdict{order: 1}},
		{"Redis lost it", map[string][]int{"s1": {0, 2}, "p0": {0, 1, 2}}, "$16\r\ns1 1 1700000000 3\r\n", verdict{redisLost: 1}},
		{"Redis lost another", map[string][]int{"s1": {0, 2}, "p0": {0, 1, 2}}, "s1 10 1700000000 3", verdict{lost: 1}},
		{"more than was accepted: the producer was ended before it knew", map[string][]int{"s1": {0, 1, 2, 3}, "p0": {0, 1, 2}}, "", verdict{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &load{accepted: map[string]int{"s1": 3, "p0": 3}}
			var v verdict
			l.compare(c.seen, []byte(c.tail), &v)
			got := verdict{lost: v.lost, doubled: v.doubled, order: v.order, redisLost: v.redisLost}
			if got.lost != c.want.lost || got.doubled != c.want.doubled || got.order != c.want.order || got.redisLost != c.want.redisLost {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if v.failed() != (c.want.lost+c.want.doubled+c.want.order > 0) {
				t.Errorf("failed: %v", v.failed())
			}
		})
	}
}

func TestScenarioNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range scenarios() {
		if seen[s.name] || s.name == "" || s.every <= 0 || s.fault == nil {
			t.Errorf("scenario %q is not whole, or twice there", s.name)
		}
		seen[s.name] = true
		if !wanted(s.name, "no such part, "+s.name[3:9]) || wanted(s.name, "no such part") {
			t.Errorf("%q is not chosen by a part of its name", s.name)
		}
	}
}

func TestRowsAreAsWideAsTheirHead(t *testing.T) {
	var out strings.Builder
	printRow(&out, &verdict{name: "a", sent: 123456, slowest: time.Minute}, true)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || len(lines[0]) != len(lines[2]) {
		t.Errorf("the table is\n%s", out.String())
	}
}
