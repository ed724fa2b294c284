/* Tensors from nothing: constants, ranges, identities, and the options that all of them take.
 *
 * There is one device, so `device` and `pin_memory` are only checked. */
#include "ops/create/create.h"

#include <math.h>

#include "kernels/complex_maths.h"
#include <string.h>

#include "create_rows.h"
#include "ground/memory.h"
#include "ops/op.h"
#include "ops/view/copy.h"

/* ------------------------------------------------------------ options */

/* Whether argument k names the only device; the error set otherwise. */
static bool check_device(const Call *c, int k) {
  static const char *const known[] = {"cpu",    "cuda",   "ipu",   "xpu",  "mkldnn",
                                      "opengl", "opencl", "ideep", "hip",  "ve",
                                      "fpga",   "maia",   "xla",   "lazy", "vulkan",
                                      "mps",    "meta",   "hpu",   "mtia", "privateuseone"};
  if (failed() || !arg_given(c, k)) return !failed();
  const char *name = arg_str(c, k);
  if (!name)
    return fail(ERR_RUNTIME, "Cannot access accelerator device when none is available."), false;
  size_t n = strcspn(name, ":");
  if (n == 3 && strncmp(name, "cpu", n) == 0) return true;
  if (n == 4 && strncmp(name, "meta", n) == 0) return true;
  if (n == 4 && strncmp(name, "cuda", n) == 0)
    return fail(ERR_ASSERTION, "Torch not compiled with CUDA enabled"), false;
  if (n == 3 && strncmp(name, "mps", n) == 0)
    return fail(ERR_RUNTIME, "PyTorch is not linked with support for mps devices"), false;
  if (n == 3 && strncmp(name, "xpu", n) == 0)
    return fail(ERR_ASSERTION, "Torch not compiled with XPU enabled"), false;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strlen(known[i]) == n && strncmp(name, known[i], n) == 0)
      return fail(ERR_NOT_IMPLEMENTED, "pygrad: no device but 'cpu' and 'meta', got '%s'", name),
             false;
  fail(ERR_RUNTIME,
       "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, "
       "xla, lazy, vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device "
       "string: %.*s",
       (int)n, name);
  return false;
}

/* Converts a fresh t to the layout that argument k names. A sparse tensor of zeros stores no
 * elements. */
static Tensor *in_layout(const Call *c, int k, Tensor *t) {
  Layout l = LAYOUT_STRIDED;
  const char *name = arg_str(c, k);
  if (!name || !layout_named(name, &l) || l == tensor_layout(t)) return failed() ? NULL : t;
  if (tensor_absent(t)) return door_needs_elements(c->row->name), NULL;
  if (l == LAYOUT_STRIDED) return t_to_dense(t, DT_NONE, true);
  return c->row->sparse
             ? t_sparse_zeros(t->ndim, t->sizes, l, tensor_dtype(t))
             : fail(ERR_RUNTIME, "%s(...) is not implemented for sparse layout", c->row->name);
}

/* Options stand in the order of OPTIONS: dtype, layout, device, pin_memory, requires_grad. */
DType create_option_dtype(const Call *c, int k, DType absent) {
  DType given = arg_dtype(c, k);
  if (c->out.tag != TAG_TENSOR) return given == DT_NONE ? absent : given;
  DType own = tensor_dtype(c->out.t);
  if (given != DT_NONE && given != own)
    fail(ERR_RUNTIME, "dtype %s does not match dtype of out parameter (%s)",
         dtype_info[given].legacy, dtype_info[own].legacy);
  return own;
}

int32_t create_device_form(const Call *c, int k, int32_t otherwise) {
  if (!check_device(c, k)) return -1;
  return !arg_given(c, k) ? otherwise : arg_str(c, k)[0] == 'm' ? FORM_META : 0;
}

/* Without a device, options mean the device of out= or of the tensor to imitate. */
bool create_options_begin(const Call *c, int k) {
  if (failed()) return false;
  const Value *like = c->out.tag == TAG_TENSOR ? &c->out : c->v;
  int32_t form = create_device_form(
      c, k + 2, like->tag == TAG_TENSOR ? like->t->form & FORM_ABSENT : form_default);
  form_made = 0;
  if (form > 0 && like->tag == TAG_TENSOR && is_sparse(like->t))
    return door_needs_elements(c->row->name);
  if (form > 0) {
    form_made = form;
    unusual_tensors++; /* makes doors look, though there may be no such tensor yet */
  }
  return form >= 0;
}

