package meter_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// value is an argument or an expected result of a specification test.
type value struct {
	Type  string          `json:"type"`
	Lane  string          `json:"lane_type"`
	Value json.RawMessage `json:"value"`
}

// lanes returns the texts of the lanes and their width in bits; a scalar has one. No text means any reference.
func (v value) lanes() (texts []string, width int) {
	kind := v.Type
	if v.Type == "v128" {
		if err := json.Unmarshal(v.Value, &texts); err != nil {
			panic(err)
		}
		kind = v.Lane
	} else {
		var text *string
		if err := json.Unmarshal(v.Value, &text); err != nil && len(v.Value) > 0 {
			panic(err)
		}
		if text == nil {
			return nil, 64
		}
		texts = []string{*text}
	}
	if width, _ = strconv.Atoi(strings.TrimLeft(kind, "if")); width == 0 {
		width = 64 // a reference
	}
	return texts, width
}

// bits returns the value as the runtime takes it. An external reference n is n+1, as 0 is null.
func (v value) bits() []uint64 {
	texts, width := v.lanes()
	words := make([]uint64, (len(texts)*width+63)/64)
	for i, text := range texts {
		n := number(text, width)
		if v.Type == "externref" && text != "null" {
			n++
		}
		words[i*width/64] |= n << (i * width % 64)
	}
	return words
}

func number(text string, width int) uint64 {
	if text == "null" {
		return 0
	}
	if strings.HasPrefix(text, "-") {
		n, err := strconv.ParseInt(text, 10, width)
		if err != nil {
			panic(err)
		}
		return uint64(n) & (1<<width - 1)
	}
	n, err := strconv.ParseUint(text, 10, width)
	if err != nil {
		panic(err)
	}
	return n
}

// equalValues compares results with what is expected, not-a-number classes included.
func equalValues(got []uint64, want []value) error {
	for _, w := range want {
		texts, width := w.lanes()
		words := max(1, len(texts)*width/64)
		if len(got) < words {
			return fmt.Errorf("got too few results, want %s", w.Value)
		}
		for i, text := range texts {
			lane := got[i*width/64] >> (i * width % 64)
			if width < 64 {
				lane &= 1<<width - 1
			}
			if !equalLane(lane, text, width, w.Type) {
				return fmt.Errorf("got %#x in lane %d, want %s (%s)", lane, i, text, w.Type)
			}
		}
		got = got[words:]
	}
	if len(got) > 0 {
		return fmt.Errorf("got %d results too many", len(got))
	}
	return nil
}

func equalLane(got uint64, want string, width int, kind string) bool {
	quiet, sign := uint64(0x7fc0_0000), uint64(1)<<31
	if width == 64 {
		quiet, sign = 0x7ff8_0000_0000_0000, 1<<63
	}
	switch {
	case want == "nan:canonical":
		return got&^sign == quiet
	case want == "nan:arithmetic":
		return got&quiet == quiet
	case kind == "externref" && want != "null":
		return got == number(want, width)+1
	}
	return got == number(want, width)
}
