/* Casts: loops from every dtype to every other, and moves of one dtype.
 *
 * A float becomes an integer the way x86 does it, on every host. The common types have a loop for
 * each pair; the others go through a neighbour. */
#include "kernels/complex.h"
#include "kernels/simd.h"
#include "ops/view/copy.h"

#define CAST_LOOP(...) CAST_LOOP_BY(VECTOR_LOOP, __VA_ARGS__)
/* For types without vectors. */
#define SERIAL_CAST_LOOP(...) CAST_LOOP_BY(, __VA_ARGS__)
#define CAST_LOOP_BY(PRAGMA, FN, D, S, VALUE)                                 \
  static void FN(char **ptr, const int64_t *st, int64_t n, const void *ctx) { \
    (void)ctx;                                                                \
    if (st[0] == sizeof(D) && st[1] == sizeof(S)) {                           \
      D *o = (D *)(void *)ptr[0];                                             \
      const S *a = (const S *)(const void *)ptr[1];                           \
      PRAGMA for (int64_t i = 0; i < n; i++) {                                \
        S v = ELEMENT(a + i);                                                 \
        o[i] = VALUE;                                                         \
      }                                                                       \
      return;                                                                 \
    }                                                                         \
    char *o = ptr[0];                                                         \
    const char *a = ptr[1];                                                   \
    for (int64_t i = 0; i < n; i++, o += st[0], a += st[1]) {                 \
      S v = ELEMENT((const S *)(const void *)a);                              \
      *(D *)(void *)o = VALUE;                                                \
    }                                                                         \
  }

/* x86 converts to 32 bits for the narrower signed types, and to 64 for the others. */
static inline int32_t int32_from_double(double v) {
  return v >= -2147483648.0 && v < 2147483648.0 ? (int32_t)v : INT32_MIN;
}

#define PLAIN(D, VIA) ((D)v)
#define VIA_INT(D, VIA) ((D)VIA((double)v))

/* ------------------------------------------------------------ between the common types */

