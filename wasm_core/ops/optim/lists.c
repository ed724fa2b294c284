/* Lists of tensors side by side, and one loop over each parameter with its gradient and its state. */
#include "ops/optim/lists.h"

#include "ground/memory.h"
#include "ground/paths.h"
#include "ops/elementwise/elementwise.h"
#include "ops/view/copy.h"
#include "tensor/iter.h"

bool lists_add(Lists *l, const char *name, Tensors ts) {
  if (failed()) return false;
  if (l->n_lists == 0) l->n = ts.n;
  if (ts.n != l->n) {
    fail(ERR_RUNTIME, "%s: there are %d tensors in self but %d in %s", l->op, l->n, ts.n, name);
    return false;
  }
  l->names[l->n_lists] = name;
  l->lists[l->n_lists++] = ts.v;
  return true;
}

Tensors lists_gradients(Tensors params, const char *refusal) {
  Tensor **own = params.n > 0 ? scratch_array(params.n, sizeof *own) : NULL;
  for (int i = 0; own && i < params.n; i++)
    own[i] = params.v[i] && params.v[i]->meta ? params.v[i]->meta->grad : NULL;
  for (int i = 0; own && refusal && unusual_tensors && i < params.n; i++)
    if (is_sparse(own[i])) {
      fail(ERR_RUNTIME, "%s", refusal);
      return (Tensors){-1, NULL};
    }
  return (Tensors){own ? params.n : 0, own};
}

void lists_add_parameters(Lists *l, Call *c, const char *refusal) {
  Tensors params = arg_tensors(c, 0), given = arg_tensors(c, 1);
  l->finds_gradients = given.n == 0;
  lists_add(l, "self", params);
  lists_add(l, "grads", l->finds_gradients ? lists_gradients(params, refusal) : given);
}

void lists_drop_without_gradient(Lists *l, Tensors *more) {
  int n = 0;
  if (failed() || !l->finds_gradients) return;
  for (int k = 0; k < l->n; k++) {
    if (!l->lists[1][k]) continue;
    for (int list = 0; list < l->n_lists; list++) l->lists[list][n] = l->lists[list][k];
    if (more && k < more->n) more->v[n] = more->v[k];
    n++;
  }
  if (more && more->n == l->n) more->n = n;
  l->n = n;
}

/* Checks of every tensor in a step are inlined, because most tensors are small. */
static inline bool equal_dims(int n, const int64_t *a, const int64_t *b) {
  for (int i = 0; i < n; i++)
    if (a[i] != b[i]) return false;
  return true;
}

static bool check_member(const Lists *l, int list, int k) {
  const Tensor *p = l->lists[0][k], *t = l->lists[list][k];
  if (!p || !t) return fail(ERR_RUNTIME, "%s: %s[%d] is None", l->op, l->names[list], k), false;
  if (t->dtype == p->dtype && t->ndim == p->ndim && equal_dims(p->ndim, t->sizes, p->sizes))
    return true;
  fail(ERR_RUNTIME, "%s: %s[%d] is %s of shape %s, but the parameter is %s of shape %s", l->op,
       l->names[list], k, dtype_info[t->dtype].name, shape_text(t), dtype_info[p->dtype].name,
       shape_text(p));
  return false;
}

/* Half parameters are computed in float, complex ones are two real numbers each. */
INLINE DType loop_type(const Tensor *t) {
  DType d = tensor_dtype(t);
  if (d == DT_F32 || d == DT_F64) return d;
  return dtype_is_half(d) ? DT_F32 : dtype_is_complex(d) ? dtype_real(d) : d;
}

bool lists_check(const Lists *l) {
  for (int k = 0; k < l->n && !failed(); k++)
    for (int list = 0; list < l->n_lists; list++) {
      if (!check_member(l, list, k)) return false;
      if (list != 1 && !lists_may_write(l->lists[list][k])) return false;
      if (list) continue;
      DType d = loop_type(l->lists[0][k]);
      if (!KERNEL_OF(l->loops, d, l->op)) return false;
    }
  return !failed();
}

