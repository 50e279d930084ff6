//go:build linux || darwin

package guest

import "syscall"

// reserve maps size bytes of zeroes that cost nothing until they are touched. ok is false when the system refuses.
func reserve(size uint64) (b []byte, ok bool) {
	if size == 0 {
		return nil, false
	}
	b, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	return b, err == nil
}

func release(b []byte) { _ = syscall.Munmap(b) } // fails only for what was not mapped
