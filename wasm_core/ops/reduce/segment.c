/* segment_reduce: sums, products, means and extrema of consecutive parts of a dimension, whose
 * lengths or offsets a tensor gives. */
#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "ops/reduce/reduce.h"
#include "reduce_rows.h"

/* X(name, kind): the host's names, in the order of the node's texts. */
#define SEGMENT_REDUCTIONS(X) \
  X(sum, SUM) X(prod, PROD) X(mean, MEAN) X(amax, MAX) X(amin, MIN) X(max, MAX) X(min, MIN)
typedef enum { SUM, PROD, MEAN, MAX, MIN } Folding;
#define NAME_OF(name, kind) #name,
static const char *const names[] = {SEGMENT_REDUCTIONS(NAME_OF)};
#undef NAME_OF
#define KIND_OF(name, kind) kind,
static const Folding kinds[] = {SEGMENT_REDUCTIONS(KIND_OF)};
#undef KIND_OF
enum { N_NAMES = sizeof kinds / sizeof *kinds };

static int reduction_index(const char *reduce) {
  for (int i = 0; i < N_NAMES; i++)
    if (reduce && strcmp(reduce, names[i]) == 0) return i;
  fail(ERR_RUNTIME, "reduce argument must be either sum, prod, mean, amax or amin, got %s",
       reduce ? reduce : "None");
  return -1;
}

/* The places of the parts. Data is (rows, size, inner), the results are (rows, count, inner), and
 * part k of row r is entry r * count + k of `first` and `length`. */
typedef struct {
  int64_t rows, size, inner, count;
  int64_t *first, *length;
} Parts;

static bool check_given(const Tensor *data, const Tensor *given, bool offsets, int64_t axis) {
  const char *name = offsets ? "offsets" : "lengths";
  if (data->ndim < given->ndim)
    fail(ERR_RUNTIME,
         "Expected data.dim() >= %s_value.dim() to be true, but got false.  (Could this error "
         "message be improved?  If so, please report an enhancement request to PyTorch.)",
         name);
  else if (axis != given->ndim - 1)
    fail(ERR_RUNTIME,
         "segment_reduce(): Expected axis to be the last dimension of %s but got %lld.", name,
         (Shown)axis);
  else if (!sizes_equal((int)axis, data->sizes, (int)axis, given->sizes))
    fail(ERR_RUNTIME, "segment_reduce(): Expected %s and data to have the same sizes before axis",
         name);
  else if (dtype_is_float(tensor_dtype(data)) && given->dtype != DT_I64 && given->dtype != DT_I32)
    dtype_no_kernel(offsets ? "_segment_reduce_offsets_cpu_kernel1"
                            : "_segment_reduce_lengths_cpu_kernel1",
                    tensor_dtype(given));
  return !failed();
}

/* Checks the lengths. Their minimum comes first: without lengths it is the error. */
static bool check_lengths(Tensor *lengths, int64_t size) {
  Tensor *least = t_min(lengths), *sums = t_sum(lengths, ONE_DIM(-1), false, DT_NONE);
  if (blocked(least, sums)) return false;
  if (tensor_absent(least)) return true;
  if (tensor_get_i(least, 0) < 0) fail(ERR_RUNTIME, "lengths contains negative value!");
  for (int64_t i = 0; i < sums->numel && !failed(); i++)
    if (tensor_get_i(sums, i) != size)
      fail(ERR_RUNTIME, "segment_reduce(): Expected all rows of lengths along axis to sum to "
                        "data.size(lengths.dim()-1) when !unsafe.");
  return !failed();
}

