/* Four-lane and two-lane vectors of 128 bits, in the GCC and Clang vector
 * extensions: wasm SIMD128 under emscripten, SSE or NEON natively.
 *
 * Operators (+ - * / & | ^ comparisons) come with the types; this header adds the rest: loads and
 * stores at any alignment, splats, lane shuffles. Nothing here knows a tensor; every lane is
 * computed strictly, without fma. */
#ifndef PG_SIMD_H
#define PG_SIMD_H

#include <stdint.h>
#include <string.h>

typedef float f32x4 __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));
typedef uint8_t u8x16 __attribute__((vector_size(16)));

/* Lanes of a then b, picked by constant indices. */
#define SIMD_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

/* Goes before a function to be compiled small, in a file that is built for speed. */
#ifdef __clang__
#define SMALL __attribute__((minsize))
#else
#define SMALL
#endif

/* Goes before a loop over few vectors, which then keeps them in registers, one after the other. */
#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* Reads 16 bytes at any alignment. */
static inline f32x4 f32x4_load(const float *from) {
  f32x4 v;
  memcpy(&v, from, sizeof v);
  return v;
}

static inline f64x2 f64x2_load(const double *from) {
  f64x2 v;
  memcpy(&v, from, sizeof v);
  return v;
}

static inline i32x4 i32x4_load(const int32_t *from) {
  i32x4 v;
  memcpy(&v, from, sizeof v);
  return v;
}

static inline u8x16 u8x16_load(const uint8_t *from) {
  u8x16 v;
  memcpy(&v, from, sizeof v);
  return v;
}

/* Writes 16 bytes at any alignment. */
static inline void f32x4_store(float *to, f32x4 v) { memcpy(to, &v, sizeof v); }
static inline void f64x2_store(double *to, f64x2 v) { memcpy(to, &v, sizeof v); }
static inline void i32x4_store(int32_t *to, i32x4 v) { memcpy(to, &v, sizeof v); }
static inline void u8x16_store(uint8_t *to, u8x16 v) { memcpy(to, &v, sizeof v); }

/* A vector with one scalar in every lane. */
static inline f32x4 f32x4_splat(float x) { return (f32x4){x, x, x, x}; }
static inline f64x2 f64x2_splat(double x) { return (f64x2){x, x}; }
static inline i32x4 i32x4_splat(int32_t x) { return (i32x4){x, x, x, x}; }

/* a < b ? b : a and b < a ? b : a in each lane, so that a NaN in a stays, in one instruction.
 * Compilers make up to eight of the operators, if b is constant. */
static inline f32x4 f32x4_larger(f32x4 a, f32x4 b) {
#ifdef __wasm_simd128__
  return __builtin_wasm_pmax_f32x4(a, b);
#else
  i32x4 less = a < b;
  return (f32x4)(((i32x4)b & less) | ((i32x4)a & ~less));
#endif
}

static inline f32x4 f32x4_smaller(f32x4 a, f32x4 b) {
#ifdef __wasm_simd128__
  return __builtin_wasm_pmin_f32x4(a, b);
#else
  i32x4 less = b < a;
  return (f32x4)(((i32x4)b & less) | ((i32x4)a & ~less));
#endif
}

static inline u8x16 u8x16_smaller(u8x16 a, u8x16 b) {
#ifdef __wasm_simd128__
  return (u8x16)__builtin_wasm_min_u_i8x16(a, b);
#else
  u8x16 less = (u8x16)(a < b);
  return (a & less) | (b & ~less);
#endif
}

/* Bools of any bytes as 0 and 1. */
static inline u8x16 u8x16_truth(u8x16 v) {
  return u8x16_smaller(v, (u8x16){1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
}

/* The lanes below zero, as bits. */
static inline uint32_t i32x4_signs(i32x4 v) {
#ifdef __wasm_simd128__
  return (uint32_t)__builtin_wasm_bitmask_i32x4(v);
#else
  return (uint32_t)((v[0] < 0) | (v[1] < 0) << 1 | (v[2] < 0) << 2 | (v[3] < 0) << 3);
#endif
}

/* Turns rows into columns in place. */
static inline void f32x4_transpose(f32x4 rows[4]) {
  f32x4 low01 = SIMD_SHUFFLE(rows[0], rows[1], 0, 4, 1, 5);
  f32x4 high01 = SIMD_SHUFFLE(rows[0], rows[1], 2, 6, 3, 7);
  f32x4 low23 = SIMD_SHUFFLE(rows[2], rows[3], 0, 4, 1, 5);
  f32x4 high23 = SIMD_SHUFFLE(rows[2], rows[3], 2, 6, 3, 7);
  rows[0] = SIMD_SHUFFLE(low01, low23, 0, 1, 4, 5);
  rows[1] = SIMD_SHUFFLE(low01, low23, 2, 3, 6, 7);
  rows[2] = SIMD_SHUFFLE(high01, high23, 0, 1, 4, 5);
  rows[3] = SIMD_SHUFFLE(high01, high23, 2, 3, 6, 7);
}

static inline void f64x2_transpose(f64x2 rows[2]) {
  f64x2 first = SIMD_SHUFFLE(rows[0], rows[1], 0, 2);
  rows[1] = SIMD_SHUFFLE(rows[0], rows[1], 1, 3);
  rows[0] = first;
}

/* Pairs that lie in a then b, as a vector of their first and one of their second halves. */
static inline void f32x4_unzip(f32x4 a, f32x4 b, f32x4 *first, f32x4 *second) {
  *first = SIMD_SHUFFLE(a, b, 0, 2, 4, 6);
  *second = SIMD_SHUFFLE(a, b, 1, 3, 5, 7);
}

static inline void f64x2_unzip(f64x2 a, f64x2 b, f64x2 *first, f64x2 *second) {
  *first = SIMD_SHUFFLE(a, b, 0, 2);
  *second = SIMD_SHUFFLE(a, b, 1, 3);
}

/* The inverse of the above: pairs of lanes of a and b. */
static inline void f32x4_zip(f32x4 a, f32x4 b, f32x4 *low, f32x4 *high) {
  *low = SIMD_SHUFFLE(a, b, 0, 4, 1, 5);
  *high = SIMD_SHUFFLE(a, b, 2, 6, 3, 7);
}

static inline void f64x2_zip(f64x2 a, f64x2 b, f64x2 *low, f64x2 *high) {
  *low = SIMD_SHUFFLE(a, b, 0, 2);
  *high = SIMD_SHUFFLE(a, b, 1, 3);
}

/* Reverses the lanes. */
static inline f32x4 f32x4_reversed(f32x4 v) { return SIMD_SHUFFLE(v, v, 3, 2, 1, 0); }
static inline f64x2 f64x2_reversed(f64x2 v) { return SIMD_SHUFFLE(v, v, 1, 0); }

#endif
