/* Sorting lanes: sort, argsort, msort, topk, kthvalue, median, nanmedian, mode.
 *
 * Elements become unsigned keys with their index. Short lanes are merged, long ones go through a
 * radix sort that skips digits which all keys share; one item is selected by digits from the
 * top. These sorts are stable: a descending order is the ascending order of the complements, so
 * equal elements keep their order, and selection takes the first of them. topk and kthvalue are not
 * stable; see partial.c. */
#include "ops/order/sort.h"

#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/paths.h"
#include "ground/poll.h"
#include "ops/order/partial.h"
#include "order_rows.h"

/* ------------------------------------------------------------ keys */

static inline uint64_t key_f32(float v) {
  uint32_t bits;
  if (v != v) return UINT32_MAX;
  v = v == 0 ? 0 : v;
  memcpy(&bits, &v, sizeof bits);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
static inline uint64_t key_f64(double v) {
  uint64_t bits;
  if (v != v) return UINT64_MAX;
  v = v == 0 ? 0 : v;
  memcpy(&bits, &v, sizeof bits);
  return bits >> 63 ? ~bits : bits | 0x8000000000000000u;
}
static inline uint64_t key_u8(uint8_t v) { return v; }
static inline uint64_t key_b8(bool v) { return v; }
static inline uint64_t key_i8(int8_t v) { return (uint8_t)((uint8_t)v ^ 0x80u); }
static inline uint64_t key_i16(int16_t v) { return (uint16_t)((uint16_t)v ^ 0x8000u); }
static inline uint64_t key_i32(int32_t v) { return (uint32_t)v ^ 0x80000000u; }
static inline uint64_t key_i64(int64_t v) { return (uint64_t)v ^ 0x8000000000000000u; }

#define FILL_KEYS(D, T, KEY)                                                            \
  case D:                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                   \
      to[i].key = (KEY(ELEMENT((const T *)(const void *)x + i * step)) ^ flip) & width; \
      to[i].index = (uint32_t)i;                                                        \
    }                                                                                   \
    break;

static void fill_keys(const char *x, DType d, int64_t n, int64_t step, bool descending, Item *to) {
  uint64_t flip = descending ? UINT64_MAX : 0, width = UINT64_MAX >> (64 - 8 * dtype_bytes(d));
  switch (d) {
    FILL_KEYS(DT_F32, float, key_f32)
    FILL_KEYS(DT_F64, double, key_f64)
    FILL_KEYS(DT_U8, uint8_t, key_u8)
    FILL_KEYS(DT_BOOL, bool, key_b8)
    FILL_KEYS(DT_I8, int8_t, key_i8)
    FILL_KEYS(DT_I16, int16_t, key_i16)
    FILL_KEYS(DT_I32, int32_t, key_i32)
    FILL_KEYS(DT_I64, int64_t, key_i64)
    default: break;
  }
}

/* ------------------------------------------------------------ orders */

enum {
  INSERTION_RUN = 16,
  RADIX_LEAST = 192,
  LONG_LANE = 4096,
  SHORT_DIGIT = 8,
  LONG_DIGIT = 11,
  SELECT_LEAST = 64,
  POLLED_PART = 4096
};

/* The number of bits in a digit that pays for n items. */
static int digit_bits(int64_t n) { return n < LONG_LANE ? SHORT_DIGIT : LONG_DIGIT; }

static Item *merge_sort(Item *a, Item *b, int64_t n) {
  for (int64_t i = 0; i < n; i += INSERTION_RUN)
    order_insertion_sort(a + i, n - i < INSERTION_RUN ? n - i : INSERTION_RUN);
  for (int64_t run = INSERTION_RUN; run < n; run *= 2) {
    for (int64_t at = 0; at < n; at += 2 * run) {
      int64_t middle = at + run < n ? at + run : n, end = at + 2 * run < n ? at + 2 * run : n;
      int64_t i = at, j = middle;
      if (poll_stops(4 * (end - at))) return a; /* in some order */
      for (int64_t k = at; k < end; k++)
        b[k] = j == end || (i < middle && a[i].key <= a[j].key) ? a[i++] : a[j++];
    }
    Item *swap = a;
    a = b;
    b = swap;
  }
  return a;
}

