/* Repeats and turns that rows of the table and other families call. */
#ifndef PG_REARRANGE_H
#define PG_REARRANGE_H

#include "call/call.h"

Tensor *t_flip_side(Tensor *x, int64_t dim); /* fliplr: 1, flipud: 0 */
Tensor *t_roll(Tensor *x, Ints shifts, Ints dims);
Tensor *t_rot90(Tensor *x, int64_t k, Ints dims);
Tensor *t_repeat(Tensor *x, Ints repeats);
Tensor *t_tile(Tensor *x, Ints dims);
Tensor *t_repeat_indices(Tensor *repeats, int64_t output_size); /* output_size -1: any */
/* dim NULL: flat */
Tensor *t_repeat_interleave(Tensor *x, Tensor *repeats, const int64_t *dim, int64_t output_size);
Tensor *t_repeat_interleave_int(Tensor *x, int64_t times, const int64_t *dim, int64_t output_size);

#endif
