package guest

import (
	"bytes"
	"testing"
)

// TestMemoryIsFresh: an instance finds zeroes, also where its memory served another instance before.
func TestMemoryIsFresh(t *testing.T) {
	p := load(t, proxyModule(), Options{Limits: Limits{Memory: 4 << 20}})
	zero := make([]byte, 8*pageSize)
	for round := range 4 {
		in, err := p.instantiate(t.Context(), nil, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		mem := in.module.Memory()
		if _, ok := mem.Grow(7); !ok {
			t.Fatal("it does not grow")
		}
		all, _ := mem.Read(0, 8*pageSize)
		if !bytes.Equal(all, zero) {
			t.Fatalf("round %d: the memory is not empty", round)
		}
		copy(all, bytes.Repeat([]byte{0xff}, len(all)))
		in.close()
		if kept := p.spare.kept.Load(); kept == nil || kept.used != 8*pageSize {
			t.Fatalf("round %d: kept %+v", round, kept)
		}
	}
	p.Trim(0)
	if p.spare.kept.Load() != nil {
		t.Error("Trim(0) kept a memory")
	}
}

// TestMemoryWithoutReservation: where the system reserves nothing, memory grows by moving.
func TestMemoryWithoutReservation(t *testing.T) {
	l := linear{limit: 10 * pageSize}
	b := l.Reallocate(pageSize)
	b[5] = 7
	for _, pages := range []uint64{2, 3, 10} {
		b = l.Reallocate(pages * pageSize)
		if uint64(len(b)) != pages*pageSize || b[5] != 7 || b[len(b)-1] != 0 {
			t.Errorf("%d pages: %d bytes, %d, %d", pages, len(b), b[5], b[len(b)-1])
		}
	}
	if l.Reallocate(11*pageSize) != nil || !l.refused {
		t.Error("it grew beyond its limit")
	}
	l.Free()
}
