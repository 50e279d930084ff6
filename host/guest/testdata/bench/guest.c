// The C guest of the benchmarks: what the exported functions do is the same in all languages. parley_handle does what the
// first byte of the body asks for, and otherwise adds up the bytes of the body.
#include <stdint.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name))) name
#define IMPORT(name) __attribute__((import_module("parley_v1"), import_name(#name))) name

int32_t IMPORT(message_count)(void);
int32_t IMPORT(message_body)(int32_t index, void *buf, int32_t len);

static uint8_t body[64 << 10];
static int32_t length;
static uint8_t megabyte[1 << 20];
static volatile uint32_t sink;

void *EXPORT(input)(int32_t n) {
	length = n;
	return body;
}

void EXPORT(noop)(void) {}

// hot is a tight loop: n steps of a xorshift generator.
int32_t EXPORT(hot)(int32_t n) {
	uint32_t x = 2463534242u;
	for (int32_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
	}
	return (int32_t)x;
}

int32_t EXPORT(sum)(void) {
	uint32_t s = 0;
	for (int32_t i = 0; i < length; i++) s = s * 31 + body[i];
	return (int32_t)s;
}

// tree is 2^(depth+1)-1 calls without a loop.
__attribute__((noinline)) int32_t EXPORT(tree)(int32_t depth) {
	return depth == 0 ? 1 : tree(depth - 1) + tree(depth - 1) + (int32_t)(sink & 1);
}

// deep is endless recursion that keeps 64 bytes of each call on the shadow stack, plain is one that keeps none.
__attribute__((noinline)) static uint32_t deep(uint32_t n) {
	volatile uint32_t pad[16];
	pad[n % 16] = n;
	return deep(n + 1) + pad[(n + 1) % 16];
}

__attribute__((noinline)) static uint32_t plain(uint32_t n) { return plain(n + sink) * 3 + n; }

#define DIV x = (0x7fffffffu ^ sink) / (x | 1) + 3;
#define DIV10 DIV DIV DIV DIV DIV DIV DIV DIV DIV DIV
#define DIV100 DIV10 DIV10 DIV10 DIV10 DIV10 DIV10 DIV10 DIV10 DIV10 DIV10

static void division(void) {
	for (uint32_t x = 7;;) {
		DIV100 DIV100 DIV100 DIV100 DIV100 DIV100 DIV100 DIV100 DIV100 DIV100
		sink = x & 1;
	}
}

int32_t EXPORT(parley_handle)(void) {
	length = message_body(0, body, sizeof body);
	switch (length > 0 ? body[0] : 0) {
	case 'l':
		for (;;) sink = sink + 1;
	case 't':
		sink = tree(34);
		break;
	case 'f':
		for (;;) {
			memset(megabyte, (int)(sink & 0xff), sizeof megabyte);
			sink = sink + megabyte[sink % sizeof megabyte] + 1;
		}
	case 'd':
		division();
		break;
	case 'h':
		for (;;) sink = sink + message_count();
	case 'r':
		sink = deep(1);
		break;
	case 'p':
		sink = plain(1);
		break;
	default:
		sink = sum() + hot(1000) + tree(8);
	}
	return 0;
}
