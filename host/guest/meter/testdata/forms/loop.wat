;; A check at the function entry and one right behind the loop header.
(module
  (type (func (param i32) (result i32)))
  (func (export "count") (type 0) (local i32)
    loop
      local.get 1
      i32.const 1
      i32.add
      local.tee 1
      local.get 0
      i32.lt_u
      br_if 0
    end
    local.get 1))
