/* The frequencies of a spectrum's elements, and spectra with frequency zero in the middle. */
#include "fft_rows.h"
#include "ops/create/create.h"
#include "ops/op.h"

/* The numbers from `start` until `end`. */
static Tensor *numbers(int64_t start, int64_t end, DType dtype) {
  return t_arange(tensor_wrapped_i(start), tensor_wrapped_i(end), NULL, dtype);
}

static bool check_frequencies(const char *name, DType dtype) {
  if (!failed() && !dtype_is_float(dtype))
    fail(ERR_RUNTIME, "%s requires a floating point or complex dtype", name);
  return !failed();
}

Tensor *t_fftfreq(int64_t n, double spacing, DType dtype) {
  OP_ENTERED(t_fftfreq, "fft_fftfreq", n, spacing, dtype);
  if (!check_frequencies("fftfreq", dtype)) return NULL;
  Tensor *y = tensor_empty(1, &n, dtype);
  if (blocked(y)) return NULL;
  int64_t positive = (n + 1) / 2;
  t_copy_(t_narrow(y, 0, 0, positive), numbers(0, positive, dtype), false);
  t_copy_(t_narrow(y, 0, positive, n / 2), numbers(-(n / 2), 0, dtype), false);
  return t_mul_f(y, 1 / ((double)n * spacing));
}

Tensor *t_rfftfreq(int64_t n, double spacing, DType dtype) {
  OP_ENTERED(t_rfftfreq, "fft_rfftfreq", n, spacing, dtype);
  int64_t length = n / 2 + 1;
  if (!check_frequencies("rfftfreq", dtype) || sizes_numel(1, &length) < 0) return NULL;
  return t_mul_f(numbers(0, length, dtype), 1 / ((double)n * spacing));
}

/* Rolls x by half of each size, rounded down or up; dims.n < 0: all dimensions. */
static Tensor *roll_by_half(Tensor *x, Ints dims, bool up) {
  int64_t shifts[MAX_DIM], own[MAX_DIM];
  if (blocked(x)) return NULL;
  int n = dims.n < 0 ? x->ndim : dims.n;
  if (n > MAX_DIM) return fail(ERR_RUNTIME, "tensors have at most %d dimensions", MAX_DIM);
  for (int i = 0; i < n; i++) {
    int64_t dim = dims.n < 0 ? i : dims.v[i], size = tensor_size(x, dim);
    if (failed()) return NULL;
    own[i] = dim_wrap(dim, x->ndim);
    shifts[i] = (size + up) / 2;
  }
  return t_roll(x, (Ints){n, shifts}, (Ints){n, own});
}

Tensor *t_fftshift(Tensor *x, Ints dims) {
  OP_ENTERED(t_fftshift, "fft_fftshift", x, dims);
  return roll_by_half(x, dims, false);
}

Tensor *t_ifftshift(Tensor *x, Ints dims) {
  OP_ENTERED(t_ifftshift, "fft_ifftshift", x, dims);
  return roll_by_half(x, dims, true);
}
