/* The primitives of Fourier transforms, of which the others are composed. */
#ifndef PG_FFT_FFT_H
#define PG_FFT_FFT_H

#include "call/call.h"

/* PyTorch's numbers for the divisor of a transform. */
enum { NORM_NONE, NORM_BY_ROOT_N, NORM_BY_N };

/* Complex to complex along each of `dims`. */
Tensor *t_fft_c2c(Tensor *x, Ints dims, int64_t normalization, bool forward);
/* Real to complex along the last of `dims`, then as above along the others. `onesided`: without the
 * half that follows from the other; needed if there are several dims. */
Tensor *t_fft_r2c(Tensor *x, Ints dims, int64_t normalization, bool onesided);
/* The backward transform of half a spectrum along the last of `dims`, to `length` reals. */
Tensor *t_fft_c2r(Tensor *x, Ints dims, int64_t normalization, int64_t length);

#endif
