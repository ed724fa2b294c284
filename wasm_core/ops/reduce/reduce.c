/* Folding over dimensions, and the kernels of every fold.
 *
 * The order of a fold depends on the shape alone (reduce.h). Three ways give the same bits: a
 * contiguous run, adjacent columns, and a gathered copy of the run. The ops are in sums.c,
 * extrema.c, vector_norm.c and statistics.c; this file has the loops. */
#include "ops/reduce/reduce.h"
#include "ground/poll.h"
#include "kernels/complex.h"
#include "kernels/simd.h"

#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/paths.h"

/* ------------------------------------------------------------ dimensions */

DimMask reduce_dims_all(const Tensor *x) {
  return x->ndim == MAX_DIM ? ~(DimMask)0 : ((DimMask)1 << x->ndim) - 1;
}

bool reduce_dims_mask(const Tensor *x, Ints dims, DimMask *mask) {
  *mask = 0;
  if (dims.n <= 0) *mask = reduce_dims_all(x);
  for (int i = 0; i < dims.n; i++) {
    int64_t d = dim_wrap(dims.v[i], x->ndim);
    if (d < 0) return false;
    if (*mask >> d & 1) {
      fail(ERR_RUNTIME, "dim %d appears multiple times in the list of dims", (int)d);
      return false;
    }
    *mask |= (DimMask)1 << d;
  }
  *mask &= reduce_dims_all(x); /* dim 0 of a scalar is no dimension */
  return true;
}

int64_t reduce_fold_count(const Tensor *x, DimMask mask) {
  int64_t n = 1;
  for (int i = 0; i < x->ndim; i++)
    if (mask >> i & 1) n *= x->sizes[i];
  return n;
}

Tensor *reduce_drop_dims(Tensor *y, DimMask mask) {
  if (blocked(y) || !mask) return y;
  int64_t sizes[MAX_DIM], strides[MAX_DIM];
  int n = 0;
  for (int i = 0; i < y->ndim; i++) {
    if (mask >> i & 1) continue;
    sizes[n] = y->sizes[i];
    strides[n++] = y->strides[i];
  }
  return tensor_set_geometry(y, n, sizes, strides, y->offset) ? y : NULL;
}

void reduce_note_shape(Node *n, int at, const Tensor *x, DimMask mask, bool keepdim) {
  if (!n) return;
  num_i(n, at, (int64_t)mask);
  num_i(n, at + 1, keepdim);
  for (int i = 0; i < x->ndim; i++) num_i(n, at + SHAPE_NUMBERS + i, x->sizes[i]);
}

DimMask reduce_noted_mask(const Node *n, int at) { return (DimMask)n->numbers[at].i; }

Ints reduce_noted_dims(const Node *n, int at, int64_t *buffer) {
  int count = 0;
  for (int i = 0; i < MAX_DIM; i++)
    if (reduce_noted_mask(n, at) >> i & 1) buffer[count++] = i;
  return (Ints){count, buffer};
}

Tensor *reduce_restore_dims(Tensor *g, const Node *n, int at) {
  if (blocked(g) || n->numbers[at + 1].i) return g;
  int64_t sizes[MAX_DIM];
  int ndim = n->n_numbers - at - SHAPE_NUMBERS, from = 0;
  for (int i = 0; i < ndim; i++)
    sizes[i] = reduce_noted_mask(n, at) >> i & 1 ? 1 : g->sizes[from++];
  return ndim == g->ndim ? g : t_reshape(g, ndim, sizes);
}

Tensor *reduce_sum_along(const Node *n, int at, Tensor *gradient, Tensor *t, const Tensor *y) {
  int64_t dims[MAX_DIM];
  Tensor *products = t_real(t_mul(t_conj(gradient), t));
  return t_reshape(t_sum(products, reduce_noted_dims(n, at, dims), true, DT_NONE), y->ndim,
                   y->sizes);
}

Tensor *reduce_expand_back(Tensor *g, const Node *n, int at) {
  int64_t sizes[MAX_DIM];
  int ndim = n->n_numbers - at - SHAPE_NUMBERS;
  for (int i = 0; i < ndim; i++) sizes[i] = n->numbers[at + SHAPE_NUMBERS + i].i;
  if (blocked(g)) return NULL;
  return t_expand(g->ndim ? reduce_restore_dims(g, n, at) : g, ndim, sizes);
}

/* ------------------------------------------------------------ one run */

