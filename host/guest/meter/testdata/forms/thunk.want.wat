(module
  (type (func (param i64 f32) (result i32)))
  (type (func))
  (type (func))
  (import "env" "quiet" (func (type 1)))
  (import "env" "host" (func (type 0)))
  (import "__rt" "checkpoint" (func (type 2)))
  (table 4 1048576 funcref)
  (global funcref (ref.func 4))
  (global (mut i64) (i64.const 0))
  (export "again" (func 4))
  (export "__rt.counter" (global 1))
  (start 0)
  (elem (i32.const 0) func 4 3)
  (elem (table 0) (i32.const 2) funcref (ref.func 4) (ref.null func))
  (elem declare func 3)
  (func (type 1)
    ref.func 4
    drop
    ref.func 3
    drop)
  (func (type 0)
    global.get 1
    i64.const 505
    i64.sub
    global.set 1
    global.get 1
    i64.const 0
    i64.lt_s
    if
      call 2
    end
    local.get 0
    local.get 1
    call 1))