static bool segments_of(const Tensor *data, Tensor *given, bool offsets, int64_t axis, Parts *p) {
  given = t_contiguous(given);
  if (blocked(given)) return false;
  int64_t width = given->sizes[axis];
  *p = (Parts){.rows = 1, .size = data->sizes[axis], .inner = 1, .count = width - offsets};
  if (p->count < 0) p->count = 0;
  for (int64_t d = 0; d < data->ndim; d++) {
    if (d < axis) p->rows *= data->sizes[d];
    if (d > axis) p->inner *= data->sizes[d];
  }
  if (tensor_absent(given)) return true;
  p->first = scratch_array(p->rows * p->count + 1, sizeof *p->first);
  p->length = scratch_array(p->rows * p->count + 1, sizeof *p->length);
  if (failed()) return false;
  for (int64_t r = 0; r < p->rows && !failed(); r++)
    for (int64_t k = 0, at = 0; k < p->count && !failed(); k++) {
      int64_t v = tensor_get_i(given, r * width + k), place = r * p->count + k;
      if (offsets) at = v;
      p->first[place] = at;
      p->length[place] = offsets ? tensor_get_i(given, r * width + k + 1) - v : v;
      if (p->length[place] < 0)
        fail(ERR_RUNTIME,
             "Expected segment_length >= 0 to be true, but got false.  (Could this error message "
             "be improved?  If so, please report an enhancement request to PyTorch.)");
      else if (at < 0 || p->length[place] > p->size - at)
        fail(ERR_INDEX, "segment_reduce(): a segment lies outside of data");
      else at += p->length[place];
    }
  return !failed();
}

/* ------------------------------------------------------------ loops */

#define SEGMENT_LOOPS(T)                                                                           \
  SMALL static T reduced_##T(Folding kind, const T *x, int64_t n, int64_t step,                    \
                             const double *initial) {                                              \
    T y = (T)(initial        ? *initial                                                            \
              : kind == MAX  ? -INFINITY                                                           \
              : kind == MIN  ? INFINITY                                                            \
              : kind == PROD ? 1                                                                   \
                             : 0);                                                                 \
    for (int64_t i = 0; i < n; i++, x += step) {                                                   \
      if (kind == MAX) y = *x != *x || y < *x ? *x : y;                                            \
      else if (kind == MIN) y = *x != *x || *x < y ? *x : y;                                       \
      else if (kind == PROD) y *= *x;                                                              \
      else y += *x;                                                                                \
    }                                                                                              \
    if (kind != MEAN) return y;                                                                    \
    return n ? y / (T)n : initial ? y : (T)NAN;                                                    \
  }                                                                                                \
  SMALL static void spread_##T(Folding kind, T g, T y, const T *x, T *dx, int64_t n, int64_t step, \
                               const double *initial) {                                            \
    T ties = 0;                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                              \
      const T v = x[i * step];                                                                     \
      T d = kind == MEAN ? g / (T)n : g;                                                           \
      if (kind == MAX || kind == MIN) ties += d = v != v || v == y;                                \
      else if (kind == PROD && (v != v || v == 0)) {                                               \
        d = (T)(initial ? *initial : 1);                                                           \
        for (int64_t k = 0; k < n; k++)                                                            \
          if (k != i) d *= x[k * step];                                                            \
        d *= g;                                                                                    \
      } else if (kind == PROD) d = g * y / v;                                                      \
      dx[i * step] = d;                                                                            \
    }                                                                                              \
    for (int64_t i = 0; i < n && ties > 0; i++)                                                    \
      if (dx[i * step] != 0) dx[i * step] = g / ties;                                              \
  }
SEGMENT_LOOPS(float)
SEGMENT_LOOPS(double)

/* Runs a statement for each part and each position along the inner dimensions: x begins at element
 * `from`, the result is element `to`. */
#define EACH_PART(p, ...)                                                    \
  for (int64_t r = 0; r < (p)->rows; r++)                                    \
    for (int64_t k = 0; k < (p)->count; k++)                                 \
      for (int64_t i = 0; i < (p)->inner; i++) {                             \
        int64_t place = r * (p)->count + k, to = place * (p)->inner + i;     \
        int64_t from = (r * (p)->size + (p)->first[place]) * (p)->inner + i; \
        __VA_ARGS__;                                                         \
      }
#define REDUCE_PART(T) \
  ((T *)at)[to] = reduced_##T(kind, (const T *)x + from, p->length[place], p->inner, initial)
#define SPREAD_PART(T)                                                                           \
  spread_##T(kind, ((const T *)dy)[to], ((const T *)y)[to], (const T *)x + from, (T *)dx + from, \
             p->length[place], p->inner, initial)

