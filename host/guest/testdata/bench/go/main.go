// Command go is the Go guest of the benchmarks: the functions are those of guest.c, and JSON with encoding/json. It does
// what the first byte of the body asks for, and otherwise decodes the body.
package main

import (
	"encoding/json"
	"errors"
	"unsafe"

	"parley/sdk"
)

func init() { sdk.Handle(handle) }

func main() {}

type webhook struct {
	Action     string `json:"action"`
	Repository struct {
		FullName string `json:"full_name"`
	} `json:"repository"`
	Sender struct {
		Login string `json:"login"`
	} `json:"sender"`
}

var (
	body   [64 << 10]byte
	length int32
)

//go:wasmexport input
func input(n int32) int32 {
	length = n
	return int32(uintptr(unsafe.Pointer(&body[0])))
}

//go:wasmexport noop
func noop() {}

//go:wasmexport hot
func hot(n int32) int32 {
	x := uint32(2463534242)
	for range n {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
	}
	return int32(x)
}

//go:wasmexport sum
func sum() int32 {
	s := uint32(0)
	for _, b := range body[:length] {
		s = s*31 + uint32(b)
	}
	return int32(s)
}

//go:wasmexport tree
func tree(depth int32) int32 {
	if depth == 0 {
		return 1
	}
	return tree(depth-1) + tree(depth-1)
}

// jsonStruct decodes three fields, jsonMap everything; both encode what they have. 0 is an error.
//
//go:wasmexport jsonStruct
func jsonStruct() int32 { return again(new(webhook), body[:length]) }

//go:wasmexport jsonMap
func jsonMap() int32 { return again(new(map[string]any), body[:length]) }

func again(v any, text []byte) int32 {
	if json.Unmarshal(text, v) != nil {
		return 0
	}
	out, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return int32(len(out))
}

func deep(n int) int {
	var pad [16]int
	pad[n%16] = n
	return deep(n+1) + pad[(n+1)%16]
}

var stopped bool // never

func handle(u *sdk.Unit) error {
	text := u.Message(0).Body()
	switch text[0] {
	case 'l':
		for n := 0; !stopped; n++ {
			length = int32(n)
		}
	case 't':
		length = tree(34)
	case 'h':
		for !stopped {
			length = int32(u.Len())
		}
	case 'r':
		length = int32(deep(1))
	default:
		if again(new(webhook), text) == 0 || again(new(map[string]any), text) == 0 {
			return errors.New("the body is not JSON")
		}
	}
	return nil
}
