/* The primitives of Fourier transforms, of which others are composed. */
#ifndef PG_FFT_FFT_H
#define PG_FFT_FFT_H

#include "call/call.h"

/* PyTorch's numbers for what a transform is divided by. */
enum { NORM_NONE, NORM_BY_ROOT_N, NORM_BY_N };

/* Complex to complex along each of `dims`. */
Tensor *t_fft_c2c(Tensor *x, Ints dims, int64_t normalization, bool forward);
/* Real to complex along the last of `dims`, then as above; `onesided`: without the half that
 * follows from the other, else there is one dimension. */
Tensor *t_fft_r2c(Tensor *x, Ints dims, int64_t normalization, bool onesided);
/* Backward of half a spectrum along the last of `dims`, of `length` reals. */
Tensor *t_fft_c2r(Tensor *x, Ints dims, int64_t normalization, int64_t length);

#endif