/* Counts the items with each digit. */
static void count_digits(const Item *v, int64_t n, int shift, uint32_t mask, uint32_t *counts) {
  memset(counts, 0, (mask + 1) * sizeof *counts);
  for (int64_t i = 0; i < n; i++) counts[v[i].key >> shift & mask]++;
}

static Item *radix_sort(Item *a, Item *b, int64_t n, int bits) {
  uint32_t starts[1 << LONG_DIGIT], mask = (1u << digit_bits(n)) - 1;
  TOOK(SORT_RADIX);
  for (int shift = 0; shift < bits; shift += digit_bits(n)) {
    count_digits(a, n, shift, mask, starts);
    if (starts[a[0].key >> shift & mask] == n) continue;
    uint32_t at = 0;
    for (uint32_t d = 0; d <= mask; d++) {
      uint32_t count = starts[d];
      starts[d] = at;
      at += count;
    }
    for (int64_t i = 0, end; i < n;) {
      end = n - i < POLLED_PART ? n : i + POLLED_PART;
      if (poll_stops(4 * (end - i))) return a; /* in some order */
      for (; i < end; i++) b[starts[a[i].key >> shift & mask]++] = a[i];
    }
    Item *swap = a;
    a = b;
    b = swap;
  }
  return a;
}

/* Item k of the stable order: goes down, digit by digit, into the items that share it. Overwrites
 * both buffers. */
static Item select_item(Item *a, Item *b, int64_t n, int bits, int64_t k) {
  uint32_t counts[1 << LONG_DIGIT];
  while (bits > 0 && n > SELECT_LEAST && !poll_stops(4 * n)) {
    int width = digit_bits(n) < bits ? digit_bits(n) : bits, shift = bits - width;
    uint32_t mask = (1u << width) - 1, digit = 0;
    count_digits(a, n, shift, mask, counts);
    for (; k >= counts[digit]; digit++) k -= counts[digit];
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
      if ((a[i].key >> shift & mask) == digit) b[kept++] = a[i];
    Item *swap = a;
    a = b;
    b = swap;
    n = kept;
    bits = shift;
  }
  return bits > 0 ? merge_sort(a, b, n)[k] : a[k];
}

Item *order_lane(const char *x, DType d, int64_t n, int64_t step, bool descending, Item *a,
                 Item *b) {
  fill_keys(x, d, n, step, descending, a);
  return n < RADIX_LEAST ? merge_sort(a, b, n) : radix_sort(a, b, n, 8 * (int)dtype_bytes(d));
}

/* ------------------------------------------------------------ lanes */

bool order_each_lane(Lanes *s, LaneLoop *loop) {
  const Tensor *x = s->x, *y = s->values;
  int64_t index[MAX_DIM] = {0}, x_at = 0, y_at = 0;
  s->n = x->ndim ? x->sizes[s->dim] : 1;
  s->m = y->ndim && y->ndim == x->ndim ? y->sizes[s->dim] : 1;
  s->x_step = x->ndim ? x->strides[s->dim] : 1;
  s->y_step = y->ndim && y->ndim == x->ndim ? y->strides[s->dim] : 1;
  if (x->numel == 0 || tensor_absent(x)) return true;
  s->a = scratch_array(2 * s->n, sizeof *s->a);
  if (!s->a) return false;
  s->b = s->a + s->n;
  for (;;) {
    if (poll_stops(4 * s->n)) return false;
    loop(s, x_at, y_at);
    int k = x->ndim - 1;
    for (; k >= 0; k--) {
      if (k == s->dim) continue;
      x_at += x->strides[k], y_at += y->strides[k];
      if (++index[k] < x->sizes[k]) break;
      x_at -= x->strides[k] * x->sizes[k], y_at -= y->strides[k] * x->sizes[k];
      index[k] = 0;
    }
    if (k < 0) return true;
  }
}

/* Copies element `from` of the lane at x_at, and its index, to element `to` of the results. */
static inline void put(const Lanes *s, int64_t x_at, int64_t from, int64_t y_at, int64_t to) {
  int64_t bytes = dtype_bytes(tensor_dtype(s->x));
  memcpy(tensor_data(s->values) + (y_at + to * s->y_step) * bytes,
         tensor_data(s->x) + (x_at + from * s->x_step) * bytes, (size_t)bytes);
  ((int64_t *)(void *)tensor_data(s->indices))[y_at + to * s->y_step] = from;
}