static void reduce_parts(const Parts *p, Folding kind, const double *initial, DType d,
                         const void *x, void *at) {
  if (d == DT_F32) {
    EACH_PART(p, REDUCE_PART(float))
  } else {
    EACH_PART(p, REDUCE_PART(double))
  }
}

static void spread_parts(const Parts *p, Folding kind, const double *initial, DType d,
                         const void *dy, const void *y, const void *x, void *dx) {
  if (d == DT_F32) {
    EACH_PART(p, SPREAD_PART(float))
  } else {
    EACH_PART(p, SPREAD_PART(double))
  }
}

/* ------------------------------------------------------------ the op */

/* x contiguous and in a type with loops; halves become float. */
static Tensor *for_loops(Tensor *x) {
  if (blocked(x)) return NULL;
  return t_contiguous(
      elementwise_cast(x, dtype_is_half(tensor_dtype(x)) ? DT_F32 : tensor_dtype(x)));
}

enum { SAVED_DATA, SAVED_LENGTHS, SAVED_OFFSETS, SAVED_RESULT, N_SAVED };
enum { AXIS, REDUCE, INITIAL, HAS_INITIAL, N_NUMBERS };

/* The number of the part around each element of x, with x's shape. `inside` is false for elements
 * outside of all parts; NULL if there are none. */
static Tensor *parts_by_element(const Parts *p, const Tensor *x, int64_t axis, Tensor **inside) {
  int64_t sizes[MAX_DIM], in = 0;
  for (int64_t d = 0; d < x->ndim; d++) sizes[d] = d > axis ? 1 : x->sizes[d];
  Tensor *part = tensor_zeros(x->ndim, sizes, DT_I64);
  *inside = tensor_zeros(x->ndim, sizes, DT_BOOL);
  if (blocked(part, *inside)) return NULL;
  int64_t *number = (int64_t *)(void *)tensor_data(part);
  for (int64_t r = 0; r < p->rows; r++)
    for (int64_t k = 0; k < p->count; k++) {
      int64_t place = r * p->count + k, from = r * p->size + p->first[place];
      for (int64_t i = 0; i < p->length[place]; i++, in++) {
        number[from + i] = k;
        tensor_data(*inside)[from + i] = true;
      }
    }
  *inside = in == part->numel ? NULL : *inside;
  return t_expand(part, x->ndim, x->sizes);
}

/* The gradient as op calls, to be differentiated again. */
static Tensor *tape_gradient(Node *n, Tensor *g, Tensor *x, Tensor *y, const Parts *p) {
  Folding kind = kinds[n->numbers[REDUCE].i];
  int64_t axis = n->numbers[AXIS].i;
  Tensor *inside, *part = parts_by_element(p, x, axis, &inside), *one = tensor_wrapped_i(1);
  Tensor *none = tensor_zeros(y->ndim, y->sizes, tensor_dtype(y)), *dx = NULL;
#define EACH(t) t_gather(t, axis, part)
#define COUNT(mask) t_scatter_add(none, axis, part, t_to(mask, tensor_dtype(y)))
  if (kind == SUM) dx = EACH(g);
  if (kind == MEAN) dx = EACH(t_div(g, t_maximum(COUNT(t_ones_like(x)), one)));
  if (kind == MAX || kind == MIN) {
    Tensor *hit = t_logical_or(t_eq(x, EACH(y)), t_isnan(x));
    dx = t_mul(EACH(t_div(g, t_maximum(COUNT(hit), one))), hit);
  }
  if (kind == PROD) {
    Tensor *odd = t_logical_or(t_eq(x, tensor_wrapped_i(0)), t_isnan(x));
    Tensor *others = t_segment_reduce(t_where(odd, one, x), "prod", saved_tensor(n, SAVED_LENGTHS),
                                      NULL, saved_tensor(n, SAVED_OFFSETS), axis, true,
                                      n->numbers[HAS_INITIAL].i ? &n->numbers[INITIAL].f : NULL);
    others = t_mul(others, t_eq(COUNT(odd), one));
    dx = t_mul(EACH(g), t_where(odd, EACH(others), t_div(EACH(y), t_where(odd, one, x))));
  }
#undef EACH
#undef COUNT
  return inside ? t_mul(dx, inside) : dx;
}

