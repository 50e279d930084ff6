;; Guests that a deadline must stop, each in its own export, and a few that end by themselves.
(module
  (import "env" "host" (func $host))
  (import "env" "slow" (func $slow))
  (memory (export "memory") 32)
  (table funcref (elem $host $slow $noop))
  (type $void (func))

  (func $noop)

  (func (export "spin") (loop (br 0)))

  ;; 2^34 calls without any loop.
  (func $tree (param i32)
    local.get 0
    if
      (call $tree (i32.sub (local.get 0) (i32.const 1)))
      (call $tree (i32.sub (local.get 0) (i32.const 1)))
    end)
  (func (export "tree") (call $tree (i32.const 34)))
  (func (export "tree12") (call $tree (i32.const 12)))

  (func (export "fill")
    (loop
      (memory.fill (i32.const 0) (i32.const 1) (i32.const 1048576))
      (br 0)))

  (func (export "copy")
    (loop
      (memory.copy (i32.const 0) (i32.const 1048576) (i32.const 1048576))
      (br 0)))

  (func (export "division") (local i64)
    (local.set 0 (i64.const -1))
    (loop
      (local.set 0 (i64.div_u (i64.div_u (i64.div_u (i64.div_u (i64.or (local.get 0) (i64.const 0x7000000000000000))
        (i64.or (local.get 0) (i64.const 1))) (i64.const 3)) (i64.const 5)) (i64.const 7)))
      (br 0)))

  (func (export "host_loop") (loop (call $host) (br 0)))
  (func (export "host_table_loop") (loop (call_indirect (type $void) (i32.const 1)) (br 0)))

  (func $recursion (export "recursion") (call $recursion))
  (func $tail (export "tail") (return_call $tail))

  (func (export "grow_loop")
    (loop
      (drop (memory.grow (i32.const 65536)))
      (br 0)))

  ;; 1000 turns: the count of units is exact.
  (func (export "thousand") (local i32)
    (loop
      (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 1000)))))
  (func (export "one_host_call") (call $host))
)