Tensor *create_options_end(const Call *c, int k, Tensor *t) {
  const int32_t form = form_made;
  form_made = 0;
  unusual_tensors -= form != 0;
  if (blocked(t) || !(t = in_layout(c, k + 1, t))) return NULL;
  if (form && !tensor_absent(t)) /* computed from numbers of the CPU */
    t = WITH_FORM(form, tensor_empty_like(t, tensor_dtype(t)));
  if (arg_bool(c, k + 3))
    return fail(ERR_RUNTIME, "pin_memory=True requires a CUDA or other accelerator backend; no "
                             "pinned memory allocator is available on this system.");
  if (!arg_bool(c, k + 4)) return t;
  if (!dtype_is_inexact(tensor_dtype(t)))
    return fail(ERR_RUNTIME,
                "Only Tensors of floating point and complex dtype can require gradients");
  t->flags |= FLAG_REQUIRES_GRAD;
  return t;
}

/* ------------------------------------------------------------ constants */

static Tensor *fill_with(Tensor *y, Tensor *value) {
  VIEW_ENTERED(fill_with, "fill_", y, value);
  if (blocked(y) || blocked(value) || !element_number_fits(value, tensor_dtype(y))) return NULL;
  return tensor_fill_data(y, value) ? y : NULL;
}

Tensor *t_zeros(Ints sizes, DType dtype) {
  OP_ENTERED(t_zeros, "zeros", sizes, dtype);
  for (int i = 0; i < sizes.n; i++)
    if (sizes.v[i] < 0) return fail(ERR_RUNTIME, "zeros: Dimension size must be non-negative.");
  return tensor_zeros(sizes.n, sizes.v, dtype);
}

Tensor *t_ones(Ints sizes, DType dtype) {
  OP_ENTERED(t_ones, "ones", sizes, dtype);
  return failed() ? NULL : tensor_full(sizes.n, sizes.v, dtype, 1);
}

DType create_scalar_dtype(const Tensor *value) {
  if (!value) return DT_NONE;
  return dtype_is_complex(tensor_dtype(value)) ? elementwise_default_complex()
         : dtype_is_float(tensor_dtype(value)) ? dtype_default()
         : value->dtype == DT_BOOL             ? DT_BOOL
                                               : DT_I64;
}

Tensor *t_full(Ints sizes, Tensor *value, DType dtype) {
  OP_ENTERED(t_full, "full", sizes, value, dtype);
  return blocked(value) ? NULL : fill_with(t_empty(sizes, dtype, NULL), value);
}

Tensor *t_empty(Ints sizes, DType dtype, const char *format_name) {
  OP_ENTERED(t_empty, "empty", sizes, dtype, format_name);
  MemoryFormat format = copy_format_named(format_name, FORMAT_CONTIGUOUS);
  if (failed()) return NULL;
  if (format == FORMAT_PRESERVE) return fail(ERR_RUNTIME, "unsupported memory format Preserve");
  return tensor_empty_format(sizes.n, sizes.v, dtype, format);
}

Tensor *t_empty_strided(Ints sizes, Ints strides, DType dtype) {
  OP_ENTERED(t_empty_strided, "empty_strided", sizes, strides, dtype);
  if (failed()) return NULL;
  if (sizes.n != strides.n)
    return fail(ERR_RUNTIME,
                "dimensionality of sizes (%d) must match dimensionality of strides (%d)", sizes.n,
                strides.n);
  if (sizes_numel(sizes.n, sizes.v) < 0) return NULL;
  for (int i = 0; i < strides.n; i++)
    if (strides.v[i] < 0)
      return fail(ERR_RUNTIME, "Storage size calculation overflowed with sizes=%s and strides=%s",
                  sizes_text(sizes.n, sizes.v), sizes_text(strides.n, strides.v));
  return tensor_empty_strided(sizes.n, sizes.v, strides.v, dtype);
}

