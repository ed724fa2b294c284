/* Factories that other ops call, and the options that all share. */
#ifndef PG_CREATE_H
#define PG_CREATE_H

#include "call/call.h"

/* The options begin at argument k, in the order of OPTIONS in ops/create/create.def. */
DType create_option_dtype(const Call *c, int k, DType absent);
/* Evaluates `t` on the device that the options name, checks the options and sets requires_grad. */
#define made(c, k, t) (create_options_begin(c, k) ? create_options_end(c, k, t) : NULL)
bool create_options_begin(const Call *c, int k);
Tensor *create_options_end(const Call *c, int k, Tensor *t);
/* The form of the device that argument k names, or `otherwise`; -1 with an error for others. */
int32_t create_device_form(const Call *c, int k, int32_t otherwise);

Tensor *t_zeros(Ints sizes, DType dtype);
Tensor *t_ones(Ints sizes, DType dtype);
DType create_scalar_dtype(const Tensor *value); /* full()'s dtype for a number */
Tensor *t_full(Ints sizes, Tensor *value, DType dtype);
Tensor *t_empty(Ints sizes, DType dtype, const char *format_name);
/* value NULL: uninitialised */
Tensor *t_like(Tensor *x, Tensor *value, DType dtype, const char *format_name);
Tensor *t_eye(int64_t rows, int64_t cols, DType dtype);
/* start, step may be NULL */
Tensor *t_arange(Tensor *start, Tensor *end, Tensor *step, DType dtype);
DType create_arange_dtype(const Tensor *start, const Tensor *end, const Tensor *step);
DType create_between_dtype(const Tensor *start, const Tensor *end); /* linspace's and logspace's */
Tensor *t_linspace(Tensor *start, Tensor *end, int64_t steps, DType dtype);
Tensor *t_triangle_indices(int64_t rows, int64_t cols, int64_t offset, DType dtype, bool lower);

#endif