typedef struct {
  int64_t n;         /* elements in a run */
  int n_run, n_kept; /* dimensions after merging */
  int64_t run_sizes[MAX_DIM], run_steps[MAX_DIM];
  int64_t sizes[MAX_DIM], x_steps[MAX_DIM], y_steps[MAX_DIM], p_steps[MAX_DIM];
} Plan;

static void plan_kept(Plan *p, int64_t size, int64_t x_step, int64_t y_step, int64_t p_step) {
  int k = p->n_kept - 1;
  if (k >= 0 && p->x_steps[k] == x_step * size && p->y_steps[k] == y_step * size &&
      p->p_steps[k] == p_step * size) {
    p->sizes[k] *= size;
  } else {
    p->sizes[k = p->n_kept++] = size;
  }
  p->x_steps[k] = x_step;
  p->y_steps[k] = y_step;
  p->p_steps[k] = p_step;
}

static void plan_run(Plan *p, int64_t size, int64_t step) {
  int k = p->n_run - 1;
  p->n *= size;
  if (k >= 0 && p->run_steps[k] == step * size) p->run_sizes[k] *= size;
  else p->run_sizes[k = p->n_run++] = size;
  p->run_steps[k] = step;
}

static void plan_make(Plan *p, const Tensor *x, DimMask mask, const Tensor *y,
                      const Tensor *param) {
  p->n = 1;
  p->n_run = p->n_kept = 0;
  for (int i = 0; i < x->ndim; i++) {
    if (x->sizes[i] == 1) continue;
    if (mask >> i & 1) plan_run(p, x->sizes[i], x->strides[i]);
    else
      plan_kept(p, x->sizes[i], x->strides[i], y->strides[i],
                !param || param->sizes[i] == 1 ? 0 : param->strides[i]);
  }
  if (p->n_run == 0) plan_run(p, 1, 1);
}

/* Copies n elements of d between arrays with steps. */
static void copy_elements(DType d, int64_t n, const void *from, int64_t from_step, void *to,
                          int64_t to_step) {
  DISPATCH_WIDTH(d, {
    const T *x = from;
    T *y = to;
    for (int64_t i = 0; i < n; i++) y[i * to_step] = x[i * from_step];
  })
}

/* Copies the run that starts at x, in logical order. */
static void gather_run(const Plan *p, const char *x, char *to, DType d) {
  int64_t index[MAX_DIM] = {0}, bytes = dtype_bytes(d);
  int last = p->n_run - 1;
  for (;;) {
    copy_elements(d, p->run_sizes[last], x, p->run_steps[last], to, 1);
    to += p->run_sizes[last] * bytes;
    int k = last - 1;
    for (; k >= 0; k--) {
      x += p->run_steps[k] * bytes;
      if (++index[k] < p->run_sizes[k]) break;
      x -= p->run_steps[k] * p->run_sizes[k] * bytes;
      index[k] = 0;
    }
    if (k < 0) return;
  }
}

/* The kept dimension whose elements are adjacent in x, or -1. */
static int plan_columns(const Plan *p) {
  for (int k = p->n_kept - 1; k >= 0; k--)
    if (p->x_steps[k] == 1) return k;
  return -1;
}

typedef struct {
  const Reducer *reducer;
  const Plan *plan;
  DType dtype;
  const char *x, *param;
  char *y, *gathered;
  int64_t *index;
  int columns; /* the dimension taken as columns, or -1 */
} Walk;

static void fold_at(const Walk *w, int64_t x, int64_t y, int64_t param) {
  const Plan *p = w->plan;
  int64_t result_bytes = dtype_bytes(w->reducer->result), x_bytes = dtype_bytes(w->dtype);
  Strip s = {.reducer = w->reducer,
             .x = w->x + x * x_bytes,
             .n = p->n,
             .step = p->run_steps[0],
             .width = 1,
             .out_step = 1};
  if (w->gathered) {
    gather_run(p, s.x, w->gathered, w->dtype);
    s.x = w->gathered;
    s.step = 1;
  }
  int64_t width = w->columns < 0 ? 1 : p->sizes[w->columns];
  if (w->columns >= 0) {
    s.out_step = p->y_steps[w->columns];
    s.param_step = p->p_steps[w->columns];
  }
  for (int64_t j = 0; j < width; j += FOLD_COLUMNS) {
    s.width = width - j < FOLD_COLUMNS ? width - j : FOLD_COLUMNS;
    if (poll_stops_elements(s.n * s.width)) return;
    s.out = w->y + (y + j * s.out_step) * result_bytes;
    s.index = w->index ? w->index + y + j * s.out_step : NULL;
    s.param = w->param ? w->param + (param + j * s.param_step) * result_bytes : NULL;
    (w->columns < 0 ? w->reducer->run : w->reducer->columns)(&s);
    s.x = (const char *)s.x + FOLD_COLUMNS * x_bytes;
  }
}