static Item *order_at(const Lanes *s, int64_t x_at, bool descending) {
  DType d = tensor_dtype(s->x);
  return order_lane(tensor_data(s->x) + x_at * dtype_bytes(d), d, s->n, s->x_step, descending, s->a,
                    s->b);
}

static Item *items_at(const Lanes *s, int64_t x_at, bool descending) {
  DType d = tensor_dtype(s->x);
  fill_keys(tensor_data(s->x) + x_at * dtype_bytes(d), d, s->n, s->x_step, descending, s->a);
  return s->a;
}

static Item item_at(const Lanes *s, int64_t x_at, int64_t k) {
  return select_item(items_at(s, x_at, false), s->b, s->n, 8 * (int)dtype_bytes(tensor_dtype(s->x)),
                     k);
}

/* ------------------------------------------------------------ sort, topk */

GRAD(SortBackward0, "indices | dim:int self_sym_sizes:sizes0")
{ gi[0] = extrema_select_gradient(n, g[0]); }
GRAD(SortBackward1, "indices | dim:int self_sym_sizes:sizes0")
{ gi[0] = extrema_select_gradient(n, g[0]); }
GRAD(TopkBackward0, "indices | dim:int self_sym_sizes:sizes0")
{ gi[0] = extrema_select_gradient(n, g[0]); }

/* Writes the first items of the order, as many as the results have. */
static void put_items(const Lanes *s, const Item *order, int64_t x_at, int64_t y_at) {
  int64_t bytes = dtype_bytes(tensor_dtype(s->x));
  const char *x = tensor_data(s->x) + x_at * bytes;
  char *y = tensor_data(s->values) + y_at * bytes;
  int64_t *index = (int64_t *)(void *)tensor_data(s->indices) + y_at;
  for (int64_t i = 0; i < s->m; i++) index[i * s->y_step] = order[i].index;
  DISPATCH_WIDTH(tensor_dtype(s->x), {
    for (int64_t i = 0; i < s->m; i++)
      ((T *)(void *)y)[i * s->y_step] =
          ((const T *)(const void *)x)[(int64_t)order[i].index * s->x_step];
  })
}

static void whole_order(const Lanes *s, int64_t x_at, int64_t y_at) {
  put_items(s, order_at(s, x_at, s->flag), x_at, y_at);
}

/* k: whether the items must be in order */
static void first_of_order(const Lanes *s, int64_t x_at, int64_t y_at) {
  Item *items = items_at(s, x_at, s->flag);
  order_first_items(items, s->n, s->m, s->k);
  put_items(s, items, x_at, y_at);
}

/* Values and indices of x's sizes, but `size` along dim. */
static void make_pair(Tensor *x, int64_t dim, int64_t size, Tensor *out[2]) {
  int64_t sizes[MAX_DIM];
  for (int i = 0; i < x->ndim; i++) sizes[i] = i == dim ? size : x->sizes[i];
  out[0] = tensor_empty(x->ndim, sizes, tensor_dtype(x));
  out[1] = tensor_empty(x->ndim, sizes, DT_I64);
}

/* Fills out[0] and out[1], which have one layout, and gives out[0] its history. Without keepdim,
 * drops dim, of size 1. */
static void order_lanes(const NodeType *type, LaneLoop *loop, Tensor *x, int64_t dim, bool keepdim,
                        Lanes lanes, Tensor *out[2]) {
  if (failed() || !out[0] || !out[1]) return;
  Node *n = extrema_select_node(type, x, dim, keepdim);
  size_t mark = scratch_mark();
  lanes.x = x, lanes.values = out[0], lanes.indices = out[1], lanes.dim = dim;
  order_each_lane(&lanes, loop);
  scratch_release(mark);
  DimMask mask = ((DimMask)1 << dim) & reduce_dims_all(x);
  for (int i = 0; i < 2 && !keepdim; i++) out[i] = reduce_drop_dims(out[i], mask);
  save(n, 0, out[1]);
  set_history_at(out[0], n, 0);
}

static void sort(const NodeType *type, Tensor *x, int64_t dim, bool descending, Tensor *out[2]) {
  out[0] = out[1] = NULL;
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return;
  out[0] = tensor_empty_like(x, tensor_dtype(x));
  out[1] = out[0] ? tensor_empty_strided(x->ndim, x->sizes, out[0]->strides, DT_I64) : NULL;
  order_lanes(type, whole_order, x, dim, true, (Lanes){.flag = descending}, out);
}

