package guest

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// WASI error numbers.
const (
	wasiBadf  = 8
	wasiFault = 21
	wasiInval = 28
)

// maxVectors and maxSubscriptions bound the work of one WASI call, which the meter cannot see.
const (
	maxVectors       = 1024
	maxSubscriptions = 64
)

// exportWASI adds WASI preview 1 to b: wazero's, except for the functions that may block, print or take long.
func exportWASI(b wazero.HostModuleBuilder) {
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(b)
	const i32 = api.ValueTypeI32
	override := func(name string, f function, params ...api.ValueType) {
		g := func(ctx context.Context, mod api.Module, stack []uint64) {
			stack[0] = uint64(f(instanceOf(ctx), mod.Memory(), stack))
		}
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(g), params, []api.ValueType{i32}).Export(name)
	}
	override("fd_write", fdWrite, i32, i32, i32, i32)
	override("fd_read", fdRead, i32, i32, i32, i32)
	override("poll_oneoff", pollOneoff, i32, i32, i32, i32)
	override("random_get", randomGet, i32, i32)
	for name, params := range filesystem {
		override(name, noFile, params...)
	}
}

// filesystem is the functions for files and sockets. There are none, and wazero's own would still walk through vectors and
// names of any length before they say so.
var filesystem = map[string][]api.ValueType{
	"fd_pread":                valueBytes("iiiIi"),
	"fd_pwrite":               valueBytes("iiiIi"),
	"fd_readdir":              valueBytes("iiiIi"),
	"path_create_directory":   valueBytes("iii"),
	"path_filestat_get":       valueBytes("iiiii"),
	"path_filestat_set_times": valueBytes("iiiiIIi"),
	"path_link":               valueBytes("iiiiiii"),
	"path_open":               valueBytes("iiiiiIIii"),
	"path_readlink":           valueBytes("iiiiii"),
	"path_remove_directory":   valueBytes("iii"),
	"path_rename":             valueBytes("iiiiii"),
	"path_symlink":            valueBytes("iiiii"),
	"path_unlink_file":        valueBytes("iii"),
	"sock_accept":             valueBytes("iii"),
	"sock_recv":               valueBytes("iiiiii"),
	"sock_send":               valueBytes("iiiii"),
	"sock_shutdown":           valueBytes("ii"),
}

// valueBytes reads types from letters: i is i32, I is i64.
func valueBytes(letters string) []api.ValueType {
	types := make([]api.ValueType, len(letters))
	for n, letter := range letters {
		types[n] = api.ValueTypeI32
		if letter == 'I' {
			types[n] = api.ValueTypeI64
		}
	}
	return types
}

func noFile(*instance, api.Memory, []uint64) int64 { return wasiBadf }

// vectors calls each for every buffer of an array of (pointer, length) until it returns false. Each charges for its bytes.
func vectors(in *instance, mem api.Memory, at, count uint32, each func(b []byte) bool) int64 {
	if count > maxVectors {
		return wasiInval
	}
	in.charge(int(count) * bytesPerUnit)
	for i := range count {
		entry, ok := mem.Read(at+8*i, 8)
		if !ok {
			return wasiFault
		}
		b, ok := mem.Read(binary.LittleEndian.Uint32(entry), binary.LittleEndian.Uint32(entry[4:]))
		if !ok {
			return wasiFault
		}
		if !each(b) {
			break
		}
	}
	return 0
}

func fdWrite(in *instance, mem api.Memory, stack []uint64) int64 {
	out := &in.stdout
	switch uint32(stack[0]) {
	case 1:
	case 2:
		out = &in.stderr
	default:
		return wasiBadf
	}
	var n uint32
	errno := vectors(in, mem, uint32(stack[1]), uint32(stack[2]), func(b []byte) bool {
		out.write(b)
		in.charge(min(len(b), out.limit))
		n += uint32(len(b))
		return true
	})
	if errno == 0 && !mem.WriteUint32Le(uint32(stack[3]), n) {
		return wasiFault
	}
	return errno
}

func fdRead(in *instance, mem api.Memory, stack []uint64) int64 {
	if uint32(stack[0]) != 0 {
		return wasiBadf
	}
	var n uint32
	errno := vectors(in, mem, uint32(stack[1]), uint32(stack[2]), func(b []byte) bool {
		k := copy(b, in.stdin)
		in.stdin = in.stdin[k:]
		in.charge(k)
		n += uint32(k)
		return k == len(b)
	})
	if errno == 0 && !mem.WriteUint32Le(uint32(stack[3]), n) {
		return wasiFault
	}
	return errno
}

