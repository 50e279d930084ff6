;; A handler that fails an assertion as modules of AssemblyScript do.
(module
  (import "env" "abort" (func $abort (param i32 i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 12) "\0a\00\00\00n\00o\00 \00\e9\00!\00")
  (func (export "parley_handle") (result i32)
    (call $abort (i32.const 16) (i32.const 0) (i32.const 1) (i32.const 2)) (i32.const 0)))
