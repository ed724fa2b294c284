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

#endif
