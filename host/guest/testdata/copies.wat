;; The whole handler of docs/abi.md.
(module
  (import "parley_v1" "message_body" (func $body (param i32 i32 i32) (result i32)))
  (import "parley_v1" "queue_send" (func $send
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i64) (result i32)))
  (memory (export "memory") 6)
  (data (i32.const 0) "copies")
  (func (export "parley_handle") (result i32)
    (local $n i32)
    (local.set $n (call $body (i32.const 0) (i32.const 65536) (i32.const 262144)))
    (if (i32.gt_s (local.get $n) (i32.const 262144)) (then (return (i32.const 1))))
    (i32.ne (i32.const 0) (call $send
      (i32.const 0) (i32.const 6)                            ;; queue
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) ;; type, id, session
      (i32.const 0) (i32.const 0)                            ;; properties
      (i32.const 65536) (local.get $n)                       ;; body
      (i64.const 0) (i64.const 0)))))                        ;; delay, time to live
