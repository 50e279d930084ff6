// The Zig guest of the benchmarks: the functions are those of guest.c, and JSON with std.json. Zig 0.11.
const std = @import("std");

extern "parley_v1" fn message_body(index: i32, buf: [*]u8, len: i32) i32;

const Repository = struct { full_name: []const u8 = "" };
const Sender = struct { login: []const u8 = "" };
const Webhook = struct { action: []const u8 = "", repository: Repository = .{}, sender: Sender = .{} };

var body: [64 << 10]u8 = undefined;
var length: usize = 0;
var heap: [8 << 20]u8 = undefined;

export fn input(n: i32) [*]u8 {
    length = @intCast(n);
    return &body;
}

export fn noop() void {}

export fn hot(n: i32) i32 {
    var x: u32 = 2463534242;
    var i: i32 = 0;
    while (i < n) : (i += 1) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
    }
    return @bitCast(x);
}

export fn sum() i32 {
    var s: u32 = 0;
    for (body[0..length]) |b| s = s *% 31 +% b;
    return @bitCast(s);
}

// jsonStruct decodes three fields, jsonMap everything; both encode what they have. 0 is an error.
export fn jsonStruct() i32 {
    var fixed = std.heap.FixedBufferAllocator.init(&heap);
    const all = fixed.allocator();
    const hook = std.json.parseFromSliceLeaky(Webhook, all, body[0..length], .{ .ignore_unknown_fields = true }) catch return 0;
    const text = std.json.stringifyAlloc(all, hook, .{}) catch return 0;
    return @intCast(text.len);
}

export fn jsonMap() i32 {
    var fixed = std.heap.FixedBufferAllocator.init(&heap);
    const all = fixed.allocator();
    const tree = std.json.parseFromSliceLeaky(std.json.Value, all, body[0..length], .{}) catch return 0;
    const text = std.json.stringifyAlloc(all, tree, .{}) catch return 0;
    return @intCast(text.len);
}

export fn parley_handle() i32 {
    const n = message_body(0, &body, body.len);
    length = @intCast(n);
    return if (jsonStruct() > 0 and jsonMap() > 0) 0 else 1;
}
