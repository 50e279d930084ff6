;; trouble does what the first byte of its message's body says. Every test of a bound is one letter.
(module
  (import "parley_v1" "message_count" (func $message_count (result i32)))
  (import "parley_v1" "message_body" (func $message_body (param i32 i32 i32) (result i32)))
  (import "parley_v1" "queue_send" (func $queue_send
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i64 i64) (result i32)))
  (import "parley_v1" "dialog_end" (func $dialog_end (param i32 i32) (result i32)))
  (import "parley_v1" "dead_letter" (func $dead_letter (param i32 i32 i32 i32) (result i32)))
  (import "parley_v1" "retry_after" (func $retry_after (param i64) (result i32)))
  (import "parley_v1" "log" (func $log (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll_oneoff (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random_get (param i32 i32) (result i32)))

  (memory (export "memory") 2)
  (data (i32.const 100) "triaged")
  (data (i32.const 200) "a line of sixty-four bytes, its line feed counted, as in case 35")
  (data (i32.const 263) "\n")
  (data (i32.const 300) "\ff\fe\n")
  (data (i32.const 400) "TooBadReason")
  ;; a subscription to the monotonic clock, 1.5 s from now
  (data (i32.const 1000) "\01\00\00\00\00\00\00\00\00\00\00\00\00\00\00\00\01\00\00\00\00\00\00\00\00\2f\68\59\00\00\00\00")
  ;; vectors: the line, the two bytes, a whole page
  (data (i32.const 2000) "\c8\00\00\00\40\00\00\00")
  (data (i32.const 2008) "\2c\01\00\00\03\00\00\00")
  (data (i32.const 2016) "\00\00\01\00\00\00\01\00")

  (global $seen (mut i32) (i32.const 0))

  (func $is (param $c i32) (param $want i32) (result i32)
    (i32.eq (local.get $c) (local.get $want)))

  (func $recurse (param $n i32) (result i32)
    (i32.add (call $recurse (i32.add (local.get $n) (i32.const 1))) (i32.const 1)))

  (func $line (param $fd i32) (param $vector i32)
    (drop (call $fd_write (local.get $fd) (local.get $vector) (i32.const 1) (i32.const 3000))))

  (func (export "parley_handle") (result i32)
    (local $c i32) (local $i i32)
    (drop (call $message_body (i32.const 0) (i32.const 0) (i32.const 16)))
    (local.set $c (i32.load8_u (i32.const 0)))

    ;; b: the global must be as it was at the start; r: set it
    (if (call $is (local.get $c) (i32.const 98)) (then (return (global.get $seen))))
    (global.set $seen (i32.const 1))

    (if (call $is (local.get $c) (i32.const 117)) (then unreachable))                       ;; u
    (if (call $is (local.get $c) (i32.const 108)) (then (loop $l (br $l))))                 ;; l
    (if (call $is (local.get $c) (i32.const 114)) (then (drop (call $recurse (i32.const 0))))) ;; r
    (if (call $is (local.get $c) (i32.const 48)) (then (call $proc_exit (i32.const 0))))    ;; 0
    (if (call $is (local.get $c) (i32.const 51)) (then (call $proc_exit (i32.const 3))))    ;; 3
    (if (call $is (local.get $c) (i32.const 57)) (then (return (i32.const 9))))             ;; 9
    (if (call $is (local.get $c) (i32.const 115)) (then                                     ;; s: sleep
      (drop (call $poll_oneoff (i32.const 1000) (i32.const 1100) (i32.const 1) (i32.const 3000)))))
    (if (call $is (local.get $c) (i32.const 101)) (then (loop $l                            ;; e: send for ever
      (drop (call $queue_send (i32.const 100) (i32.const 7) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1) (i64.const 0) (i64.const 0)))
      (br $l))))
    (if (call $is (local.get $c) (i32.const 69)) (then (loop $l                             ;; E: send 64 KiB for ever
      (drop (call $queue_send (i32.const 100) (i32.const 7) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 65536) (i64.const 0) (i64.const 0)))
      (br $l))))
    (if (call $is (local.get $c) (i32.const 104)) (then                                     ;; h: host calls for ever
      (loop $l (drop (call $message_count)) (br $l))))
    (if (call $is (local.get $c) (i32.const 103)) (then                                     ;; g: grow, then trap
      (loop $l (br_if $l (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0)))) unreachable))
    (if (call $is (local.get $c) (i32.const 71)) (then                                      ;; G: grow, live with the refusal
      (loop $l (br_if $l (i32.ge_s (memory.grow (i32.const 16)) (i32.const 0)))) (return (i32.const 0))))
    (if (call $is (local.get $c) (i32.const 111)) (then (loop $l                            ;; o: print for ever
      (call $line (i32.const 1) (i32.const 2000)) (call $line (i32.const 2) (i32.const 2000)) (br $l))))
    (if (call $is (local.get $c) (i32.const 112)) (then                                     ;; p: print 100,000 lines, commit
      (local.set $i (i32.const 100000))
      (loop $l
        (call $line (i32.const 1) (i32.const 2000)) (call $line (i32.const 2) (i32.const 2000))
        (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
      (return (i32.const 0))))
    (if (call $is (local.get $c) (i32.const 76)) (then                                      ;; L: one line of 10 MiB, commit
      (memory.fill (i32.const 65536) (i32.const 120) (i32.const 65536))
      (local.set $i (i32.const 160))
      (loop $l
        (call $line (i32.const 1) (i32.const 2016))
        (br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
      (return (i32.const 0))))
    (if (call $is (local.get $c) (i32.const 102)) (then                                     ;; f: bytes FF FE, commit
      (call $line (i32.const 1) (i32.const 2008)) (return (i32.const 0))))
    (if (call $is (local.get $c) (i32.const 100)) (then                                     ;; d: dead-letter
      (drop (call $dead_letter (i32.const 400) (i32.const 6) (i32.const 400) (i32.const 12)))
      (return (i32.const 2))))
    (if (call $is (local.get $c) (i32.const 97)) (then                                      ;; a: ask for a pause
      (drop (call $retry_after (i64.const 1500))) (return (i32.const 1))))
    (if (call $is (local.get $c) (i32.const 99)) (then                                      ;; c: end the conversation
      (drop (call $dialog_end (i32.const 0) (i32.const 0))) (return (i32.const 1))))
    (if (call $is (local.get $c) (i32.const 107)) (then (loop $l                            ;; k: log for ever
      (drop (call $log (i32.const 0) (i32.const 200) (i32.const 63))) (br $l))))
    (if (call $is (local.get $c) (i32.const 110)) (then                                     ;; n: names of 60 MiB for ever
      (drop (memory.grow (i32.const 998)))
      (loop $l (drop (call $queue_send (i32.const 65536) (i32.const 62914560) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i64.const -1) (i64.const 0)))
      (br $l))))
    (if (call $is (local.get $c) (i32.const 118)) (then                                     ;; v: 1,024 vectors of a page for ever
      (loop $l
        (i32.store (i32.add (i32.const 65536) (i32.mul (local.get $i) (i32.const 8))) (i32.const 0))
        (i32.store (i32.add (i32.const 65540) (i32.mul (local.get $i) (i32.const 8))) (i32.const 65536))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1024))))
      (loop $l
        (drop (call $fd_write (i32.const 1) (i32.const 65536) (i32.const 1024) (i32.const 3000))) (br $l))))
    (if (call $is (local.get $c) (i32.const 122)) (then (loop $l                            ;; z: random bytes for ever
      (drop (call $random_get (i32.const 0) (i32.const 131072))) (br $l))))
    (i32.const 0)))
