;; Own functions move by one, imported ones stay. The leaf has no check: its callers pay the 22 units of two divisions and their
;; operands. The exported leaf is cheap enough to go unchecked; the dear one is reachable through its export, so it is checked.
(module
  (type (func (param i32) (result i32)))
  (import "env" "host" (func (type 0)))
  (func $leaf (type 0)
    local.get 0
    i32.const 3
    i32.div_u
    local.get 0
    i32.rem_u)
  (func $caller (type 0)
    local.get 0
    call $leaf
    call 0)
  (func $cheap (export "cheap") (type 0)
    local.get 0)
  (func $dear (export "dear") (type 0)
    local.get 0
    local.get 0
    i32.div_u)
  (func $tail (type 0)
    local.get 0
    return_call $leaf))