void t_sort(Tensor *x, int64_t dim, bool descending, Tensor *out[2]) {
  OP_ENTERED(t_sort, "sort", x, dim, descending, out);
  IN_FLOAT_OUT(2, out, t_sort(x, dim, descending, out), x)
  sort(&SortBackward0, x, dim, descending, out);
}
/* t_sort with the node of the overload that has `stable`. */
void t_sort_stable(Tensor *x, int64_t dim, bool descending, Tensor *out[2]) {
  OP_ENTERED(t_sort_stable, "sort", x, dim, descending, out);
  IN_FLOAT_OUT(2, out, t_sort_stable(x, dim, descending, out), x)
  sort(&SortBackward1, x, dim, descending, out);
}

Tensor *t_sort_values(Tensor *x, int64_t dim) {
  Tensor *out[2];
  t_sort(x, dim, false, out);
  return out[0];
}

Tensor *t_argsort(Tensor *x, int64_t dim, bool descending) {
  OP_ENTERED(t_argsort, "argsort", x, dim, descending);
  IN_FLOAT(t_argsort(x, dim, descending), x);
  Tensor *out[2];
  t_sort(x ? t_detach(x) : NULL, dim, descending, out);
  return out[1];
}

Tensor *t_msort(Tensor *x) {
  OP_ENTERED(t_msort, "msort", x);
  return t_sort_values(x, 0);
}

void t_topk(Tensor *x, int64_t k, int64_t dim, bool largest, bool sorted, Tensor *out[2]) {
  OP_ENTERED(t_topk, "topk", x, k, dim, largest, sorted, out);
  IN_FLOAT_OUT(2, out, t_topk(x, k, dim, largest, sorted, out), x)
  out[0] = out[1] = NULL;
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return;
  if (k < 0 || k > (x->ndim ? x->sizes[dim] : 1)) {
    fail(ERR_RUNTIME, "selected index k out of range");
    return;
  }
  if (x->dtype == DT_BOOL) {
    fail(ERR_RUNTIME, "topk does not support bool dtypes on CPU");
    return;
  }
  make_pair(x, dim, k, out);
  Lanes lanes = {.flag = largest, .k = sorted};
  order_lanes(&TopkBackward0, first_of_order, x, dim, true, lanes, out);
}

/* ------------------------------------------------------------ one of the order */

GRAD(KthvalueBackward0, "indices | dim:int keepdim:bool self_sym_sizes:sizes0")
{ gi[0] = extrema_select_gradient(n, g[0]); }
GRAD(MedianBackward1, "indices | dim:int keepdim:bool self_sym_sizes:sizes0")
{ gi[0] = extrema_select_gradient(n, g[0]); }
GRAD(NanmedianBackward1, "indices | dim:int keepdim:bool self_sym_sizes:sizes0")
{ gi[0] = extrema_select_gradient(n, g[0]); }
GRAD(ModeBackward0, "indices | dim:int keepdim:bool self_sym_sizes:sizes0")
{ gi[0] = extrema_select_gradient(n, g[0]); }
GRAD(MedianBackward0, "self result")
{ gi[0] = extrema_whole_gradient(n, g[0]); }
GRAD(NanmedianBackward0, "self result")
{ gi[0] = extrema_whole_gradient(n, g[0]); }

static void kth_of_order(const Lanes *s, int64_t x_at, int64_t y_at) {
  put(s, x_at, order_nth_item(items_at(s, x_at, false), s->n, s->k).index, y_at, 0);
}

/* The number of NaNs in the lane; 0 for integers. */
static int64_t count_nan(const Lanes *s, int64_t x_at) {
  int64_t count = 0;
  if (!dtype_is_float(tensor_dtype(s->x))) return 0;
  const char *x = tensor_data(s->x) + x_at * dtype_bytes(tensor_dtype(s->x));
  DISPATCH_FLOAT(tensor_dtype(s->x), {
    for (int64_t i = 0; i < s->n; i++) {
      T v = ((const T *)(const void *)x)[i * s->x_step];
      count += v != v;
    }
  })
  return count;
}

/* The lower of the middle elements; a NaN if there is one or, with the flag, the median of the
 * others. */
static void median_of_order(const Lanes *s, int64_t x_at, int64_t y_at) {
  int64_t nans = count_nan(s, x_at), valid = s->n - nans, at = (s->n - 1) / 2;
  if (nans) at = s->flag && valid ? (valid - 1) / 2 : valid;
  put(s, x_at, item_at(s, x_at, at).index, y_at, 0);
}

