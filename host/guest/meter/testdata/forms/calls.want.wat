(module
  (type (func (param i32) (result i32)))
  (type (func))
  (import "env" "host" (func (type 0)))
  (import "__rt" "checkpoint" (func (type 1)))
  (global (mut i64) (i64.const 0))
  (export "cheap" (func 4))
  (export "dear" (func 5))
  (export "__rt.counter" (global 0))
  (func (type 0)
    local.get 0
    i32.const 3
    i32.div_u
    local.get 0
    i32.rem_u)
  (func (type 0)
    global.get 0
    i64.const 534                    ;; 1, call 5 and leaf 23, call 5 and host 500
    i64.sub
    global.set 0
    global.get 0
    i64.const 0
    i64.lt_s
    if
      call 1
    end
    local.get 0
    call 2
    call 0)
  (func (type 0)
    local.get 0)
  (func (type 0)
    global.get 0
    i64.const 12
    i64.sub
    global.set 0
    global.get 0
    i64.const 0
    i64.lt_s
    if
      call 1
    end
    local.get 0
    local.get 0
    i32.div_u)
  (func (type 0)
    global.get 0
    i64.const 29
    i64.sub
    global.set 0
    global.get 0
    i64.const 0
    i64.lt_s
    if
      call 1
    end
    local.get 0
    return_call 2))