Tensor *t_empty_permuted(Ints sizes, Ints order, DType dtype) {
  OP_ENTERED(t_empty_permuted, "empty_permuted", sizes, order, dtype);
  int64_t strides[MAX_DIM], step = 1;
  bool seen[MAX_DIM] = {false};
  if (failed() || sizes_numel(sizes.n, sizes.v) < 0) return NULL;
  if (sizes.n != order.n)
    return fail(ERR_RUNTIME,
                "Number of dimensions in size does not match the length of the physical_layout; "
                "i.e. len(size) = %d is not equal to len(physical_layout) = %d",
                sizes.n, order.n);
  for (int i = order.n - 1; i >= 0; i--) {
    int64_t d = order.v[i];
    if (d < 0 || d >= sizes.n)
      return fail(ERR_RUNTIME,
                  "Dimension out of range (expected to be between 0 and %d, but got %lld at index "
                  "%d).  NB: negative dims not currently supported; file an issue if you want it.",
                  sizes.n - 1, (Shown)d, i);
    if (seen[d]) return fail(ERR_RUNTIME, "Duplicate dim not allowed");
    seen[d] = true;
    strides[d] = step;
    step *= sizes.v[d] > 1 ? sizes.v[d] : 1;
  }
  return tensor_empty_strided(sizes.n, sizes.v, strides, dtype);
}

Tensor *t_like(Tensor *x, Tensor *value, DType dtype, const char *format_name) {
  MemoryFormat format = copy_format_named(format_name, FORMAT_PRESERVE);
  if (blocked(x)) return NULL;
  if (is_sparse(x))
    return !value || tensor_get_f(value, 0) == 0 ? t_sparse_zeros_like(x, dtype)
                                                 : door_refuse_layout("fill_.Scalar", x);
  Tensor *y = tensor_empty_like_format(x, dtype, format);
  return value ? fill_with(y, value) : y;
}

Tensor *t_eye(int64_t rows, int64_t cols, DType dtype) {
  OP_ENTERED(t_eye, "eye", rows, cols, dtype);
  if (failed()) return NULL;
  if (rows < 0) return fail(ERR_RUNTIME, "n must be greater or equal to 0, got %lld", (Shown)rows);
  if (cols < 0) return fail(ERR_RUNTIME, "m must be greater or equal to 0, got %lld", (Shown)cols);
  Tensor *y = tensor_zeros(2, (int64_t[]){rows, cols}, dtype);
  const int64_t least = rows < cols ? rows : cols;
  for (int64_t i = 0; y && i < least && !tensor_absent(y); i++) tensor_set_i(y, i * (cols + 1), 1);
  return y;
}

/* ------------------------------------------------------------ ranges */

/* start + i * step for every i: integers exactly, floats computed in double. */
static void fill_range(Tensor *y, const Tensor *start, const Tensor *step) {
  DType d = tensor_dtype(y);
  if (tensor_absent(y)) return;
  if (dtype_is_float(d)) {
    double from = tensor_get_f(start, 0), by = tensor_get_f(step, 0);
    DISPATCH_FLOAT(d, {
      T *out = (T *)(void *)tensor_data(y);
      for (int64_t i = 0; i < y->numel; i++) out[i] = (T)(from + by * (double)i);
    })
    return;
  }
  int64_t from = tensor_get_i(start, 0), by = tensor_get_i(step, 0);
  DISPATCH_INT(d, {
    T *out = (T *)(void *)tensor_data(y);
    for (int64_t i = 0; i < y->numel; i++)
      out[i] = (T)(uint64_t)((uint64_t)from + (uint64_t)by * (uint64_t)i);
  })
}

static bool check_range(double start, double end, double step) {
  if (step == 0 || step != step) return fail(ERR_RUNTIME, "step must be nonzero"), false;
  if (!isfinite(start) || !isfinite(end))
    return fail(ERR_RUNTIME, "unsupported range: %g -> %g", start, end), false;
  if ((step > 0) == (end >= start) || end == start) return true;
  fail(ERR_RUNTIME, "upper bound and lower bound inconsistent with step sign");
  return false;
}

/* The length in integers, which doubles could not count. */
static int64_t exact_length(int64_t start, int64_t end, int64_t step) {
  uint64_t gap = step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end;
  uint64_t by = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
  return (step > 0 ? end <= start : start <= end) ? 0 : (int64_t)((gap - 1) / by + 1);
}

