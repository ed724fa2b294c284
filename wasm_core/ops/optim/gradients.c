/* Gradients between steps: zeros, norms, clipping. */
#include <math.h>

#include "ground/memory.h"
#include "ground/number.h"
#include "ops/op.h"
#include "ops/optim/lists.h"
#include "ops/view/copy.h"
#include "optim_rows.h"

/* Optimizer.zero_grad: drops gradients, or detaches them and fills them with zeros. */
void op_zero_grads(Call *c) {
  Tensors ts = arg_tensors(c, 0);
  bool drop = arg_bool(c, 1);
  WITHOUT_GRAD_BLOCK {
    for (int i = 0; i < ts.n && !failed(); i++) {
      Meta *m = ts.v[i] ? ts.v[i]->meta : NULL;
      Tensor *g = m ? m->grad : NULL;
      if (!g) continue;
      if (drop) {
        m->grad = NULL;
        tensor_release(g);
        continue;
      }
      if (g->grad_fn) t_detach_(g);
      else g->flags = (uint8_t)(g->flags & ~FLAG_REQUIRES_GRAD);
      t_zero_(g);
    }
  }
}

/* Fails with PyTorch's error unless the norm of order p is finite. */
static bool check_finite(const Tensor *total, double p) {
  if (failed() || isfinite(tensor_get_f(total, 0))) return !failed();
  return fail(ERR_RUNTIME,
              "The total norm of order %s for gradients from `parameters` is non-finite, so "
              "it "
              "cannot be clipped. To disable this error and scale the gradients by the "
              "non-finite "
              "norm anyway, set `error_if_nonfinite=False`",
              number_text(p)),
         false;
}

/* The norm of all tensors as one vector: the norm of their norms. */
Tensor *op_grad_norm(Tensors ts, double p, bool finite) {
  if (failed()) return NULL;
  if (ts.n <= 0) return tensor_number(0, dtype_default());
  Tensor **norms = scratch_array(ts.n, sizeof *norms);
  if (!norms) return NULL;
  Tensor *y = NULL;
  WITHOUT_GRAD_BLOCK {
    for (int i = 0; i < ts.n; i++) norms[i] = t_vector_norm(ts.v[i], p, ALL_DIMS, false, DT_NONE);
    y = failed() ? NULL
                 : t_vector_norm(t_stack((Tensors){ts.n, norms}, 0), p, ALL_DIMS, false, DT_NONE);
  }
  return !y || (finite && !check_finite(y, p)) ? NULL : y;
}

#define SCALE_LOOP(suffix, T)                                                           \
  static void scale_##suffix(char **q, const int64_t *st, int64_t n, const void *ctx) { \
    T by = (T) * (const double *)ctx, *x = (T *)(void *)q[0];                           \
    ptrdiff_t s = (ptrdiff_t)st[0] / (ptrdiff_t)sizeof(T);                              \
    if (s == 1) {                                                                       \
      VECTOR_LOOP for (ptrdiff_t i = 0; i < n; i++) x[i] *= by;                         \
    } else {                                                                            \
      for (ptrdiff_t i = 0; i < n; i++) x[i * s] *= by;                                 \
    }                                                                                   \
  }
SCALE_LOOP(f32, float)
SCALE_LOOP(f64, double)
static Loop *const scale_loops[DT_COUNT] = {[DT_F32] = scale_f32, [DT_F64] = scale_f64};

/* Scales the gradients of the parameters by max_norm / (total + 1e-6) where that is less than
 * one; `total` is their norm, computed unless it is given, and the result. */
Tensor *op_clip_grads(Tensors params, double max_norm, double p, bool finite, Tensor *total) {
  Lists l = {.op = "_clip_grads_", .loops = scale_loops};
  Tensors own = lists_gradients(params, "norms of sparse gradients are not implemented");
  int n = 0;
  for (int i = 0; i < own.n; i++)
    if (own.v[i]) own.v[n++] = own.v[i];
  own.n = n;
  WITHOUT_GRAD_BLOCK {
    if (!total) total = op_grad_norm(own, p, finite);
    if (total && n > 0) {
      Tensor *below = t_add(total, tensor_number(1e-6, DT_F64));
      Tensor *one = tensor_number(1, DT_F64);
      Tensor *factor = t_clamp_max(
          t_div_mode(tensor_number(max_norm, tensor_dtype(total)), below, NULL), one);
      double by = factor ? tensor_get_f(factor, 0) : 0;
      if (lists_add(&l, "grads", own) && lists_check(&l) && lists_begin_writes(&l))
        for (int i = 0; i < n; i++) lists_run(&l, i, &by);
    }
  }
  return failed() ? NULL : total;
}