/* Folds rows of one block each, evenly spaced, without the general walk. */
static bool fold_rows(const Walk *w) {
  const Plan *p = w->plan;
  const Reducer *r = w->reducer;
  if (!r->block || p->n > FOLD_BLOCK || p->n_kept != 1 || w->columns >= 0 || w->gathered)
    return false;
  int64_t result_bytes = dtype_bytes(r->result), x_step = p->x_steps[0] * dtype_bytes(w->dtype);
  const char *x = w->x;
  for (int64_t i = 0; i < p->sizes[0] && !poll_stops_elements(p->n); i++, x += x_step)
    r->block(x, p->n, w->param ? w->param + i * p->p_steps[0] * result_bytes : NULL,
             w->y + i * p->y_steps[0] * result_bytes);
  TOOK(FOLD_ROWS);
  return true;
}

static void walk_kept(const Walk *w) {
  const Plan *p = w->plan;
  int64_t index[MAX_DIM], x = 0, y = 0, param = 0;
  for (int k = 0; k < p->n_kept; k++) index[k] = 0;
  for (;;) {
    if (failed()) return;
    fold_at(w, x, y, param);
    int k = p->n_kept - 1;
    for (; k >= 0; k--) {
      if (k == w->columns) continue;
      x += p->x_steps[k], y += p->y_steps[k], param += p->p_steps[k];
      if (++index[k] < p->sizes[k]) break;
      x -= p->x_steps[k] * p->sizes[k], y -= p->y_steps[k] * p->sizes[k],
          param -= p->p_steps[k] * p->sizes[k];
      index[k] = 0;
    }
    if (k < 0) return;
  }
}

static bool fold_run(const Reducer *r, Tensor *x, DimMask mask, Tensor *y, Tensor *param,
                     Tensor *index) {
  Plan p;
  if (y->numel == 0 || tensor_absent(y)) return true;
  plan_make(&p, x, mask, y, param);
  Walk w = {.reducer = r,
            .plan = &p,
            .dtype = tensor_dtype(x),
            .x = tensor_data(x),
            .y = tensor_data(y),
            .param = param ? tensor_data(param) : NULL,
            .index = index ? (int64_t *)(void *)tensor_data(index) : NULL,
            .columns = -1};
  size_t mark = scratch_mark();
  bool lone = p.n_run == 1, adjacent = lone && (p.n <= 1 || p.run_steps[0] == 1);
  if (!(adjacent && p.n > 1) && lone) w.columns = plan_columns(&p);
  if (w.columns < 0 && !adjacent &&
      !(w.gathered = scratch_array(p.n, (size_t)dtype_bytes(w.dtype))))
    return false;
  if (p.n == 0) w.gathered = NULL;
  if (!fold_rows(&w)) walk_kept(&w);
  scratch_release(mark);
  return true;
}

/* ------------------------------------------------------------ all runs */

/* The innermost run of the mask: masked dims that have only masked dims and dims of size 1 between
 * them. */
static DimMask innermost_run(const Tensor *x, DimMask mask) {
  DimMask run = 0;
  bool inside = false;
  for (int i = x->ndim - 1; i >= 0; i--) {
    if (mask >> i & 1) {
      run |= (DimMask)1 << i;
      inside = inside || x->sizes[i] != 1;
    } else if (inside && x->sizes[i] != 1) {
      break;
    }
  }
  return run;
}

static NOINLINE Tensor *widen(const Reducer *folds, Tensor *x) {
  if (dtype_is_inexact(tensor_dtype(x))) return dtype_no_kernel("fold", tensor_dtype(x));
  if (x->dtype == DT_BOOL) x = elementwise_cast(x, DT_U8);
  if (x && !folds[x->dtype].run && dtype_bytes(tensor_dtype(x)) < 4 &&
      !dtype_is_bare(tensor_dtype(x)))
    x = elementwise_cast(x, DT_I32);
  return x && !folds[x->dtype].run ? elementwise_cast(x, DT_I64) : x;
}