Tensor *t_arange(Tensor *start, Tensor *end, Tensor *step, DType dtype) {
  OP_ENTERED(t_arange, "arange", start, end, step, dtype);
  MADE_IN_FLOAT(dtype, t_arange(start, end, step, dtype));
  if (blocked(end)) return NULL;
  if (!start) start = tensor_wrapped_i(0);
  if (!step) step = tensor_wrapped_i(1);
  if (blocked(start) || blocked(step)) return NULL;
  double from = tensor_get_f(start, 0), to = tensor_get_f(end, 0), by = tensor_get_f(step, 0);
  if (!check_range(from, to, by)) return NULL;
  if (dtype == DT_BOOL) return dtype_no_kernel("arange_cpu", DT_BOOL);
  int64_t length;
  if (dtype == DT_I64) {
    if (tensor_get_i(step, 0) == 0) return fail(ERR_VALUE, "step must be nonzero");
    length = exact_length(tensor_get_i(start, 0), tensor_get_i(end, 0), tensor_get_i(step, 0));
  } else {
    double n = ceil((to - from) / by);
    if (!(n >= 0 && n < 9007199254740992.0))
      return fail(ERR_RUNTIME, "invalid size, possible overflow?");
    length = (int64_t)n;
  }
  Tensor *y = tensor_empty(1, &length, dtype);
  if (y) fill_range(y, start, step);
  return y;
}

DType create_arange_dtype(const Tensor *start, const Tensor *end, const Tensor *step) {
  const Tensor *each[3] = {start, end, step};
  for (int i = 0; i < 3; i++)
    if (each[i] && dtype_is_float(tensor_dtype(each[i]))) return dtype_default();
  return DT_I64;
}

Tensor *t_range(Tensor *start, Tensor *end, Tensor *step, DType dtype) {
  OP_ENTERED(t_range, "range", start, end, step, dtype);
  MADE_IN_FLOAT(dtype, t_range(start, end, step, dtype));
  if (!step) step = tensor_wrapped_i(1);
  if (blocked(start) || blocked(end) || blocked(step)) return NULL;
  warn_user("torch.range is deprecated and will be removed in a future release because its "
            "behavior is inconsistent with Python's range builtin. Instead, use torch.arange, "
            "which produces values in [start, end).");
  double from = tensor_get_f(start, 0), to = tensor_get_f(end, 0), by = tensor_get_f(step, 0);
  if (!check_range(from, to, by)) return NULL;
  if (dtype == DT_BOOL) return dtype_no_kernel("range_cpu", DT_BOOL);
  double n = floor((to - from) / by) + 1;
  if (!(n >= 0 && n < 9007199254740992.0))
    return fail(ERR_RUNTIME, "invalid size, possible overflow?");
  int64_t length = (int64_t)n;
  Tensor *y = tensor_empty(1, &length, dtype);
  if (y) fill_range(y, start, step);
  return y;
}

DType create_between_dtype(const Tensor *start, const Tensor *end) {
  bool any = (start && dtype_is_complex(tensor_dtype(start))) ||
             (end && dtype_is_complex(tensor_dtype(end)));
  return any ? elementwise_default_complex() : dtype_default();
}

static Tensor *check_ends(Tensor *start, Tensor *end, int64_t steps, DType dtype,
                          const char *name) {
  if (blocked(start) || blocked(end)) return NULL;
  if (start->ndim || end->ndim)
    return fail(
        ERR_RUNTIME,
        "%s only supports 0-dimensional start and end tensors, but got %s with %d dimension(s).",
        name, start->ndim ? "start" : "end", start->ndim ? start->ndim : end->ndim);
  if (steps < 0) return fail(ERR_RUNTIME, "number of steps must be non-negative");
  if (dtype_is_complex(create_between_dtype(start, end)) && !dtype_is_complex(dtype))
    return fail(ERR_RUNTIME,
                "torch.%s(): inferred dtype %s can't be safely cast to passed dtype %s", name,
                dtype_c_name(create_between_dtype(start, end)), dtype_info[dtype].legacy);
  if (dtype == DT_BOOL)
    return fail(ERR_NOT_IMPLEMENTED, "\"%s_cpu\" not implemented for 'Bool'", name);
  return tensor_empty(1, &steps, dtype);
}

