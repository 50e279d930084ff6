// The AssemblyScript guest of the benchmarks: the functions are those of guest.c. It has no JSON of its own.
// @ts-ignore: decorator
@external("parley_v1", "message_body")
declare function message_body(index: i32, buf: usize, len: i32): i32;

const body = new StaticArray<u8>(64 << 10);
let length: i32 = 0;

export function input(n: i32): usize {
  length = n;
  return changetype<usize>(body);
}

export function noop(): void {}

export function hot(n: i32): i32 {
  let x: u32 = 2463534242;
  for (let i: i32 = 0; i < n; i++) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  return x;
}

export function sum(): i32 {
  let s: u32 = 0;
  for (let i: i32 = 0; i < length; i++) s = s * 31 + unchecked(body[i]);
  return s;
}

export function parley_handle(): i32 {
  length = message_body(0, changetype<usize>(body), body.length);
  return sum() == 0 ? 1 : 0;
}