static Tensor *plain_gradient(Node *n, Tensor *g, Tensor *x, Tensor *y, const Parts *p) {
  DType d = tensor_dtype(x);
  g = for_loops(g);
  x = for_loops(x);
  y = for_loops(y);
  if (blocked(g, x, y)) return NULL;
  Tensor *dx = tensor_zeros(x->ndim, x->sizes, tensor_dtype(x));
  if (!dx) return NULL;
  spread_parts(p, kinds[n->numbers[REDUCE].i],
               n->numbers[HAS_INITIAL].i ? &n->numbers[INITIAL].f : NULL, tensor_dtype(x),
               tensor_data(g), tensor_data(y), tensor_data(x), tensor_data(dx));
  return elementwise_cast(dx, d);
}

GRAD(SegmentReduceBackward0, "data lengths offsets result | axis:int "
                             "reduce:text=sum,prod,mean,amax,amin,max,min initial:float? -:bool")
{
  Tensor *x = saved_tensor(n, SAVED_DATA), *y = saved_tensor(n, SAVED_RESULT);
  Tensor *lengths = saved_tensor(n, SAVED_LENGTHS), *offsets = saved_tensor(n, SAVED_OFFSETS);
  Parts p;
  if (blocked(g[0], x, y)) return;
  if (tensor_absent(x)) { /* any tensor of its shape that depends on all of them */
    gi[0] = t_add(t_contiguous(x), t_add(t_sum_all(g[0]), t_sum_all(y)));
    return;
  }
  if (!segments_of(x, offsets ? offsets : lengths, offsets, n->numbers[AXIS].i, &p)) return;
  gi[0] = (grad_mode ? tape_gradient : plain_gradient)(n, g[0], x, y, &p);
}

/* initial NULL: none. Offsets take precedence over lengths. */
Tensor *t_segment_reduce(Tensor *data, const char *reduce, Tensor *lengths, Tensor *indices,
                         Tensor *offsets, int64_t axis, bool unsafe, const double *initial) {
  OP_ENTERED(t_segment_reduce, "segment_reduce", data, reduce, lengths, indices, offsets, axis,
             unsafe, initial);
  if (blocked(data) || (axis = dim_wrap(axis, data->ndim)) < 0) return NULL;
  if (indices)
    return fail(ERR_RUNTIME, "segment_reduce(): indices based reduction is not supported yet.");
  if (!lengths && !offsets)
    return fail(ERR_RUNTIME, "segment_reduce(): Either lengths or offsets must be defined.");
  Tensor *given = offsets ? offsets : lengths;
  if (!check_given(data, given, offsets, axis)) return NULL;
  if (!offsets && !unsafe && !check_lengths(lengths, data->sizes[axis])) return NULL;
  int which = reduction_index(reduce);
  if (which < 0 || !dtype_check_float_kernel("_segment_reduce_cpu", tensor_dtype(data)))
    return NULL;
  Node *n = node_new(&SegmentReduceBackward0, N_SAVED, N_NUMBERS, data, NULL);
  save(n, SAVED_DATA, data);
  save(n, SAVED_LENGTHS, lengths);
  save(n, SAVED_OFFSETS, offsets);
  num_i(n, AXIS, axis);
  num_i(n, REDUCE, which);
  num_f(n, INITIAL, initial ? *initial : 0);
  num_i(n, HAS_INITIAL, initial != NULL);
  Parts p;
  int64_t sizes[MAX_DIM];
  Tensor *x = for_loops(t_detach(data)), *y = NULL;
  if (x && segments_of(x, given, offsets, axis, &p)) {
    memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
    sizes[axis] = p.count;
    y = tensor_empty(x->ndim, sizes, tensor_dtype(x));
  }
  if (y && !tensor_absent(y))
    reduce_parts(&p, kinds[which], initial, tensor_dtype(x), tensor_data(x), tensor_data(y));
  y = set_history(elementwise_cast(y, tensor_dtype(data)), n);
  if (n && y) save_output(n, SAVED_RESULT, y);
  return y;
}