/* An end of a range of this type: integers are truncated first. */
static double end_as(const Tensor *t, DType dtype) {
  double v = tensor_get_f(t, 0);
  return dtype_is_float(dtype) ? v : trunc(v);
}

/* Element i of n from a to b, from the nearer end, so that the last one is b. */
#define BETWEEN(R, a, b, i, n) \
  ((i) < (n) / 2 ? (R)((a) + by * (R)(i)) : (R)((b) - by * (R)((n) - (i) - 1)))

Tensor *t_linspace(Tensor *start, Tensor *end, int64_t steps, DType dtype) {
  OP_ENTERED(t_linspace, "linspace", start, end, steps, dtype);
  MADE_IN_FLOAT(dtype, t_linspace(start, end, steps, dtype));
  Tensor *y = check_ends(start, end, steps, dtype, "linspace");
  if (!y || tensor_absent(y)) return y;
  if (dtype == DT_F32) {
    float a = (float)tensor_get_f(start, 0), b = (float)tensor_get_f(end, 0),
          by = (b - a) / (float)(steps - 1);
    float *out = (float *)(void *)tensor_data(y);
    for (int64_t i = 0; i < steps; i++) out[i] = steps == 1 ? a : BETWEEN(float, a, b, i, steps);
    return y;
  }
  if (dtype_is_complex(dtype)) {
    complex_f64 a = tensor_get_c(start, 0), b = tensor_get_c(end, 0),
                by = (b - a) / (double)(steps - 1);
    for (int64_t i = 0; i < steps; i++)
      element_store_c(tensor_data(y) + i * dtype_bytes(dtype), dtype,
                      steps == 1 ? a : BETWEEN(complex_f64, a, b, i, steps));
    return y;
  }
  double a = end_as(start, dtype), b = end_as(end, dtype);
  double by = (b - a) / (double)(steps - 1);
  for (int64_t i = 0; i < steps; i++)
    tensor_set_f(y, i, steps == 1 ? a : BETWEEN(double, a, b, i, steps));
  return y;
}

Tensor *t_logspace(Tensor *start, Tensor *end, int64_t steps, double base, DType dtype) {
  OP_ENTERED(t_logspace, "logspace", start, end, steps, base, dtype);
  Tensor *y = check_ends(start, end, steps, dtype, "logspace");
  if (!y || tensor_absent(y)) return y;
  if (dtype_is_complex(dtype)) {
    complex_f64 a = tensor_get_c(start, 0), b = tensor_get_c(end, 0),
                by = (b - a) / (double)(steps - 1);
    for (int64_t i = 0; i < steps; i++)
      element_store_c(tensor_data(y) + i * dtype_bytes(dtype), dtype,
                      complex_pow(base, steps == 1 ? a : BETWEEN(complex_f64, a, b, i, steps)));
    return y;
  }
  double a = end_as(start, dtype), b = end_as(end, dtype), by = (b - a) / (double)(steps - 1);
  for (int64_t i = 0; i < steps; i++) {
    double power = steps == 1 ? a : BETWEEN(double, a, b, i, steps);
    tensor_set_f(y, i, pow(base, power));
  }
  return y;
}

/* ------------------------------------------------------------ indices of triangles */

static int64_t clamp_to(int64_t v, int64_t most) { return v < 0 ? 0 : v > most ? most : v; }

/* The columns [from, to) of row i of a triangle. */
static void triangle_row(int64_t i, int64_t cols, int64_t offset, bool lower, int64_t *from,
                         int64_t *to) {
  *from = lower ? 0 : clamp_to(i + offset, cols);
  *to = lower ? clamp_to(i + offset + 1, cols) : cols;
}

/* The number of elements in rows [first, last). Stops counting once there are too many. */
static int64_t triangle_count(int64_t first, int64_t last, int64_t cols, int64_t offset,
                              bool lower) {
  int64_t count = 0, from, to;
  for (int64_t i = first, run; i < last && count < UINT32_MAX; i += run) {
    triangle_row(i, cols, offset, lower, &from, &to);
    /* full rows are adjacent */
    run = to - from < cols ? 1 : lower ? last - i : (last < 1 - offset ? last : 1 - offset) - i;
    count = run > UINT32_MAX ? UINT32_MAX : count + run * (to - from);
  }
  return count;
}

