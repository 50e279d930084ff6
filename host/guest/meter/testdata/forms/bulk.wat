;; Bulk instructions pay by their length, through a spare local. memory.grow has a flat price.
(module
  (type (func (param i32 i32 i32)))
  (type (func (result i32)))
  (memory 1)
  (func (type 0)
    local.get 0
    local.get 1
    local.get 2
    memory.fill)
  (func (type 1)
    i32.const 1
    memory.grow))
