// Package guest runs one plugin: it is the host side of ABI v1 (docs/abi.md) and the only importer of wazero.
//
// Load checks a module, rewrites it so that it counts its own work (package meter), compiles it and returns a Plugin,
// which is a host.Runner. Everything a handler asks for is staged and handed back in the Settlement; nothing a guest does
// has an effect by itself.
//
// # Instances
//
// A Plugin keeps a pool of instances, from none to as many as run at once. An instance that committed is used again; after
// a rollback, a trap, a stop or an exit it is closed, so that the memory a failed attempt wrote is never seen by the next.
// WASI commands get a fresh instance for each message.
//
// # Bounds
//
// Each Plugin has a wazero.Runtime of its own, because two plugins with the same bytes may have different limits. Work and
// time are bounded by the meter's checkpoint, memory by an allocator that refuses to grow, everything else (host calls,
// effects, output) by counting. No timer and no goroutine is started for an attempt.
package guest
