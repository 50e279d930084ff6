// Package meter rewrites a WebAssembly module so that it counts its own work and calls its host back every so many units of it.
// The host can then stop the guest at any moment, whatever the guest does, at a few percent of its speed.
// The package is pure: bytes in, bytes out. It knows no runtime.
//
// docs/metering.md describes the method, the cost table and the limits; this comment is the contract for the embedder.
//
// # What the rewritten module has in addition
//
//   - One exported global, mutable i64, initial value 0, named [CounterExport]: the units left before the guest calls back.
//   - One imported function [CheckpointModule].[CheckpointName] of type () -> (), the last of the imports.
//
// Both names lie in a reserved space: a module that uses an import module or export name "__rt" or "__rt.…" is refused, and so is
// every index that is valid only after the rewriting. A guest can therefore neither read nor write its counter.
//
// # What the embedder does
//
// Before every call from the host into the guest it sets the counter to what [Meter.Begin] returns; after the call it reads the
// counter and [Meter.Used] says how many units were used. A call of the guest from within a host function that the guest called
// (a nested call) shares the counter: no second Begin.
//
// The guest subtracts the cost of each stretch of code on entering it and, when the counter has become negative, calls the
// checkpoint before running that stretch. The checkpoint function reads the counter of the calling instance, passes it to
// [Meter.Checkpoint] and then either
//
//   - stores the returned value, which is never negative, in the counter and returns: the guest runs on; or
//   - got an error: it panics with that error. Runtimes on Go, wazero among them, recover the panic of a host function and return
//     it from the outermost call, wrapped so that errors.Is finds [ErrFuelExhausted], [ErrDeadlineExceeded] or the cause given to
//     [Meter.Stop]. The counter stays negative. The instance must be closed and never be called again: it was left in the
//     middle of its work, with locks held and its own stack pointer moved.
//
// The counter starts at zero, so a start function and _initialize reach the checkpoint at their first unit: the checkpoint must
// work before the instantiation has returned, and find the counter through the module that calls it.
//
// # Charging host calls
//
// Each call of an imported function costs a fixed 500 units, also when it is made through a table. A host function whose work
// depends on its arguments (bytes copied, say) adds to that by lowering the counter before it returns: counter = counter - units.
// Nothing else is to do, the guest notices at its next check. The counter may become as negative as it likes.
//
// # What this cannot stop
//
// A host function that blocks: it must honour its context itself. One single memory.fill, memory.copy, memory.grow or table.grow,
// which runs to its end: bound the memory ([Module.Memories] says what a module asks for) and the tables ([Options.TableElements]).
package meter