/* The least of the most frequent elements, at its last place. */
static void mode_of_order(const Lanes *s, int64_t x_at, int64_t y_at) {
  Item *order = order_at(s, x_at, false);
  int64_t best = 0, most = 0, start = 0;
  for (int64_t i = 0; i < s->n; i++) {
    if (i + 1 < s->n && order[i + 1].key == order[i].key) continue;
    if (i + 1 - start > most) most = i + 1 - start, best = i;
    start = i + 1;
  }
  put(s, x_at, order[best].index, y_at, 0);
}

/* Results of size 1 along dim, dropped afterwards without keepdim. */
static void one_of_order(const NodeType *type, LaneLoop *loop, const char *name, Tensor *x,
                         int64_t dim, bool keepdim, Lanes lanes, Tensor *out[2]) {
  if (x->ndim && x->sizes[dim] == 0) {
    fail(ERR_INDEX, "%s(): Expected reduction dim %d to have non-zero size.", name, (int)dim);
    return;
  }
  make_pair(x, dim, 1, out);
  order_lanes(type, loop, x, dim, keepdim, lanes, out);
}

static bool refuse_bool(const Tensor *x, const char *kernel) {
  return x->dtype == DT_BOOL && !dtype_no_kernel(kernel, DT_BOOL);
}

void t_kthvalue(Tensor *x, int64_t k, int64_t dim, bool keepdim, Tensor *out[2]) {
  OP_ENTERED(t_kthvalue, "kthvalue", x, k, dim, keepdim, out);
  IN_FLOAT_OUT(2, out, t_kthvalue(x, k, dim, keepdim, out), x)
  out[0] = out[1] = NULL;
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return;
  int64_t n = x->ndim ? x->sizes[dim] : 1;
  if (n && (k < 1 || k > n))
    fail(ERR_RUNTIME, "kthvalue(): selected number k out of range for dimension %lld", (Shown)dim);
  else if (!refuse_bool(x, "kthvalue_cpu"))
    one_of_order(&KthvalueBackward0, kth_of_order, "kthvalue", x, dim, keepdim, (Lanes){.k = k - 1},
                 out);
}

void t_mode(Tensor *x, int64_t dim, bool keepdim, Tensor *out[2]) {
  OP_ENTERED(t_mode, "mode", x, dim, keepdim, out);
  IN_FLOAT_OUT(2, out, t_mode(x, dim, keepdim, out), x)
  out[0] = out[1] = NULL;
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0) return;
  one_of_order(&ModeBackward0, mode_of_order, "mode", x, dim, keepdim, (Lanes){0}, out);
}

void t_median_dim(Tensor *x, int64_t dim, bool keepdim, bool skip_nan, Tensor *out[2]) {
  OP_ENTERED(t_median_dim, "median", x, dim, keepdim, skip_nan, out);
  IN_FLOAT_OUT(2, out, t_median_dim(x, dim, keepdim, skip_nan, out), x)
  out[0] = out[1] = NULL;
  if (blocked(x) || (dim = dim_wrap(dim, x->ndim)) < 0 || refuse_bool(x, "median_cpu")) return;
  one_of_order(skip_nan ? &NanmedianBackward1 : &MedianBackward1, median_of_order, "median", x, dim,
               keepdim, (Lanes){.flag = skip_nan}, out);
}

Tensor *t_median(Tensor *x, bool skip_nan) {
  OP_ENTERED(t_median, "median", x, skip_nan);
  IN_FLOAT(t_median(x, skip_nan), x);
  if (blocked(x) || refuse_bool(x, "median_cpu")) return NULL;
  Node *n = dtype_is_float(tensor_dtype(x))
                ? node_new(skip_nan ? &NanmedianBackward0 : &MedianBackward0, 2, 0, x, NULL)
                : NULL;
  save(n, 0, x);
  Tensor *out[2] = {NULL, NULL};
  WITHOUT_GRAD_BLOCK {
    if (x->numel) t_median_dim(t_flatten(x, 0, -1), 0, false, skip_nan, out);
    else out[0] = tensor_number(NAN, tensor_dtype(x));
  }
  Tensor *y = set_history(out[0], n);
  if (n) save_output(n, 1, y);
  return y;
}