/* The entry for x, after widening x to a type that has one. */
static inline const Reducer *reducer_for(const Reducer *folds, Tensor **x) {
  if (!folds[(*x)->dtype].run) *x = widen(folds, *x);
  return *x ? &folds[(*x)->dtype] : NULL;
}

Tensor *reduce_fold(const Reducer *folds, const Reducer *rest, Tensor *x, DimMask mask,
                    Tensor *param, Tensor *index) {
  if (blocked(x)) return NULL;
  const Reducer *r = reducer_for(folds, &x);
  Tensor *y = x;
  do {
    if (!y) return NULL;
    DimMask run = innermost_run(y, mask);
    int64_t sizes[MAX_DIM];
    for (int i = 0; i < y->ndim; i++) sizes[i] = run >> i & 1 ? 1 : y->sizes[i];
    Tensor *next = tensor_empty(y->ndim, sizes, r->result);
    if (!next || !fold_run(r, y, run, next, param, index)) return NULL;
    y = next;
    r = reducer_for(rest, &y);
    param = NULL;
    mask &= ~run;
  } while (mask);
  return y;
}

/* ------------------------------------------------------------ parts of complex numbers */

Tensor *reduce_parts_of(Tensor *x) {
  int64_t sizes[MAX_DIM + 1], strides[MAX_DIM + 1];
  if (blocked(x)) return NULL;
  for (int i = 0; i < x->ndim; i++) sizes[i] = x->sizes[i], strides[i] = 2 * x->strides[i];
  sizes[x->ndim] = 2, strides[x->ndim] = 1;
  Tensor *v = tensor_alias(x, x->ndim + 1, sizes, strides, 2 * x->offset);
  if (v) v->dtype = (uint8_t)dtype_real(tensor_dtype(x));
  return v;
}

Tensor *reduce_complex_of_parts(Tensor *y) {
  int64_t sizes[MAX_DIM + 1], strides[MAX_DIM + 1];
  if (blocked(y)) return NULL;
  int n = y->ndim - 1;
  memcpy(sizes, y->sizes, (size_t)n * sizeof *sizes);
  sizes_contiguous_strides(n, sizes, strides);
  y->dtype = (uint8_t)dtype_complex(tensor_dtype(y));
  return tensor_set_geometry(y, n, sizes, strides, 0) ? y : NULL;
}

/* ------------------------------------------------------------ folds by lanes */

/* Combines blocks like carries of a binary counter: block k completes as many runs of equal length
 * as k has trailing ones. Groups of FOLD_FULL blocks, which come combined, are counted
 * separately. */
void reduce_fold_blocks(const Strip *s) {
  const Reducer *r = s->reducer;
  double levels[FOLD_LEVELS]; /* a result each, of up to 8 bytes */
  int top = 0;
  if (s->n <= FOLD_BLOCK) {
    r->block(s->x, s->n, s->param, s->out);
    return;
  }
  int64_t bytes = dtype_bytes(s->reducer->input), at = 0;
  if (r->full) {
    const int64_t step = FOLD_FULL * FOLD_BLOCK;
    for (int64_t k = 0; s->n - at >= step; at += step, k++) {
      r->full((const char *)s->x + at * bytes, &levels[top++]);
      for (int64_t full = k; full & 1; full >>= 1, top--)
        r->combine(&levels[top - 2], &levels[top - 1], 1);
    }
  }
  for (int64_t k = 0; at < s->n; at += FOLD_BLOCK, k++) {
    r->block((const char *)s->x + at * bytes, s->n - at < FOLD_BLOCK ? s->n - at : FOLD_BLOCK,
             s->param, &levels[top++]);
    for (int64_t full = k; full & 1; full >>= 1, top--)
      r->combine(&levels[top - 2], &levels[top - 1], 1);
  }
  for (; top > 1; top--) r->combine(&levels[top - 2], &levels[top - 1], 1);
  memcpy(s->out, levels, (size_t)dtype_bytes(r->result));
}

/* The parameters of a strip as adjacent numbers. */
static const void *strip_params(const Strip *s, double *buffer) {
  static const double zeros[FOLD_COLUMNS];
  if (!s->param || s->param_step == 1) return s->param ? s->param : zeros;
  copy_elements(s->reducer->result, s->width, s->param, s->param_step, buffer, 1);
  return buffer;
}

