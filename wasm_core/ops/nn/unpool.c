/* max_unpool: puts the values of max_pool back at the places they came from. */
#include "call/call.h"
#include "ground/text.h"
#include "nn_rows.h"
#include "ops/create/create.h"
#include "ops/nn/nn.h"
#include "ops/op.h"
#include "ops/view/view.h"

typedef struct {
  int n; /* spatial dims */
  int64_t v[3];
} Lengths;

static void *too_short(void) { return fail(ERR_INDEX, "tuple index out of range"); }

/* Argument k for each of n dims; a bare number stands for all. */
static bool each_dim(const Call *c, int k, int n, Lengths *out) {
  Ints given = arg_ints(c, k);
  bool list = c->v[k].tag == TAG_INTS;
  if (list && given.n < n) return too_short();
  for (int d = 0; d < n && !failed(); d++) out->v[d] = given.v[d];
  out->n = n;
  return !failed();
}

/* The lengths that max_pool would shorten to those of the input. */
static bool default_lengths(const Call *c, const Tensor *x, int n, Lengths *step, Lengths *size) {
  static const char *const sides[] = {"two elements (height, width)",
                                      "three elements (depth, height, width)"};
  Lengths kernel = {0}, pad = {0};
  Ints given = arg_ints(c, 2);
  if (c->v[2].tag == TAG_INTS && given.n < n && n > 1) {
    fail(ERR_RUNTIME, "There should be exactly %s in output_size, but got %d elements.",
         sides[n - 2], given.n);
    return false;
  }
  int stride = arg_given(c, 3) ? 3 : 2;
  if (!each_dim(c, 2, n, &kernel) || !each_dim(c, stride, n, step) || !each_dim(c, 4, n, &pad))
    return false;
  if (x->ndim < n) return too_short();
  size->n = n;
  for (int d = 0; d < n; d++)
    size->v[d] = (x->sizes[x->ndim - n + d] - 1) * step->v[d] + kernel.v[d] - 2 * pad.v[d];
  return true;
}

/* The lengths of argument 5, which max_pool must be able to shorten to the input's. */
static bool wanted_lengths(const Call *c, const Lengths *step, Lengths *size) {
  if (!arg_given(c, 5)) return true;
  int n = size->n;
  Value wanted = c->v[5];
  if (wanted.n == n + 2) {
    wanted.p = (const int64_t *)wanted.p + 2;
    wanted.n = n;
  }
  if (wanted.n != n) {
    fail(ERR_VALUE,
         "output_size should be a sequence containing %d or %d elements, but it has a length of "
         "'%d'",
         n, n + 2, (int)wanted.n);
    return false;
  }
  for (int d = 0; d < n; d++) {
    int64_t asked = ((const int64_t *)wanted.p)[d];
    int64_t low = size->v[d] - step->v[d], high = size->v[d] + step->v[d];
    if (low < asked && asked < high) continue;
    fail(ERR_VALUE, "invalid output_size \"%s\" (dim %d must be between %lld and %lld)",
         nn_list_text(&wanted), d, (Shown)low, (Shown)high);
    return false;
  }
  for (int d = 0; d < n; d++) size->v[d] = ((const int64_t *)wanted.p)[d];
  return true;
}

static bool check_unpool(const Tensor *x, const Tensor *indices, const Lengths *size) {
  int n = size->n;
  const char *got = n == 2 ? textf(" but got: %s", legacy(indices)) : "";
  if (indices->dtype != DT_I64)
    fail(ERR_RUNTIME, "elements in indices should be type int64%s", got ? got : "");
  else if (x->ndim != n + 1 && x->ndim != n + 2)
    fail(ERR_RUNTIME,
         "Input to max_unpooling%dd should be a %dd or %dd Tensor, but got a tensor with %d "
         "dimensions.",
         n, n + 1, n + 2, x->ndim);
  else if (!tensor_same_shape(x, indices))
    fail(ERR_RUNTIME,
         "Expected shape of indices to be same as that of the input tensor (%s) but got indices "
         "tensor with shape: %s",
         shape_text(x), shape_text(indices));
  for (int d = x->ndim - n - 1; d < x->ndim && !failed(); d++)
    if (x->sizes[d] == 0 && d > 0)
      fail(ERR_RUNTIME,
           "max_unpooling%dd_forward_out_cpu(): Expected input to have non-zero size for non-batch "
           "dimensions, but got %s with dimension %d being empty.",
           n, shape_text(x), d);
  return !failed() &&
         dtype_check_float_kernel(n == 2 ? "max_unpool2d" : "max_unpool3d", tensor_dtype(x));
}

/* Checks that indices are below `places`, the size of an output. Reports the last one that is
 * not. */
static bool check_places(Tensor *indices, const Lengths *size, int64_t places) {
  Tensor *flat = t_contiguous(t_detach(indices));
  if (!flat || tensor_absent(flat)) return flat;
  const int64_t *at = (const int64_t *)(const void *)tensor_data(flat);
  for (int64_t i = flat->numel - 1; i >= 0; i--) {
    if (at[i] >= 0 && at[i] < places) continue;
    Text shown = {0};
    for (int d = 0; d < size->n; d++) text_format(&shown, d ? "x%lld" : "%lld", (Shown)size->v[d]);
    const char *text = text_end(&shown);
    fail(ERR_RUNTIME, "Found an invalid max index: %lld (output volumes are of size %s)",
         (Shown)at[i], text ? text : "");
    return false;
  }
  return true;
}

static Tensor *unpool(Tensor *x, Tensor *indices, const Lengths *size) {
  if (blocked(x, indices) || !check_unpool(x, indices, size)) return NULL;
  int n = size->n, outer = x->ndim - n;
  int64_t places = 1, sizes[5];
  for (int d = 0; d < n; d++)
    if (__builtin_mul_overflow(places, size->v[d], &places)) places = INT64_MAX;
  if (!check_places(indices, size, places)) return NULL;
  for (int d = 0; d < outer; d++) sizes[d] = x->sizes[d];
  sizes[outer] = places;
  Tensor *flat = t_zeros((Ints){outer + 1, sizes}, tensor_dtype(x));
  flat = t_scatter(flat, -1, t_flatten(indices, -n, -1), t_flatten(x, -n, -1));
  for (int d = 0; d < n; d++) sizes[outer + d] = size->v[d];
  return t_reshape(flat, outer + n, sizes);
}

static bool check_lengths(const Lengths *size) {
  for (int d = 0; d < size->n; d++)
    if (size->v[d] < 0)
      fail(ERR_VALUE,
           "max_unpooling: output_size must contain non-negative spatial dimensions, but got "
           "output_size[%d]=%lld",
           d, (Shown)size->v[d]);
  return !failed();
}

/* Arguments: input, indices, kernel_size, stride, padding, output_size. */
Tensor *t_max_unpool(Call *c, int n) {
  OP_ENTERED(t_max_unpool, "max_unpool", c, n);
  Tensor *x = arg_tensor(c, 0), *indices = arg_tensor(c, 1);
  Lengths step = {0}, size = {0};
  if (blocked(x, indices) || !default_lengths(c, x, n, &step, &size)) return NULL;
  if (!wanted_lengths(c, &step, &size) || !check_lengths(&size)) return NULL;
  if (n > 1) return unpool(x, indices, &size);
  /* a line is a column of an image */
  size.n = 2;
  size.v[1] = 1;
  Tensor *column = unpool(t_unsqueeze(x, -1), t_unsqueeze(indices, -1), &size);
  return t_squeeze_dim(column, -1);
}
