(module
  (type (func (param i32) (result i32)))
  (type (func))
  (import "__rt" "checkpoint" (func (type 1)))
  (global (mut i64) (i64.const 0))
  (export "count" (func 1))
  (export "__rt.counter" (global 0))
  (func (type 0) (local i32)
    global.get 0
    i64.const 2                      ;; loop, local.get behind it
    i64.sub
    global.set 0
    global.get 0
    i64.const 0
    i64.lt_s
    if
      call 0
    end
    loop
      global.get 0
      i64.const 8                    ;; one iteration: seven instructions and the way back
      i64.sub
      global.set 0
      global.get 0
      i64.const 0
      i64.lt_s
      if
        call 0
      end
      local.get 1
      i32.const 1
      i32.add
      local.tee 1
      local.get 0
      i32.lt_u
      br_if 0
    end
    local.get 1))