void reduce_fold_strips(const Strip *s) {
  const Reducer *r = s->reducer;
  double params[FOLD_COLUMNS], levels[FOLD_LEVELS][FOLD_COLUMNS];
  const void *c = strip_params(s, params);
  int top = 0;
  if (s->n <= FOLD_BLOCK && s->out_step == 1) {
    r->strip(s->x, s->n, s->step, s->width, c, s->out);
    return;
  }
  int64_t bytes = s->step * dtype_bytes(r->input);
  for (int64_t at = 0, k = 0; at < s->n || k == 0; at += FOLD_BLOCK, k++) {
    r->strip((const char *)s->x + at * bytes, s->n - at < FOLD_BLOCK ? s->n - at : FOLD_BLOCK,
             s->step, s->width, c, levels[top++]);
    for (int64_t full = k; full & 1; full >>= 1, top--)
      r->combine(levels[top - 2], levels[top - 1], s->width);
  }
  for (; top > 1; top--) r->combine(levels[top - 2], levels[top - 1], s->width);
  copy_elements(r->result, s->width, levels[0], 1, s->out, s->out_step);
}

/* ------------------------------------------------------------ sums, products, counts */

/* Counts the elements that are not zero: fewer than 2^32, the address space. */
#define COUNT_KERNELS(NAME, T, W) WIDE_KERNELS(count_##NAME, T, W, uint64_t, 0, v != 0, FOLD_ADD)
COUNT_KERNELS(u8, uint8_t, uint32_t)
COUNT_KERNELS(i32, int32_t, uint32_t)
COUNT_KERNELS(i64, int64_t, uint64_t)
COUNT_KERNELS(f32, float, uint32_t)
COUNT_KERNELS(f64, double, uint64_t)
COUNT_KERNELS(c64, complex_f32, uint64_t)
COUNT_KERNELS(c128, complex_f64, uint64_t)
const Reducer count_folds[DT_COUNT] = {[DT_U8] = PLAIN_REDUCER(count_u8, DT_U8, DT_I64),
                                       [DT_BOOL] = PLAIN_REDUCER(count_u8, DT_BOOL, DT_I64),
                                       [DT_I32] = PLAIN_REDUCER(count_i32, DT_I32, DT_I64),
                                       [DT_I64] = PLAIN_REDUCER(count_i64, DT_I64, DT_I64),
                                       [DT_F32] = PLAIN_REDUCER(count_f32, DT_F32, DT_I64),
                                       [DT_F64] = PLAIN_REDUCER(count_f64, DT_F64, DT_I64),
                                       [DT_C64] = PLAIN_REDUCER(count_c64, DT_C64, DT_I64),
                                       [DT_C128] = PLAIN_REDUCER(count_c128, DT_C128, DT_I64)};

/* Integers are folded unsigned, where overflow wraps; bools are counted. */
LANE_KERNELS(FAST, sum_f64, double, double, 0, v, FOLD_ADD)
PLAIN_KERNELS(sum_u8, uint8_t, uint64_t, 0, v, FOLD_ADD)
PLAIN_KERNELS(sum_i32, int32_t, uint64_t, 0, v, FOLD_ADD)
PLAIN_KERNELS(sum_i64, int64_t, uint64_t, 0, v, FOLD_ADD)
#define INTEGER_SUMS                                    \
  [DT_U8] = PLAIN_REDUCER(sum_u8, DT_U8, DT_I64),       \
  [DT_BOOL] = PLAIN_REDUCER(count_u8, DT_BOOL, DT_I64), \
  [DT_I32] = PLAIN_REDUCER(sum_i32, DT_I32, DT_I64),    \
  [DT_I64] = PLAIN_REDUCER(sum_i64, DT_I64, DT_I64)

/* The hot sums, in vectors, with the order of LANE_KERNELS. Cranelift moves nothing out of a loop,
 * so each address serves several loads. */
static void sum_f32_block(const void *x_, int64_t n, const void *param, void *y) {
  const float *x = x_, *end = x + (n & ~(int64_t)(FOLD_GROUP - 1));
  f32x4 a = {0};
  (void)param;
  for (; x < end; x += FOLD_GROUP)
    a += ((f32x4_load(x) + f32x4_load(x + 4)) + (f32x4_load(x + 8) + f32x4_load(x + 12))) +
         ((f32x4_load(x + 16) + f32x4_load(x + 20)) + (f32x4_load(x + 24) + f32x4_load(x + 28)));
  for (end = x + (n & (FOLD_GROUP - 4)); x < end; x += 4) a += f32x4_load(x);
  if (n & 3) a += (f32x4){x[0], (n & 3) > 1 ? x[1] : 0, (n & 3) > 2 ? x[2] : 0, 0};
  *(float *)y = (a[0] + a[1]) + (a[2] + a[3]);
}

