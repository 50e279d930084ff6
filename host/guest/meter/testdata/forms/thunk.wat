;; An imported function that becomes a value (element, export, global, ref.func) is replaced by a thunk that charges for it: who
;; calls it through a table cannot know that it is dear. The direct call and start stay as they are.
(module
  (type (func (param i64 f32) (result i32)))
  (type (func))
  (import "env" "quiet" (func (type 1)))
  (import "env" "host" (func (type 0)))
  (table 4 funcref)
  (global funcref (ref.func 1))
  (export "again" (func 1))
  (start 0)
  (elem (i32.const 0) func 1 2)
  (elem (table 0) (i32.const 2) funcref (ref.func 1) (ref.null func))
  (elem declare func 2)
  (func (type 1)
    ref.func 1
    drop
    ref.func 2
    drop))
