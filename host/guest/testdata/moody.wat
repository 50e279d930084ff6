;; moody starts, or fails to start, as the time says that it is: its _initialize fails in a way of its own for each of the first
;; nanoseconds of 1970. Its handler commits. As a command (moodycommand) it does the same in its start section.
(module
  (import "parley_v1" "now" (func $now (result i64)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)

  (func $recurse (param $n i32) (result i32)
    (i32.add (call $recurse (i32.add (local.get $n) (i32.const 1))) (i32.const 1)))

  (func (export "_initialize")
    (if (i64.eq (call $now) (i64.const 0)) (then unreachable))
    (if (i64.eq (call $now) (i64.const 1)) (then (loop $l (br $l))))
    (if (i64.eq (call $now) (i64.const 2)) (then (call $proc_exit (i32.const 0))))
    (if (i64.eq (call $now) (i64.const 3)) (then (call $proc_exit (i32.const 3))))
    (if (i64.eq (call $now) (i64.const 4)) (then (drop (call $recurse (i32.const 0)))))
    (if (i64.eq (call $now) (i64.const 5)) (then
      (if (i32.eq (memory.grow (i32.const 65000)) (i32.const -1)) (then unreachable)))))

  (func (export "parley_handle") (result i32) (i32.const 0)))
