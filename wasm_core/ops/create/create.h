/* Factories that rows of the table call, and the options they share. */
#ifndef PG_CREATE_H
#define PG_CREATE_H

#include "call/call.h"

/* Whether argument k names the only device; the error set otherwise. */
bool check_device(const Call *c, int k);
/* The options start at argument k, in the order of OPTIONS in ops/create/create.def. */
DType option_dtype(const Call *c, int k, DType absent);
/* t, which was just made: options checked, requires_grad set. */
Tensor *made(const Call *c, int k, Tensor *t);

Tensor *t_zeros(Ints sizes, DType dtype);
Tensor *t_ones(Ints sizes, DType dtype);
DType scalar_dtype(const Tensor *value); /* what full() makes of a number */
Tensor *t_full(Ints sizes, Tensor *value, DType dtype);
Tensor *t_empty(Ints sizes, DType dtype, const char *format_name);
Tensor *t_empty_strided(Ints sizes, Ints strides, DType dtype);
Tensor *t_empty_permuted(Ints sizes, Ints order, DType dtype);
/* value NULL: uninitialised */
Tensor *t_like(Tensor *x, Tensor *value, DType dtype, const char *format_name);
Tensor *t_eye(int64_t rows, int64_t cols, DType dtype);
/* start, step may be NULL */
Tensor *t_arange(Tensor *start, Tensor *end, Tensor *step, DType dtype);
DType arange_dtype(const Tensor *start, const Tensor *end, const Tensor *step);
Tensor *t_range(Tensor *start, Tensor *end, Tensor *step, DType dtype);
Tensor *t_linspace(Tensor *start, Tensor *end, int64_t steps, DType dtype);
Tensor *t_logspace(Tensor *start, Tensor *end, int64_t steps, double base, DType dtype);
Tensor *t_triangle_indices(int64_t rows, int64_t cols, int64_t offset, DType dtype, bool lower);
Tensor *t_vander(Tensor *x, int64_t columns, bool increasing);

Tensor *t_to_options(Tensor *x, DType dtype, bool device_known, bool copy, const char *format_name);
Tensor *t_contiguous_format(Tensor *x, const char *format_name);

/* Windows (windows.c): argument 0 of the call is the length, its options stand from `options` on.
 * The steps of a window that is not symmetric are those of one with an element more. */
Tensor *t_bartlett(const Call *c, bool symmetric, int options);
Tensor *t_cosine(const Call *c, bool symmetric, int options);
/* centre NULL: the middle */
Tensor *t_exponential(const Call *c, const double *centre, double tau, bool symmetric, int options);
Tensor *t_gaussian(const Call *c, double deviation, bool symmetric, int options);
Tensor *t_kaiser(const Call *c, double beta, bool symmetric, int options);
/* `name` is for messages. */
Tensor *t_general_cosine(const Call *c, const char *name, Floats weights, bool symmetric,
                         int options);
/* The functions of torch, whose windows are leaves. `window` is the other name for messages. */
Tensor *t_bartlett_window(const Call *c, bool periodic, int options);
Tensor *t_kaiser_window(const Call *c, double beta, bool periodic, int options);
Tensor *t_cosines_window(const Call *c, const char *name, const char *window, Floats weights,
                         bool periodic, int options);

#endif