/* Casts from one type to the eight common ones; TO_INT converts a value to an integer. */
#define CASTS_FROM(s, S, TO_INT)                                        \
  CAST_LOOP(s##_to_u8, uint8_t, S, TO_INT(uint8_t, int_from_double))    \
  CAST_LOOP(s##_to_i8, int8_t, S, TO_INT(int8_t, int32_from_double))    \
  CAST_LOOP(s##_to_i16, int16_t, S, TO_INT(int16_t, int32_from_double)) \
  CAST_LOOP(s##_to_i32, int32_t, S, TO_INT(int32_t, int32_from_double)) \
  CAST_LOOP(s##_to_i64, int64_t, S, TO_INT(int64_t, int_from_double))   \
  CAST_LOOP(s##_to_f32, float, S, (float)v)                             \
  CAST_LOOP(s##_to_f64, double, S, (double)v)                           \
  CAST_LOOP(s##_to_b8, bool, S, v != 0)
CASTS_FROM(u8, uint8_t, PLAIN)
CASTS_FROM(i8, int8_t, PLAIN)
CASTS_FROM(i16, int16_t, PLAIN)
CASTS_FROM(i32, int32_t, PLAIN)
CASTS_FROM(i64, int64_t, PLAIN)
CASTS_FROM(f32, float, VIA_INT)
CASTS_FROM(f64, double, VIA_INT)
CASTS_FROM(b8, bool, PLAIN)

/* ------------------------------------------------------------ the other types */

/* Each of these types has loops to and from one or a few neighbours, and reaches the others through
 * one of them, a block at a time. */
static inline complex_f64 wide_of(ComplexHalf v) {
  return complex_of((double)float_of_half(v.re), (double)float_of_half(v.im));
}
static inline ComplexHalf narrow_of(complex_f64 v) {
  return (ComplexHalf){half_of_float((float)real_part(v)), half_of_float((float)imaginary_part(v))};
}
SERIAL_CAST_LOOP(f16_to_f32, float, Half, float_of_half(v))
SERIAL_CAST_LOOP(f32_to_f16, Half, float, half_of_float(v))
SERIAL_CAST_LOOP(bf16_to_f32, float, BHalf, float_of_bhalf(v))
SERIAL_CAST_LOOP(f32_to_bf16, BHalf, float, bhalf_of_float(v))
SERIAL_CAST_LOOP(u16_to_i64, int64_t, uint16_t, v)
SERIAL_CAST_LOOP(i64_to_u16, uint16_t, int64_t, (uint16_t)v)
SERIAL_CAST_LOOP(u32_to_i64, int64_t, uint32_t, v)
SERIAL_CAST_LOOP(i64_to_u32, uint32_t, int64_t, (uint32_t)v)
SERIAL_CAST_LOOP(u64_to_i64, int64_t, uint64_t, (int64_t)v)
SERIAL_CAST_LOOP(i64_to_u64, uint64_t, int64_t, (uint64_t)v)
SERIAL_CAST_LOOP(u64_to_f32, float, uint64_t, (float)v)
SERIAL_CAST_LOOP(f32_to_u64, uint64_t, float, unsigned_from_double((double)v))
SERIAL_CAST_LOOP(u64_to_f64, double, uint64_t, (double)v)
SERIAL_CAST_LOOP(f64_to_u64, uint64_t, double, unsigned_from_double(v))
SERIAL_CAST_LOOP(c64_to_f32, float, complex_f32, real_part(v))
SERIAL_CAST_LOOP(f32_to_c64, complex_f32, float, complex_of(v, 0))
SERIAL_CAST_LOOP(c128_to_f64, double, complex_f64, real_part(v))
SERIAL_CAST_LOOP(f64_to_c128, complex_f64, double, complex_of(v, 0))
SERIAL_CAST_LOOP(c64_to_c128, complex_f64, complex_f32, (complex_f64)v)
SERIAL_CAST_LOOP(c128_to_c64, complex_f32, complex_f64, (complex_f32)v)
SERIAL_CAST_LOOP(c32_to_c128, complex_f64, ComplexHalf, wide_of(v))
SERIAL_CAST_LOOP(c128_to_c32, ComplexHalf, complex_f64, narrow_of(v))
SERIAL_CAST_LOOP(c64_to_b8, bool, complex_f32, real_part(v) != 0 || imaginary_part(v) != 0)
SERIAL_CAST_LOOP(c128_to_b8, bool, complex_f64, real_part(v) != 0 || imaginary_part(v) != 0)

enum { CHAIN_BLOCK = 128 };

/* Runs the first loop to a block in between, and the second from there. */
static void run_chain(char **p, const int64_t *st, int64_t n, Loop *first, Loop *second,
                      int64_t between) {
  _Alignas(16) char block[CHAIN_BLOCK * 16];
  for (int64_t at = 0; at < n; at += CHAIN_BLOCK) {
    int64_t m = n - at < CHAIN_BLOCK ? n - at : CHAIN_BLOCK;
    first((char *[]){block, p[1] + at * st[1]}, (const int64_t[]){between, st[1]}, m, NULL);
    second((char *[]){p[0] + at * st[0], block}, (const int64_t[]){st[0], between}, m, NULL);
  }
}
#define CHAIN(from, between, T, to)                                                     \
  static void from##_to_##to(char **p, const int64_t *st, int64_t n, const void *ctx) { \
    (void)ctx;                                                                          \
    run_chain(p, st, n, from##_to_##between, between##_to_##to, (int64_t)sizeof(T));    \
  }
/* Casts between a type and the common ones through one of these, which the lists leave out. */
#define COMMON_INTS(X, ...) \
  X(u8, __VA_ARGS__) X(i8, __VA_ARGS__) X(i16, __VA_ARGS__) X(i32, __VA_ARGS__)
#define BY_F32(X, t) \
  COMMON_INTS(X, t, f32, float) X(i64, t, f32, float) X(f64, t, f32, float) X(b8, t, f32, float)
#define TO_AND_FROM(common, t, between, T) CHAIN(common, between, T, t) CHAIN(t, between, T, common)
#define TO_ONLY(common, t, between, T) CHAIN(common, between, T, t)
#define FROM_ONLY(common, t, between, T) CHAIN(t, between, T, common)
BY_F32(TO_AND_FROM, f16)
BY_F32(TO_AND_FROM, bf16)
#define BY_I64(X, t) COMMON_INTS(X, t, i64, int64_t) X(b8, t, i64, int64_t)
BY_I64(TO_AND_FROM, u16)
TO_AND_FROM(f32, u16, i64, int64_t)
TO_AND_FROM(f64, u16, i64, int64_t)
BY_I64(TO_AND_FROM, u32)
TO_AND_FROM(f32, u32, i64, int64_t)
TO_AND_FROM(f64, u32, i64, int64_t)
BY_I64(TO_AND_FROM, u64)
COMMON_INTS(TO_AND_FROM, c64, f32, float)
TO_AND_FROM(i64, c64, f32, float)
TO_AND_FROM(f64, c64, f32, float)
TO_ONLY(b8, c64, f32, float)
COMMON_INTS(TO_AND_FROM, c128, f64, double)
TO_AND_FROM(i64, c128, f64, double)
TO_AND_FROM(f32, c128, f64, double)
TO_ONLY(b8, c128, f64, double)
#define BY_C128(X, t)                  \
  COMMON_INTS(X, t, c128, complex_f64) \
  X(i64, t, c128, complex_f64)         \
  X(f32, t, c128, complex_f64)         \
  X(f64, t, c128, complex_f64) X(b8, t, c128, complex_f64) X(c64, t, c128, complex_f64)
BY_C128(TO_AND_FROM, c32)
/* Casts among these types. */
#define HALVES(X, ...) X(f16, __VA_ARGS__) X(bf16, __VA_ARGS__)
CHAIN(f16, f32, float, bf16)
CHAIN(bf16, f32, float, f16)
HALVES(TO_AND_FROM, c64, f32, float)
HALVES(TO_AND_FROM, c128, f32, float)
HALVES(TO_AND_FROM, c32, f32, float)
#define BARE(X, ...) X(u16, __VA_ARGS__) X(u32, __VA_ARGS__) X(u64, __VA_ARGS__)
BARE(TO_AND_FROM, f16, f32, float)
BARE(TO_AND_FROM, bf16, f32, float)
BARE(TO_AND_FROM, c64, f32, float)
BARE(TO_AND_FROM, c128, f64, double)
BARE(TO_AND_FROM, c32, f32, float)
CHAIN(u16, i64, int64_t, u32)
CHAIN(u16, i64, int64_t, u64)
CHAIN(u32, i64, int64_t, u16)
CHAIN(u32, i64, int64_t, u64)
CHAIN(u64, i64, int64_t, u16)
CHAIN(u64, i64, int64_t, u32)

SERIAL_CAST_LOOP(wide_to_wide, Wide16, Wide16, v)

/* A type to itself is a move. */
static Loop *const casts[DT_COUNT][DT_COUNT] = {
    [DT_U8] = {[DT_U8] = u8_to_u8,
               [DT_I8] = u8_to_i8,
               [DT_I16] = u8_to_i16,
               [DT_I32] = u8_to_i32,
               [DT_I64] = u8_to_i64,
               [DT_F32] = u8_to_f32,
               [DT_F64] = u8_to_f64,
               [DT_BOOL] = u8_to_b8,
               [DT_F16] = u8_to_f16,
               [DT_C32] = u8_to_c32,
               [DT_C64] = u8_to_c64,
               [DT_C128] = u8_to_c128,
               [DT_BF16] = u8_to_bf16,
               [DT_U16] = u8_to_u16,
               [DT_U32] = u8_to_u32,
               [DT_U64] = u8_to_u64},
    [DT_I8] = {[DT_I8] = i8_to_i8,
               [DT_U8] = i8_to_u8,
               [DT_I16] = i8_to_i16,
               [DT_I32] = i8_to_i32,
               [DT_I64] = i8_to_i64,
               [DT_F32] = i8_to_f32,
               [DT_F64] = i8_to_f64,
               [DT_BOOL] = i8_to_b8,
               [DT_F16] = i8_to_f16,
               [DT_C32] = i8_to_c32,
               [DT_C64] = i8_to_c64,
               [DT_C128] = i8_to_c128,
               [DT_BF16] = i8_to_bf16,
               [DT_U16] = i8_to_u16,
               [DT_U32] = i8_to_u32,
               [DT_U64] = i8_to_u64},
    [DT_I16] = {[DT_I16] = i16_to_i16,
                [DT_U8] = i16_to_u8,
                [DT_I8] = i16_to_i8,
                [DT_I32] = i16_to_i32,
                [DT_I64] = i16_to_i64,
                [DT_F32] = i16_to_f32,
                [DT_F64] = i16_to_f64,
                [DT_BOOL] = i16_to_b8,
                [DT_F16] = i16_to_f16,
                [DT_C32] = i16_to_c32,
                [DT_C64] = i16_to_c64,
                [DT_C128] = i16_to_c128,
                [DT_BF16] = i16_to_bf16,
                [DT_U16] = i16_to_u16,
                [DT_U32] = i16_to_u32,
                [DT_U64] = i16_to_u64},
    [DT_I32] = {[DT_I32] = i32_to_i32,
                [DT_U8] = i32_to_u8,
                [DT_I8] = i32_to_i8,
                [DT_I16] = i32_to_i16,
                [DT_I64] = i32_to_i64,
                [DT_F32] = i32_to_f32,
                [DT_F64] = i32_to_f64,
                [DT_BOOL] = i32_to_b8,
                [DT_F16] = i32_to_f16,
                [DT_C32] = i32_to_c32,
                [DT_C64] = i32_to_c64,
                [DT_C128] = i32_to_c128,
                [DT_BF16] = i32_to_bf16,
                [DT_U16] = i32_to_u16,
                [DT_U32] = i32_to_u32,
                [DT_U64] = i32_to_u64},
    [DT_I64] = {[DT_I64] = i64_to_i64,
                [DT_U8] = i64_to_u8,
                [DT_I8] = i64_to_i8,
                [DT_I16] = i64_to_i16,
                [DT_I32] = i64_to_i32,
                [DT_F32] = i64_to_f32,
                [DT_F64] = i64_to_f64,
                [DT_BOOL] = i64_to_b8,
                [DT_F16] = i64_to_f16,
                [DT_C32] = i64_to_c32,
                [DT_C64] = i64_to_c64,
                [DT_C128] = i64_to_c128,
                [DT_BF16] = i64_to_bf16,
                [DT_U16] = i64_to_u16,
                [DT_U32] = i64_to_u32,
                [DT_U64] = i64_to_u64},
    [DT_F32] = {[DT_F32] = f32_to_f32,
                [DT_U8] = f32_to_u8,
                [DT_I8] = f32_to_i8,
                [DT_I16] = f32_to_i16,
                [DT_I32] = f32_to_i32,
                [DT_I64] = f32_to_i64,
                [DT_F64] = f32_to_f64,
                [DT_BOOL] = f32_to_b8,
                [DT_F16] = f32_to_f16,
                [DT_C32] = f32_to_c32,
                [DT_C64] = f32_to_c64,
                [DT_C128] = f32_to_c128,
                [DT_BF16] = f32_to_bf16,
                [DT_U16] = f32_to_u16,
                [DT_U32] = f32_to_u32,
                [DT_U64] = f32_to_u64},
    [DT_F64] = {[DT_F64] = f64_to_f64,
                [DT_U8] = f64_to_u8,
                [DT_I8] = f64_to_i8,
                [DT_I16] = f64_to_i16,
                [DT_I32] = f64_to_i32,
                [DT_I64] = f64_to_i64,
                [DT_F32] = f64_to_f32,
                [DT_BOOL] = f64_to_b8,
                [DT_F16] = f64_to_f16,
                [DT_C32] = f64_to_c32,
                [DT_C64] = f64_to_c64,
                [DT_C128] = f64_to_c128,
                [DT_BF16] = f64_to_bf16,
                [DT_U16] = f64_to_u16,
                [DT_U32] = f64_to_u32,
                [DT_U64] = f64_to_u64},
    [DT_BOOL] = {[DT_BOOL] = b8_to_b8,
                 [DT_U8] = b8_to_u8,
                 [DT_I8] = b8_to_i8,
                 [DT_I16] = b8_to_i16,
                 [DT_I32] = b8_to_i32,
                 [DT_I64] = b8_to_i64,
                 [DT_F32] = b8_to_f32,
                 [DT_F64] = b8_to_f64,
                 [DT_F16] = b8_to_f16,
                 [DT_C32] = b8_to_c32,
                 [DT_C64] = b8_to_c64,
                 [DT_C128] = b8_to_c128,
                 [DT_BF16] = b8_to_bf16,
                 [DT_U16] = b8_to_u16,
                 [DT_U32] = b8_to_u32,
                 [DT_U64] = b8_to_u64},
    [DT_F16] = {[DT_U8] = f16_to_u8,
                [DT_I8] = f16_to_i8,
                [DT_I16] = f16_to_i16,
                [DT_I32] = f16_to_i32,
                [DT_I64] = f16_to_i64,
                [DT_F32] = f16_to_f32,
                [DT_F64] = f16_to_f64,
                [DT_BOOL] = f16_to_b8,
                [DT_C32] = f16_to_c32,
                [DT_C64] = f16_to_c64,
                [DT_C128] = f16_to_c128,
                [DT_BF16] = f16_to_bf16,
                [DT_U16] = f16_to_u16,
                [DT_U32] = f16_to_u32,
                [DT_U64] = f16_to_u64},
    [DT_C32] = {[DT_U8] = c32_to_u8,
                [DT_I8] = c32_to_i8,
                [DT_I16] = c32_to_i16,
                [DT_I32] = c32_to_i32,
                [DT_I64] = c32_to_i64,
                [DT_F32] = c32_to_f32,
                [DT_F64] = c32_to_f64,
                [DT_BOOL] = c32_to_b8,
                [DT_F16] = c32_to_f16,
                [DT_C64] = c32_to_c64,
                [DT_C128] = c32_to_c128,
                [DT_BF16] = c32_to_bf16,
                [DT_U16] = c32_to_u16,
                [DT_U32] = c32_to_u32,
                [DT_U64] = c32_to_u64},
    [DT_C64] = {[DT_U8] = c64_to_u8,
                [DT_I8] = c64_to_i8,
                [DT_I16] = c64_to_i16,
                [DT_I32] = c64_to_i32,
                [DT_I64] = c64_to_i64,
                [DT_F32] = c64_to_f32,
                [DT_F64] = c64_to_f64,
                [DT_BOOL] = c64_to_b8,
                [DT_F16] = c64_to_f16,
                [DT_C32] = c64_to_c32,
                [DT_C128] = c64_to_c128,
                [DT_BF16] = c64_to_bf16,
                [DT_U16] = c64_to_u16,
                [DT_U32] = c64_to_u32,
                [DT_U64] = c64_to_u64},
    [DT_C128] = {[DT_U8] = c128_to_u8,
                 [DT_I8] = c128_to_i8,
                 [DT_I16] = c128_to_i16,
                 [DT_I32] = c128_to_i32,
                 [DT_I64] = c128_to_i64,
                 [DT_F32] = c128_to_f32,
                 [DT_F64] = c128_to_f64,
                 [DT_BOOL] = c128_to_b8,
                 [DT_F16] = c128_to_f16,
                 [DT_C32] = c128_to_c32,
                 [DT_C64] = c128_to_c64,
                 [DT_BF16] = c128_to_bf16,
                 [DT_U16] = c128_to_u16,
                 [DT_U32] = c128_to_u32,
                 [DT_U64] = c128_to_u64},
    [DT_BF16] = {[DT_U8] = bf16_to_u8,
                 [DT_I8] = bf16_to_i8,
                 [DT_I16] = bf16_to_i16,
                 [DT_I32] = bf16_to_i32,
                 [DT_I64] = bf16_to_i64,
                 [DT_F32] = bf16_to_f32,
                 [DT_F64] = bf16_to_f64,
                 [DT_BOOL] = bf16_to_b8,
                 [DT_F16] = bf16_to_f16,
                 [DT_C32] = bf16_to_c32,
                 [DT_C64] = bf16_to_c64,
                 [DT_C128] = bf16_to_c128,
                 [DT_U16] = bf16_to_u16,
                 [DT_U32] = bf16_to_u32,
                 [DT_U64] = bf16_to_u64},
    [DT_U16] = {[DT_U8] = u16_to_u8,
                [DT_I8] = u16_to_i8,
                [DT_I16] = u16_to_i16,
                [DT_I32] = u16_to_i32,
                [DT_I64] = u16_to_i64,
                [DT_F32] = u16_to_f32,
                [DT_F64] = u16_to_f64,
                [DT_BOOL] = u16_to_b8,
                [DT_F16] = u16_to_f16,
                [DT_C32] = u16_to_c32,
                [DT_C64] = u16_to_c64,
                [DT_C128] = u16_to_c128,
                [DT_BF16] = u16_to_bf16,
                [DT_U32] = u16_to_u32,
                [DT_U64] = u16_to_u64},
    [DT_U32] = {[DT_U8] = u32_to_u8,
                [DT_I8] = u32_to_i8,
                [DT_I16] = u32_to_i16,
                [DT_I32] = u32_to_i32,
                [DT_I64] = u32_to_i64,
                [DT_F32] = u32_to_f32,
                [DT_F64] = u32_to_f64,
                [DT_BOOL] = u32_to_b8,
                [DT_F16] = u32_to_f16,
                [DT_C32] = u32_to_c32,
                [DT_C64] = u32_to_c64,
                [DT_C128] = u32_to_c128,
                [DT_BF16] = u32_to_bf16,
                [DT_U16] = u32_to_u16,
                [DT_U64] = u32_to_u64},
    [DT_U64] = {[DT_U8] = u64_to_u8,
                [DT_I8] = u64_to_i8,
                [DT_I16] = u64_to_i16,
                [DT_I32] = u64_to_i32,
                [DT_I64] = u64_to_i64,
                [DT_F32] = u64_to_f32,
                [DT_F64] = u64_to_f64,
                [DT_BOOL] = u64_to_b8,
                [DT_F16] = u64_to_f16,
                [DT_C32] = u64_to_c32,
                [DT_C64] = u64_to_c64,
                [DT_C128] = u64_to_c128,
                [DT_BF16] = u64_to_bf16,
                [DT_U16] = u64_to_u16,
                [DT_U32] = u64_to_u32},
};

/* f32_to_i64 by vectors of 32 bits, for chunks whose values all fit. */
static void truncate_f32(char **ptr, const int64_t *st, int64_t n, const void *ctx) {
  enum { CHUNK = 16 };
  const i32x4 limit = i32x4_splat(0x4f000000); /* the bits of 2^31 */
  char *o = ptr[0], *a = ptr[1];
  for (int64_t m; n > 0; n -= m, o += m * st[0], a += m * st[1]) {
    const float *x = (const float *)(const void *)a;
    i32x4 near = {0};
    m = n < CHUNK ? n : CHUNK;
    bool dense = m == CHUNK && st[0] == sizeof(int64_t) && st[1] == sizeof *x;
    if (dense) {
      near = ~near;
      UNROLLED for (int l = 0; l < CHUNK; l += 4)
          near &= ((i32x4)f32x4_load(x + l) & INT32_MAX) < limit;
    }
    if (!(near[0] & near[1] & near[2] & near[3])) {
      f32_to_i64((char *[]){o, a}, st, m, ctx);
      continue;
    }
    UNROLLED for (int l = 0; l < CHUNK; l += 4) {
      i32x4 whole = __builtin_convertvector(f32x4_load(x + l), i32x4), sign = whole >> 31;
      i32x4_store((int32_t *)(void *)o + 2 * l, SIMD_SHUFFLE(whole, sign, 0, 4, 1, 5));
      i32x4_store((int32_t *)(void *)o + 2 * l + 4, SIMD_SHUFFLE(whole, sign, 2, 6, 3, 7));
    }
  }
}

/* b8_to_i64 by vectors; each store widens two bytes. */
static void widen_b8(char **ptr, const int64_t *st, int64_t n, const void *ctx) {
  int64_t *o = (int64_t *)(void *)ptr[0], i = 0;
  const uint8_t *a = (const uint8_t *)ptr[1];
#define TWO(k)                                                                                   \
  i32x4_store((int32_t *)(void *)(o + i + k),                                                    \
              (i32x4)SIMD_SHUFFLE(v, none, k, 16, 16, 16, 16, 16, 16, 16, k + 1, 16, 16, 16, 16, \
                                  16, 16, 16))
  for (const u8x16 none = {0}; st[0] == sizeof *o && st[1] == 1 && i + 16 <= n; i += 16) {
    const u8x16 v = u8x16_truth(u8x16_load(a + i));
    TWO(0), TWO(2), TWO(4), TWO(6), TWO(8), TWO(10), TWO(12), TWO(14);
  }
#undef TWO
  b8_to_i64((char *[]){ptr[0] + i * st[0], ptr[1] + i * st[1]}, st, n - i, ctx);
}

/* Moves within one type. Only the width matters, except for bool, which becomes 0 or 1; NaN
 * payloads survive. Fast cases are one value for all, and reading backwards, for flips. */
#define MOVE_LOOP(...) MOVE_LOOP_BY(VECTOR_LOOP, __VA_ARGS__)
#define MOVE_LOOP_BY(PRAGMA, FN, T, GENERAL)                                  \
  static void FN(char **ptr, const int64_t *st, int64_t n, const void *ctx) { \
    const int64_t step = sizeof(T);                                           \
    const T *a = (const T *)(const void *)ptr[1];                             \
    T *o = (T *)(void *)ptr[0];                                               \
    if (st[0] == step && st[1] == 0) {                                        \
      const T v = ELEMENT(a);                                                 \
      PRAGMA for (int64_t i = 0; i < n; i++) o[i] = v;                        \
    } else if (st[0] == step && st[1] == -step) {                             \
      PRAGMA for (int64_t i = 0; i < n; i++) o[i] = ELEMENT(a - i);           \
    } else GENERAL(ptr, st, n, ctx);                                          \
  }
MOVE_LOOP(move_1, uint8_t, u8_to_u8)
MOVE_LOOP(move_2, int16_t, i16_to_i16)
MOVE_LOOP(move_4, int32_t, i32_to_i32)
MOVE_LOOP(move_8, int64_t, i64_to_i64)
MOVE_LOOP_BY(, move_16, Wide16, wide_to_wide)
MOVE_LOOP(move_b8, bool, b8_to_b8)

static Loop *const moves[17] = {
    [1] = move_1, [2] = move_2, [4] = move_4, [8] = move_8, [16] = move_16};

Loop *cast_loop(DType to, DType from) {
  if (to == DT_I64 && from == DT_F32) return truncate_f32;
  if (to == DT_I64 && from == DT_BOOL) return widen_b8;
  if (to == DT_BOOL && from == DT_BOOL) return move_b8;
  return to == from ? moves[dtype_bytes(to)] : casts[from][to];
}
