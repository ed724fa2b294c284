/* Pragmas that tell compilers how to vectorise loops. */
#ifndef PG_LOOPS_H
#define PG_LOOPS_H

/* WIDE_LOOP: four vectors at a time, for hot loops of few operations; BYTES_LOOP: a vector of the
 * bytes that are among its operands. */
#if defined(__clang__)
#define VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#define WIDE_LOOP _Pragma("clang loop vectorize(assume_safety) interleave_count(4)")
#define BYTES_LOOP _Pragma("clang loop vectorize(assume_safety) vectorize_width(16)")
#else
#define VECTOR_LOOP _Pragma("GCC ivdep")
#define WIDE_LOOP VECTOR_LOOP
#define BYTES_LOOP VECTOR_LOOP
#endif

enum { LANES = 16 };

/* Loops over float are vectorised; those of the 64-bit types, of which two lanes would gain
 * little, are small. */
#if defined(__clang__)
#define FLAT_FOR_float _Pragma("clang loop vectorize(assume_safety) interleave_count(1)")
#define FLAT_FOR_quick _Pragma("clang loop vectorize(assume_safety) interleave_count(4)")
#else
#define FLAT_FOR_float _Pragma("GCC ivdep")
#define FLAT_FOR_quick FLAT_FOR_float
#endif
#define FLAT_FOR_uint8_t FLAT_FOR_float
#define FLAT_FOR_double
#define FLAT_FOR_single
#define FLAT_FOR_int64_t
#define FLAT_FOR_complex_f32
#define FLAT_FOR_complex_f64
/* Vectorised loops are given a multiple of LANES, and so have no second body for a rest. */
#define FLAT_COUNT_float(n) ((n) & ~(size_t)(LANES - 1))
#define FLAT_COUNT_uint8_t FLAT_COUNT_float
#define FLAT_COUNT_quick FLAT_COUNT_float
#define FLAT_COUNT_double(n) (n)
#define FLAT_COUNT_single(n) (n)
#define FLAT_COUNT_int64_t(n) (n)
#define FLAT_COUNT_complex_f32(n) (n)
#define FLAT_COUNT_complex_f64(n) (n)

#endif
