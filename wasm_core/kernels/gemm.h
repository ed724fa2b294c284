/* Matrix products on raw strided memory: C = alpha * A B + beta * C.
 *
 * A is (m, k), B is (k, n), C is (m, n); element (i, j) of X lies at
 * x[i * x_rs + j * x_cs]. Strides count elements, are zero or positive, and
 * may be anything for A and B; C must not overlap itself or an operand.
 * beta == 0 never reads C, alpha == 0 never reads A and B, as in BLAS.
 *
 * Invariant: the bits of C[i][j] follow from k, alpha, beta, row i of A, column
 * j of B and the old C[i][j] alone. The size of the rest of the product, the
 * strides and the path taken inside never show, so one row of a batch equals
 * that row computed by itself. Only the payload of a NaN is left open. */
#ifndef PG_GEMM_H
#define PG_GEMM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that `scratch` must have for a product of this shape; may be 0, and
 * then scratch may be NULL. At most GEMM_SCRATCH_MAX_BYTES. Alignment is free. */
size_t gemm_f32_scratch_bytes(int64_t m, int64_t n, int64_t k);
size_t gemm_f64_scratch_bytes(int64_t m, int64_t n, int64_t k);

#define GEMM_SCRATCH_MAX_BYTES ((size_t)288 << 10)

void gemm_f32(int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t a_rs,
              int64_t a_cs, const float *b, int64_t b_rs, int64_t b_cs, float beta, float *c,
              int64_t c_rs, int64_t c_cs, void *scratch);
void gemm_f64(int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t a_rs,
              int64_t a_cs, const double *b, int64_t b_rs, int64_t b_cs, double beta, double *c,
              int64_t c_rs, int64_t c_cs, void *scratch);

/* Sum of x[i * xs] * y[i * ys] over n elements, 0 for n == 0. Summed pairwise
 * over blocks; the order depends on n alone. */
float gemm_dot_f32(int64_t n, const float *x, int64_t xs, const float *y, int64_t ys);
double gemm_dot_f64(int64_t n, const double *x, int64_t xs, const double *y, int64_t ys);

/* Products in wrapping integer arithmetic; no scratch. */
#define GEMM_INTEGERS(X)    \
  X(i64, int64_t, uint64_t) \
  X(i32, int32_t, uint32_t) \
  X(i16, int16_t, uint32_t) \
  X(i8, int8_t, uint32_t)   \
  X(u8, uint8_t, uint32_t)

#define GEMM_DECLARE(suffix, type, wide)                                                          \
  void gemm_##suffix(int64_t m, int64_t n, int64_t k, type alpha, const type *a, int64_t a_rs,    \
                     int64_t a_cs, const type *b, int64_t b_rs, int64_t b_cs, type beta, type *c, \
                     int64_t c_rs, int64_t c_cs);
GEMM_INTEGERS(GEMM_DECLARE)
#undef GEMM_DECLARE

#endif
