/* Sorting, merging and walking the dimensions of element-wise operands; see iter.h. */
#include "tensor/iter.h"

#include "ground/poll.h"

static void take_operand(Iter *it, int k, const Tensor *t, int ndim) {
  int64_t size = dtype_bytes(tensor_dtype(t));
  it->data[k] = tensor_data(t);
  int pad = ndim - t->ndim;
  for (int i = 0; i < ndim; i++)
    it->strides[k][i] = i < pad || t->sizes[i - pad] == 1 ? 0 : t->strides[i - pad] * size;
}

static void swap_dims(Iter *it, int i, int j) {
  int64_t s = it->sizes[i];
  it->sizes[i] = it->sizes[j];
  it->sizes[j] = s;
  for (int k = 0; k < it->n_operands; k++) {
    s = it->strides[k][i];
    it->strides[k][i] = it->strides[k][j];
    it->strides[k][j] = s;
  }
}

/* Whether dimension i should be inside dimension j (i < j): decided by the first operand with
 * different nonzero strides. */
static bool belongs_inside(const Iter *it, int i, int j) {
  for (int k = 0; k < it->n_operands; k++) {
    int64_t a = it->strides[k][i], b = it->strides[k][j];
    if (a == 0 || b == 0 || a == b) continue;
    return (a < 0 ? -a : a) < (b < 0 ? -b : b);
  }
  return false;
}

static void sort_dims(Iter *it) {
  for (int i = 1; i < it->ndim; i++)
    for (int j = i; j > 0 && belongs_inside(it, j - 1, j); j--) swap_dims(it, j - 1, j);
}

static bool mergeable(const Iter *it, int outer, int inner) {
  for (int k = 0; k < it->n_operands; k++)
    if (it->strides[k][outer] != it->strides[k][inner] * it->sizes[inner]) return false;
  return true;
}

static void merge_dims(Iter *it) {
  int n = 0; /* dimensions kept so far; the last of them is n - 1 */
  for (int i = 0; i < it->ndim; i++) {
    if (it->sizes[i] == 1) continue;
    if (n > 0 && mergeable(it, n - 1, i)) {
      it->sizes[n - 1] *= it->sizes[i];
      for (int k = 0; k < it->n_operands; k++) it->strides[k][n - 1] = it->strides[k][i];
      continue;
    }
    it->sizes[n] = it->sizes[i];
    for (int k = 0; k < it->n_operands; k++) it->strides[k][n] = it->strides[k][i];
    n++;
  }
  it->ndim = n;
}

static bool any_absent(int n, Tensor *const *t) {
  bool any = false;
  if (__builtin_expect(unusual_tensors == 0, 1)) return false;
  for (int k = 0; k < n; k++) any = any || tensor_absent(t[k]);
  return any;
}

void iter_build(Iter *it, int n, Tensor *const *t) {
  it->n_operands = n;
  if (any_absent(n, t)) {
    it->ndim = 1;
    it->sizes[0] = 0;
    return;
  }
  it->ndim = t[0]->ndim;
  for (int i = 0; i < it->ndim; i++) it->sizes[i] = t[0]->sizes[i];
  for (int k = 0; k < n; k++) take_operand(it, k, t[k], it->ndim);
  if (it->ndim > 1) sort_dims(it);
  merge_dims(it);
}

/* Runs a loop in stretches. The last one is at least as long as the others, because a loop may
 * handle a short rest of its elements differently. Moves no pointers. */
static NOINLINE void run_stretches(int n, char *const *from, const int64_t *strides, int64_t count,
                                   Loop *loop, const void *ctx) {
  char *p[ITER_MAX];
  const int64_t stretch = poll_stretch();
  for (int64_t at = 0, m; at < count; at += m) {
    m = count - at < 2 * stretch ? count - at : stretch;
    if (poll_stops_elements(m)) return;
    for (int k = 0; k < n; k++) p[k] = from[k] + at * strides[k];
    loop(p, strides, m, ctx);
  }
}

/* Runs a loop over n operands; false if a poll stopped it. */
static inline bool run_loop(int n, char **p, const int64_t *strides, int64_t count, Loop *loop,
                            const void *ctx) {
  if (count < 2 * POLL_LEAST || count < 2 * poll_stretch()) {
    if (poll_stops_elements(count)) return false;
    loop(p, strides, count, ctx);
    return true;
  }
  run_stretches(n, p, strides, count, loop, ctx);
  return !failed();
}

void iter_run(Iter *it, Loop *loop, const void *ctx) {
  int64_t inner[ITER_MAX], index[MAX_DIM];
  char *p[ITER_MAX];
  int last = it->ndim - 1, n = it->n_operands;
  for (int i = 0; i < it->ndim; i++) {
    if (it->sizes[i] == 0) return;
    index[i] = 0;
  }
  for (int k = 0; k < n; k++) {
    inner[k] = last < 0 ? 0 : it->strides[k][last];
    p[k] = it->data[k];
  }
  int64_t count = last < 0 ? 1 : it->sizes[last];
  for (;;) {
    if (!run_loop(n, p, inner, count, loop, ctx)) return;
    int d = last - 1;
    for (; d >= 0; d--) {
      for (int k = 0; k < n; k++) p[k] += it->strides[k][d];
      if (++index[d] < it->sizes[d]) break;
      for (int k = 0; k < n; k++) p[k] -= it->strides[k][d] * it->sizes[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

/* Runs contiguous operands of one shape, the common case, without sorting. */
static bool run_flat(int n, Tensor *const *t, Loop *loop, const void *ctx) {
  char *p[ITER_MAX];
  int64_t strides[ITER_MAX];
  for (int k = 0; k < n; k++) {
    if (!tensor_same_shape(t[0], t[k]) || !tensor_is_contiguous(t[k])) return false;
    p[k] = tensor_data(t[k]);
    strides[k] = dtype_bytes(tensor_dtype(t[k]));
  }
  if (t[0]->numel && !any_absent(n, t)) run_loop(n, p, strides, t[0]->numel, loop, ctx);
  return true;
}

void iter_over(int n, Tensor *const *t, Loop *loop, const void *ctx) {
  if (run_flat(n, t, loop, ctx)) return;
  Iter it;
  iter_build(&it, n, t);
  iter_run(&it, loop, ctx);
}
