/* Discrete Fourier transforms of lines in raw memory, of any length n >= 1:
 *
 *     out[k] = scale * sum over j of in[j] * exp(-2 pi i j k / n), or + for a backward one.
 *
 * A complex number is two reals, the real part first. A line is n elements `step` apart; strides
 * count elements, a complex number being one, and may be anything in the input. The output may be
 * the input if both lie alike, and overlaps it in no other way.
 *
 * A length is split into the factors 4, 2, 3, 5 and other primes up to 61. If larger primes divide
 * it, or sums over them would cost more, a line is convolved at a convenient length (Bluestein). A
 * real line of even length costs half a complex one; one of odd length costs somewhat more than
 * half, or as much if it is convolved.
 *
 * A plan holds everything that depends on the length alone, mostly roots of unity. It is in the
 * caller's memory, any number of calls may read it, and it may be copied.
 *
 * Invariant: the bits of a line's output follow from the line, n, kind, direction and scale alone.
 * Strides and other lines have no influence. */
#ifndef PG_FFT_H
#define PG_FFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum FftKind {
  FFT_COMPLEX,  /* n complex numbers to as many, forward or backward */
  FFT_TO_HALF,  /* n reals to the first n / 2 + 1 of their spectrum, forward */
  FFT_FROM_HALF /* n / 2 + 1 complex numbers to n reals, backward; the others are taken as the
                   conjugates that make the result real, and imaginary parts that must be zero
                   are not read */
} FftKind;

typedef struct FftLines {
  int64_t count;
  int64_t in_step, in_line;   /* from element to element of a line, from line to line */
  int64_t out_step, out_line; /* the steps of the output */
} FftLines;

/* Bytes of a plan, and of the memory in which up to `lines` lines of a call are transformed or,
 * with one line, a plan is made. Both begin at multiples of 8. */
size_t fft_f32_plan_bytes(FftKind kind, int64_t n);
size_t fft_f64_plan_bytes(FftKind kind, int64_t n);
size_t fft_f32_work_bytes(FftKind kind, int64_t n, int64_t lines);
size_t fft_f64_work_bytes(FftKind kind, int64_t n, int64_t lines);

void fft_f32_plan(FftKind kind, int64_t n, void *plan, void *work);
void fft_f64_plan(FftKind kind, int64_t n, void *plan, void *work);

/* `backward` is for complex transforms; `work` is for as many lines as there are, or more. */
void fft_f32(const void *plan, bool backward, const float *in, float *out, FftLines lines,
             float scale, void *work);
void fft_f64(const void *plan, bool backward, const double *in, double *out, FftLines lines,
             double scale, void *work);

#endif
