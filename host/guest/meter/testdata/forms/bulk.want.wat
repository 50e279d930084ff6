(module
  (type (func (param i32 i32 i32)))
  (type (func (result i32)))
  (type (func))
  (import "__rt" "checkpoint" (func (type 2)))
  (memory 1)
  (global (mut i64) (i64.const 0))
  (export "__rt.counter" (global 0))
  (func (type 0) (local i32)
    local.get 0
    local.get 1
    local.get 2
    local.tee 3
    global.get 0
    local.get 3
    i64.extend_i32_u
    i64.const 4
    i64.shr_u
    i64.sub
    global.set 0
    global.get 0
    i64.const 0
    i64.lt_s
    if
      call 0
    end
    memory.fill)
  (func (type 1)
    global.get 0
    i64.const 10001
    i64.sub
    global.set 0
    global.get 0
    i64.const 0
    i64.lt_s
    if
      call 0
    end
    i32.const 1
    memory.grow))