static void sum_f32_full(const void *x, void *y) {
  float t[FOLD_FULL];
  for (int k = 0; k < FOLD_FULL; k++)
    sum_f32_block((const float *)x + k * FOLD_BLOCK, FOLD_BLOCK, NULL, t + k);
  *(float *)y = ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]));
  TOOK(SUM_BLOCKS);
}

/* a[j] += the sum of eight rows, `step` apart. */
static void sum_f32_eight_rows(float *restrict a, const float *restrict x, int64_t step,
                               int64_t w) {
  const float *x1 = x + step, *x2 = x1 + step, *x3 = x2 + step, *x4 = x3 + step, *x5 = x4 + step,
              *x6 = x5 + step, *x7 = x6 + step;
#define EIGHT(LOAD, at)                                                 \
  (((LOAD(x + at) + LOAD(x1 + at)) + (LOAD(x2 + at) + LOAD(x3 + at))) + \
   ((LOAD(x4 + at) + LOAD(x5 + at)) + (LOAD(x6 + at) + LOAD(x7 + at))))
  int64_t j = 0;
  for (; j + 16 <= w; j += 16)
    UNROLLED for (int64_t l = j; l < j + 16; l += 4)
        f32x4_store(a + l, f32x4_load(a + l) + EIGHT(f32x4_load, l));
  SHORT_LOOP for (; j < w; j++) a[j] = a[j] + EIGHT(*, j);
#undef EIGHT
}

static void sum_f32_combine(void *y_, const void *later_, int64_t w) {
  float *restrict y = y_;
  const float *restrict later = later_;
  SHORT_LOOP for (int64_t j = 0; j < w; j++) y[j] += later[j];
}

/* y[j] = the sum of the accumulators at j, after the last n rows are added to them in turn; acc is
 * NULL if there are no other rows. */
__attribute__((noinline)) static void sum_f32_last_rows(float (*acc)[FOLD_COLUMNS], const float *x,
                                                        int64_t n, int64_t step, int64_t w,
                                                        float *y) {
  int64_t j = 0, fours = n & ~(int64_t)3;
  for (; j + 4 <= w; j += 4) {
    const float *at = x + j;
    f32x4 a[4];
    UNROLLED for (int l = 0; l < 4; l++) a[l] = acc ? f32x4_load(acc[l] + j) : (f32x4){0};
    for (int64_t i = 0; i < fours; i += 4, at += 4 * step)
      UNROLLED for (int l = 0; l < 4; l++) a[l] += f32x4_load(at + l * step);
    UNROLLED for (int l = 0; l < 3; l++) if (fours + l < n) a[l] += f32x4_load(at + l * step);
    f32x4_store(y + j, (a[0] + a[1]) + (a[2] + a[3]));
  }
  for (; j < w; j++) {
    float a[4];
    for (int l = 0; l < 4; l++) a[l] = acc ? acc[l][j] : 0;
    for (int64_t i = 0; i < n; i++) a[i & 3] += x[i * step + j];
    y[j] = (a[0] + a[1]) + (a[2] + a[3]);
  }
}

static void sum_f32_strip(const void *x_, int64_t n, int64_t step, int64_t w, const void *param,
                          void *y) {
  float acc[4][FOLD_COLUMNS];
  const float *x = x_;
  int64_t i = 0;
  (void)param;
  for (int l = 0; n >= FOLD_GROUP && l < 4; l++) memset(acc[l], 0, (size_t)w * sizeof(float));
  for (; i + FOLD_GROUP <= n; i += FOLD_GROUP, x += FOLD_GROUP * step)
    for (int l = 0; l < 4; l++) sum_f32_eight_rows(acc[l], x + l * step, 4 * step, w);
  sum_f32_last_rows(i ? acc : NULL, x, n - i, step, w, y);
  TOOK(SUM_COLUMNS);
}
const Reducer sum_folds[DT_COUNT] = {[DT_F32] = {reduce_fold_blocks, reduce_fold_strips, DT_F32,
                                                 DT_F32, sum_f32_block, sum_f32_strip,
                                                 sum_f32_combine, sum_f32_full},
                                     [DT_F64] = LANE_REDUCER(sum_f64, DT_F64, DT_F64),
                                     INTEGER_SUMS};