func randomGet(in *instance, mem api.Memory, stack []uint64) int64 {
	buf, ok := mem.Read(uint32(stack[0]), uint32(stack[1]))
	if !ok {
		return wasiFault
	}
	for len(buf) > 0 {
		if err := in.check(); err != nil {
			panic(err)
		}
		n := min(len(buf), maxRandom)
		if _, err := in.random(buf[:n]); err != nil {
			panic(err)
		}
		buf = buf[n:]
	}
	return 0
}

// Kinds of subscriptions of poll_oneoff.
const (
	subscribeClock = 0
	subscribeRead  = 1
	subscribeWrite = 2
)

// pollOneoff waits for the earliest clock, unless a file is asked for: files are always ready. The wait ends early when
// the attempt does.
func pollOneoff(in *instance, mem api.Memory, stack []uint64) int64 {
	count := uint32(stack[2])
	if count == 0 || count > maxSubscriptions {
		return wasiInval
	}
	subs, ok := mem.Read(uint32(stack[0]), count*48)
	if !ok {
		return wasiFault
	}
	events, ok := mem.Read(uint32(stack[1]), count*32)
	if !ok {
		return wasiFault
	}
	wait := time.Duration(math.MaxInt64)
	for i := range count {
		if subs[48*i+8] != subscribeClock {
			wait = 0
			continue
		}
		d, errno := in.clockWait(subs[48*i:])
		if errno != 0 {
			return errno
		}
		wait = min(wait, d)
	}
	if wait > 0 {
		in.sleep(wait)
		in.ticks += int64(wait)
	}
	n := in.happened(subs, events, wait)
	if !mem.WriteUint32Le(uint32(stack[3]), n) {
		return wasiFault
	}
	return 0
}

// clockWait is how long a clock subscription has to wait.
func (in *instance) clockWait(sub []byte) (time.Duration, int64) {
	timeout := binary.LittleEndian.Uint64(sub[24:])
	d := time.Duration(min(timeout, math.MaxInt64))
	if binary.LittleEndian.Uint16(sub[40:])&1 == 0 {
		return d, 0
	}
	switch binary.LittleEndian.Uint32(sub[16:]) {
	case 0:
		return max(d-time.Duration(in.now().UnixNano()), 0), 0
	case 1:
		return max(d-time.Duration(in.nanotime()), 0), 0
	}
	return 0, wasiInval
}

// happened writes an event for each subscription that is due after waiting for waited, and returns how many.
func (in *instance) happened(subs, events []byte, waited time.Duration) (n uint32) {
	for ; len(subs) > 0; subs = subs[48:] {
		kind := subs[8]
		if kind == subscribeClock {
			relative := binary.LittleEndian.Uint16(subs[40:])&1 == 0
			if d, _ := in.clockWait(subs); relative && d > waited || !relative && d > 0 {
				continue
			}
		}
		e := events[32*n : 32*n+32]
		clear(e)
		copy(e, subs[:8])
		e[10] = kind
		if kind == subscribeRead {
			binary.LittleEndian.PutUint64(e[16:], uint64(len(in.stdin)))
		} else if kind != subscribeClock && kind != subscribeWrite {
			e[8] = wasiInval
		}
		n++
	}
	return n
}

// exportAbort gives AssemblyScript what it calls when an assertion fails.
func exportAbort(b wazero.HostModuleBuilder) {
	const i32 = api.ValueTypeI32
	abort := func(ctx context.Context, mod api.Module, stack []uint64) {
		panic(abortError(assemblyString(mod.Memory(), uint32(stack[0]))))
	}
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(abort), []api.ValueType{i32, i32, i32, i32}, nil).Export("abort")
}

type abortError string

func (e abortError) Error() string { return "abort: " + string(e) }

// assemblyString reads a string of AssemblyScript: UTF-16, its length in bytes in front of it.
func assemblyString(mem api.Memory, at uint32) string {
	if at < 4 {
		return ""
	}
	size, ok := mem.ReadUint32Le(at - 4)
	if !ok {
		return ""
	}
	b, ok := mem.Read(at, min(size, exitTail))
	if !ok {
		return ""
	}
	text := make([]rune, 0, len(b)/2)
	for ; len(b) >= 2; b = b[2:] {
		text = append(text, rune(binary.LittleEndian.Uint16(b)))
	}
	return string(text)
}