Tensor *t_triangle_indices(int64_t rows, int64_t cols, int64_t offset, DType dtype, bool lower) {
  if (failed()) return NULL;
  if (rows < 0) return fail(ERR_RUNTIME, "row must be non-negative, got%lld", (Shown)rows);
  if (cols < 0) return fail(ERR_RUNTIME, "col must be non-negative, got%lld", (Shown)cols);
  if (dtype_kind(dtype) != KIND_INT)
    return dtype_no_kernel(lower ? "tril_indices" : "triu_indices", dtype);
  offset = offset < -rows ? -rows : offset > cols ? cols : offset;
  int64_t first = lower && offset < 0 ? -offset : 0;
  int64_t last = cols == 0 ? first : lower || rows < cols - offset ? rows : cols - offset;
  int64_t count = triangle_count(first, last, cols, offset, lower), width = dtype_bytes(dtype),
          at = 0, from, to;
  Tensor *y = tensor_empty(2, (int64_t[]){2, count}, dtype);
  char *out = y ? tensor_data(y) : NULL;
  for (int64_t i = first; y && !tensor_absent(y) && i < last; i++) {
    triangle_row(i, cols, offset, lower, &from, &to);
    for (int64_t j = from; j < to; j++, at++) {
      element_store_i(out + at * width, dtype, i);
      element_store_i(out + (count + at) * width, dtype, j);
    }
  }
  return y;
}

/* ------------------------------------------------------------ vander */

Tensor *t_vander(Tensor *x, int64_t columns, bool increasing) {
  OP_ENTERED(t_vander, "vander", x, columns, increasing);
  if (blocked(x)) return NULL;
  if (x->ndim != 1) return fail(ERR_RUNTIME, "x must be a one-dimensional tensor.");
  if (columns < 0) return fail(ERR_RUNTIME, "N must be non-negative.");
  if (columns > INT16_MAX) return fail(ERR_NOT_IMPLEMENTED, "vander: N is too large");
  if (!dtype_is_inexact(tensor_dtype(x))) x = t_to(x, DT_I64);
  if (!x || columns == 0)
    return x ? tensor_empty(2, (int64_t[]){x->sizes[0], 0}, tensor_dtype(x)) : NULL;
  Tensor **powers = scratch_array(columns, sizeof *powers);
  for (int64_t k = 0; powers && k < columns; k++)
    powers[k] = k == 0 ? t_ones_like(x) : k == 1 ? x : t_mul(powers[k - 1], x);
  Tensor *y = failed() ? NULL : t_stack((Tensors){(int32_t)columns, powers}, 1);
  return increasing ? y : t_flip(y, (Ints){1, (int64_t[]){1}});
}

/* ------------------------------------------------------------ conversions */

Tensor *t_to_options(Tensor *x, DType dtype, int32_t form, bool copy, const char *format_name) {
  OP_ENTERED_AS(t_to_options(x, dtype, form, copy, format_name), "to", x, dtype, (bool){false},
                copy, format_name, form);
  MemoryFormat format = copy_format_named(format_name, FORMAT_PRESERVE);
  if (blocked(x) || form < 0) return NULL;
  if (dtype == DT_NONE) dtype = tensor_dtype(x);
  if (!copy && dtype == x->dtype && tensor_has_format(x, format) && form == (x->form & FORM_ABSENT))
    return x;
  return t_to_device(x, dtype, form, format);
}

Tensor *t_contiguous_format(Tensor *x, const char *format_name) {
  VIEW_ENTERED(t_contiguous_format, "contiguous", x, format_name);
  MemoryFormat format = copy_format_named(format_name, FORMAT_CONTIGUOUS);
  if (blocked(x)) return NULL;
  if (format == FORMAT_PRESERVE && !tensor_is_contiguous(x))
    return fail(ERR_RUNTIME, "preserve memory format is unsupported by the contiguous operator");
  return tensor_has_format(x, format) ? x : t_clone_format(x, format);
}
