package guest

import (
	"bytes"
	"testing"

	"parley/sdk/abi"
)

// startingModule is a handler whose _initialize traps unless message_dead_letter answers ERR_NO_UNIT and message_count 0.
func startingModule() []byte {
	i32 := byte(0x7f)
	imports := [][]byte{
		bytes.Join([][]byte{text(abi.Module), text("message_dead_letter"), {0, 1}}, nil),
		bytes.Join([][]byte{text(abi.Module), text("message_count"), {0, 0}}, nil),
	}
	exports := [][]byte{append(text(abi.Memory), 2, 0), append(text(abi.Handle), 0, 2), append(text(abi.Initialize), 0, 3)}
	handle := []byte{0, 0x41, 0, 0x0b}
	start := []byte{
		0, 0x41, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0x10, 0, // message_dead_letter(0, 0, 0, 0, 0)
		0x41, 0x6f, 0x47, // is not -17
		0x10, 1, 0x72, // or there are messages
		0x04, 0x40, 0x00, 0x0b, 0x0b, // unreachable
	}
	return bytes.Join([][]byte{
		magic,
		{1, 0, 0, 0},
		section(1, vec([]byte{0x60, 0, 1, i32}, []byte{0x60, 5, i32, i32, i32, i32, i32, 1, i32}, []byte{0x60, 0, 0})),
		section(2, vec(imports...)), section(3, vec([]byte{0}, []byte{2})), section(5, vec([]byte{0, 1})), section(7, vec(exports...)),
		section(10, vec(append(uleb(len(handle)), handle...), append(uleb(len(start)), start...))),
	}, nil)
}

// TestNoUnitWhileAnInstanceStarts: an instance that is made for an attempt cannot act in its unit before the handler is called.
func TestNoUnitWhileAnInstanceStarts(t *testing.T) {
	p := load(t, startingModule(), Options{Instances: PerAttempt})
	for range 2 {
		wantCommit(t, attemptOf(t, p, "x"))
	}
}