FLOAT_KERNELS(nansum, 0, v != v ? 0 : v, FOLD_ADD)
const Reducer nansum_folds[DT_COUNT] = {FLOAT_REDUCERS(nansum), INTEGER_SUMS};

FLOAT_KERNELS(prod, 1, v, FOLD_MUL)
PLAIN_KERNELS(prod_i64, int64_t, uint64_t, 1, v, FOLD_MUL)
PLAIN_KERNELS(prod_c64, complex_f32, complex_f32, 1, v, complex_mul_f32)
PLAIN_KERNELS(prod_c128, complex_f64, complex_f64, 1, v, complex_mul_f64)
const Reducer prod_folds[DT_COUNT] = {FLOAT_REDUCERS(prod),
                                      [DT_C64] = PLAIN_REDUCER(prod_c64, DT_C64, DT_C64),
                                      [DT_C128] = PLAIN_REDUCER(prod_c128, DT_C128, DT_C128),
                                      [DT_I64] = PLAIN_REDUCER(prod_i64, DT_I64, DT_I64)};

/* ------------------------------------------------------------ extremes */

/* Folds a block as if it held no NaN, in the order of FOLD_MAX, then looks for NaNs. */
#define NAN_BLOCK(NAME, T, FLAG)                                                    \
  static void NAME##_block(const void *x_, int64_t n, const void *param, void *y) { \
    const T *restrict x = x_;                                                       \
    FLAG nans = 0;                                                                  \
    NAME##_numbers(x, n, param, y);                                                 \
    LONG_LOOP for (int64_t i = 0; i < n; i++) nans |= x[i] != x[i];                 \
    if (nans) *(T *)y = (T)NAN;                                                     \
  }
