/* The loops of transcendental.c, for rows of ops/elementwise/elementwise.def with an OWN domain. */
#ifndef PG_TRANSCENDENTAL_H
#define PG_TRANSCENDENTAL_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/simd.h"

/* The memory in which a loop keeps a block between its passes. The caller provides it; its contents
 * mean nothing before and after. */
enum { LOOP_PART = 256 };
typedef struct {
  _Alignas(16) float part[3][LOOP_PART];
  _Alignas(16) double wide[LOOP_PART];
  _Alignas(16) float gelu[4 * LOOP_PART];
  uint16_t places[LOOP_PART];
  f32x4 limits[2]; /* of a row */
  float next_most; /* a result; see value_exp_row_f32 */
} LoopScratch;

#define OWN_LOOP(name) void name(char *const *p, size_t n, const double *k, LoopScratch *s);
OWN_LOOP(value_relu_f32)
OWN_LOOP(value_hardtanh_f32)
OWN_LOOP(value_exp_f32)
OWN_LOOP(value_sigmoid_f32)
OWN_LOOP(value_tanh_f32)
OWN_LOOP(value_erf_f32)
OWN_LOOP(value_sin_f32)
OWN_LOOP(value_cos_f32)
OWN_LOOP(value_tan_f32)
OWN_LOOP(value_asin_f32)
OWN_LOOP(value_acos_f32)
OWN_LOOP(value_atan_f32)
OWN_LOOP(value_sinh_f32)
OWN_LOOP(value_cosh_f32)
OWN_LOOP(value_asinh_f32)
OWN_LOOP(value_acosh_f32)
OWN_LOOP(value_atanh_f32)
OWN_LOOP(value_atan2_f32)
OWN_LOOP(value_silu_f32)
OWN_LOOP(value_mish_f32)
OWN_LOOP(value_softplus_f32)
OWN_LOOP(value_logsigmoid_f32)
OWN_LOOP(value_gelu_erf_f32)
OWN_LOOP(value_gelu_tanh_f32)
OWN_LOOP(grad_sin_f32)
OWN_LOOP(grad_cos_f32)
OWN_LOOP(grad_tan_f32)
OWN_LOOP(grad_asin_f32)
OWN_LOOP(grad_acos_f32)
OWN_LOOP(grad_atan_f32)
OWN_LOOP(grad_sinh_f32)
OWN_LOOP(grad_cosh_f32)
OWN_LOOP(grad_asinh_f32)
OWN_LOOP(grad_acosh_f32)
OWN_LOOP(grad_atanh_f32)
OWN_LOOP(grad_silu_f32)
OWN_LOOP(grad_gelu_erf_f32)
OWN_LOOP(grad_gelu_tanh_f32)
#undef OWN_LOOP

/* fmod of the first *m of n pairs, a block or all of them; the result is in the scratch. */
const float *value_fmod_part_f32(const float *a, const float *b, size_t n, size_t *m,
                                 LoopScratch *s);
/* Rows, of any length. y = exp(x - shift), where no x is above shift; returns the sum. y may be
 * NULL. Sets next_most of the scratch to the maximum of the row `next`, as value_max_row_f32
 * computes it. Calls pass four pointers in registers: the fifth, `next`, is never waited for. */
float value_exp_row_f32(float *y, const float *x, size_t n, float shift, LoopScratch *s,
                        const float *next);
/* y = g - exp(x) factor, where no x is above 0. */
void value_subtract_exp_row_f32(float *y, const float *g, const float *x, size_t n, float factor,
                                LoopScratch *s);
/* The maximum; whether NaN counts is left open. */
float value_max_row_f32(const float *x, size_t n);

#endif