bool lists_begin_writes(const Lists *l) {
  for (int k = 0; k < l->n; k++)
    for (int list = 0; list < l->n_lists; list++)
      if (list != 1 && !lists_begin_write(l->lists[list][k])) return false;
  return true;
}

/* Runs the loop once over memory if all tensors have the same dense layout, else along their
 * strides. */
static void run_on(Tensor *const *t, int n, Loop *loop, const void *ctx) {
  bool alike = !unusual_tensors;
  for (int i = 1; i < n; i++) alike = alike && equal_dims(t[0]->ndim, t[i]->strides, t[0]->strides);
  if (!alike || !tensor_is_dense(t[0])) {
    iter_over(n, t, loop, ctx);
    return;
  }
  char *at[MAX_LISTS];
  int64_t strides[MAX_LISTS];
  for (int i = 0; i < n; i++) {
    at[i] = tensor_memory(t[i]);
    strides[i] = dtype_bytes(tensor_dtype(t[i]));
  }
  TOOK(STEP_FLAT);
  loop(at, strides, t[0]->numel, ctx);
}

/* A tensor of the loop's type. If its memory is another, writes to it must be copied back. */
static Tensor *loop_tensor(Tensor *t) {
  DType d = tensor_dtype(t);
  if (dtype_is_half(d)) return elementwise_cast(t, DT_F32);
  if (t->flags & FLAGS_LAZY) {
    Tensor *copy = tensor_empty_like(t, d);
    t = copy && tensor_copy_data(copy, t) ? copy : NULL;
  }
  return t && dtype_is_complex(d) ? t_view_as_real(t) : t;
}

static NOINLINE void run_converted(Tensor *const *to, int n, Loop *loop, const void *ctx) {
  Tensor *t[MAX_LISTS];
  int32_t mark = pool_mark();
  for (int i = 0; i < n; i++)
    if (!(t[i] = loop_tensor(to[i]))) return;
  run_on(t, n, loop, ctx);
  for (int i = 0; i < n; i++)
    if (i != 1 && t[i]->storage != to[i]->storage)
      tensor_copy_data(to[i],
                       dtype_is_complex(tensor_dtype(to[i])) ? t_view_as_complex(t[i]) : t[i]);
  pool_release(mark, NULL);
}

void lists_run(const Lists *l, int k, const void *ctx) {
  Tensor *t[MAX_LISTS];
  DType d = loop_type(l->lists[0][k]);
  Loop *loop = l->loops[d];
  bool fit = d == tensor_dtype(l->lists[0][k]); /* the type of all: see check_member */
  for (int i = 0; i < l->n_lists; i++) t[i] = l->lists[i][k];
  for (int i = 0; unusual_tensors && i < l->n_lists; i++) fit = fit && !(t[i]->flags & FLAGS_LAZY);
  (fit ? run_on : run_converted)(t, l->n_lists, loop, ctx);
  if (failed()) return;
  for (int i = 0; i < l->n_lists; i++)
    if (i != 1) tensor_bump_version(t[i]);
}

bool lists_check_steps(const Lists *l, Tensors steps) {
  if (steps.n != l->n)
    return fail(ERR_RUNTIME, "%s: there are %d tensors in self but %d in state_steps", l->op, l->n,
                steps.n),
           false;
  for (int i = 0; i < steps.n; i++) {
    if (!steps.v[i] || steps.v[i]->numel != 1 || !dtype_is_float(tensor_dtype(steps.v[i])))
      return fail(ERR_RUNTIME, "%s: state_steps[%d] is not a floating tensor of one element", l->op,
                  i),
             false;
    if (!lists_may_write(steps.v[i])) return false;
  }
  for (int i = 0; i < steps.n; i++)
    if (!lists_begin_write(steps.v[i])) return false;
  return true;
}

double lists_count_step(Tensor *step) {
  double now = tensor_get_f(step, 0) + 1;
  tensor_set_f(step, 0, now);
  tensor_bump_version(step);
  return now;
}