#define FLOAT_EXTREME(NAME, T, FLAG, IDENTITY, OP, NUMBER_OP)   \
  STRIP_KERNELS(FAST, NAME, T, T, IDENTITY, v, OP)              \
  BLOCK_KERNEL(NAME, NAME##_numbers, T, T, IDENTITY, NUMBER_OP) \
  NAN_BLOCK(NAME, T, FLAG)
FLOAT_EXTREME(max_f32, float, int32_t, -INFINITY, FOLD_MAX, NUMBER_MAX)
FLOAT_EXTREME(max_f64, double, int64_t, -INFINITY, FOLD_MAX, NUMBER_MAX)
FLOAT_EXTREME(min_f32, float, int32_t, INFINITY, FOLD_MIN, NUMBER_MIN)
FLOAT_EXTREME(min_f64, double, int64_t, INFINITY, FOLD_MIN, NUMBER_MIN)
#define INTEGER_EXTREMA(NAME, T, LOWEST, HIGHEST)      \
  PLAIN_KERNELS(max_##NAME, T, T, LOWEST, v, FOLD_MAX) \
  PLAIN_KERNELS(min_##NAME, T, T, HIGHEST, v, FOLD_MIN)
INTEGER_EXTREMA(u8, uint8_t, 0, UINT8_MAX)
INTEGER_EXTREMA(i32, int32_t, INT32_MIN, INT32_MAX)
INTEGER_EXTREMA(i64, int64_t, INT64_MIN, INT64_MAX)
/* int8 and int16 go through int32. */
#define INTEGER_REDUCERS(NAME)                          \
  [DT_U8] = PLAIN_REDUCER(NAME##_u8, DT_U8, DT_U8),     \
  [DT_I32] = PLAIN_REDUCER(NAME##_i32, DT_I32, DT_I32), \
  [DT_I64] = PLAIN_REDUCER(NAME##_i64, DT_I64, DT_I64)
/* Bools are folded as bytes: the extreme byte is 0 exactly if the extreme truth is false. */
const Reducer max_folds[DT_COUNT] = {FLOAT_REDUCERS(max), INTEGER_REDUCERS(max),
                                     [DT_BOOL] = PLAIN_REDUCER(max_u8, DT_BOOL, DT_U8)};
const Reducer min_folds[DT_COUNT] = {FLOAT_REDUCERS(min), INTEGER_REDUCERS(min),
                                     [DT_BOOL] = PLAIN_REDUCER(min_u8, DT_BOOL, DT_U8)};

/* The fold of values finds the part with the extreme; a search finds the element within it. */
enum { INDEX_PART = 512 };
#define INDEX_KERNELS(NAME, KIND, T, I, D, BETTER)                                                 \
  static void arg##NAME##_run(const Strip *s) {                                                    \
    const T *x = s->x;                                                                             \
    int64_t block = 0, i = 0;                                                                      \
    T best = x[0], v = best;                                                                       \
    Strip part = {.reducer = &KIND##_folds[D], .step = 1, .width = 1, .out = &v, .out_step = 1};   \
    for (int64_t at = 0; at < s->n; at += INDEX_PART) {                                            \
      part.x = x + at;                                                                             \
      part.n = s->n - at < INDEX_PART ? s->n - at : INDEX_PART;                                    \
      part.reducer->run(&part);                                                                    \
      if (at == 0 || v BETTER best || (v != v && best == best)) best = v, block = at;              \
    }                                                                                              \
    SHORT_LOOP for (i = block; i + 1 < s->n && !(x[i] == best || (best != best && x[i] != x[i]));) \
        i++;                                                                                       \
    *(T *)s->out = x[i];                                                                           \
    *s->index = i;                                                                                 \
  }                                                                                                \
  static void arg##NAME##_columns(const Strip *s) {                                                \
    T best[FOLD_COLUMNS], *out = s->out;                                                           \
    I at[FOLD_COLUMNS];                                                                            \
    for (int64_t j = 0; j < s->width; j++) best[j] = ((const T *)s->x)[j], at[j] = 0;              \
    for (int64_t i = 1; i < s->n; i++) {                                                           \
      const T *restrict x = (const T *)s->x + i * s->step;                                         \
      VECTOR_LOOP for (int64_t j = 0; j < s->width; j++) {                                         \
        T v = x[j], b = best[j];                                                                   \
        bool better = (v BETTER b) | ((v != v) & (b == b));                                        \
        at[j] = better ? (I)i : at[j];                                                             \
        best[j] = better ? v : b;                                                                  \
      }                                                                                            \
    }                                                                                              \
    for (int64_t j = 0; j < s->width; j++)                                                         \
      out[j * s->out_step] = best[j], s->index[j * s->out_step] = at[j];                           \
  }
#define INDEX_EXTREMA(NAME, T, I, D) \
  INDEX_KERNELS(max_##NAME, max, T, I, D, >) INDEX_KERNELS(min_##NAME, min, T, I, D, <)
INDEX_EXTREMA(u8, uint8_t, int32_t, DT_U8)
INDEX_EXTREMA(i32, int32_t, int32_t, DT_I32)
INDEX_EXTREMA(i64, int64_t, int64_t, DT_I64)
INDEX_EXTREMA(f32, float, int32_t, DT_F32)
INDEX_EXTREMA(f64, double, int64_t, DT_F64)
#define INDEX_REDUCERS(NAME)                                                    \
  INTEGER_REDUCERS(NAME), [DT_F32] = PLAIN_REDUCER(NAME##_f32, DT_F32, DT_F32), \
                          [DT_F64] = PLAIN_REDUCER(NAME##_f64, DT_F64, DT_F64)
const Reducer argmax_folds[DT_COUNT] = {INDEX_REDUCERS(argmax)};
const Reducer argmin_folds[DT_COUNT] = {INDEX_REDUCERS(argmin)};

FLOAT_KERNELS(squares, 0, (v * v), FOLD_ADD)
const Reducer squares_folds[DT_COUNT] = {FLOAT_REDUCERS(squares)};

/* ------------------------------------------------------------ moments */

/* In double throughout: the sum, and the squares about the mean. */
LANE_KERNELS(FAST, total_f32, float, double, 0, v, FOLD_ADD)
LANE_KERNELS(SMALL, total_f64, double, double, 0, v, FOLD_ADD)
const Reducer total_folds[DT_COUNT] = {[DT_F32] = LANE_REDUCER(total_f32, DT_F32, DT_F64),
                                       [DT_F64] = LANE_REDUCER(total_f64, DT_F64, DT_F64)};
LANE_KERNELS(FAST, spread_f32, float, double, 0, (v - c) * (v - c), FOLD_ADD)
LANE_KERNELS(SMALL, spread_f64, double, double, 0, (v - c) * (v - c), FOLD_ADD)
const Reducer spread_folds[DT_COUNT] = {[DT_F32] = LANE_REDUCER(spread_f32, DT_F32, DT_F64),
                                        [DT_F64] = LANE_REDUCER(spread_f64, DT_F64, DT_F64)};
