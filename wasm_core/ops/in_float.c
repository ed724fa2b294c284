/* Ops of half types computed in float; see in_float.h. */
#include "ops/in_float.h"

#include <string.h>

#include "ground/memory.h"
#include "ops/elementwise/elementwise.h"
#include "ops/op.h"

/* ------------------------------------------------------------ tensors that stand in */

static Tensor *stand_in(Tensor *x) {
  Tensor *y = failed() ? NULL : tensor_empty_like(x, DT_F32);
  if (!y || !tensor_copy_data(y, x) || !tensor_stand_in(y, x)) return NULL;
  Meta *m = tensor_meta(y);
  if (m) tensor_retain(m->stands_for = x);
  return m ? y : NULL;
}

Tensor **in_float_gradients(int n, Tensor **g) {
  Tensor **wide = scratch_array(n ? n : 1, sizeof *wide);
  for (int i = 0; wide && i < n; i++)
    wide[i] = g[i] && dtype_is_half(tensor_dtype(g[i])) ? stand_in(g[i]) : g[i];
  return wide ? wide : g;
}

/* ------------------------------------------------------------ before the call */

/* Whether t takes part in the choice of a type. Numbers of the host and integers do not. */
static bool decides(const Tensor *t) {
  return t && dtype_is_inexact(tensor_dtype(t)) && !is_wrapped(t);
}

/* The common type of all tensors that decide, else DT_NONE. */
static DType common_type(int n, Place *p) {
  DType d = DT_NONE;
  for (int i = 0; i < n; i++) {
    int count = p[i].one ? 1 : p[i].list.n;
    for (int k = 0; k < count; k++) {
      const Tensor *t = p[i].one ? p[i].one : p[i].list.v[k];
      if (!decides(t)) continue;
      if ((d != DT_NONE && d != tensor_dtype(t)) || t->flags & FLAG_BATCHED) return DT_NONE;
      d = tensor_dtype(t);
    }
  }
  return d;
}

static Tensor *replace(InFloat *f, Tensor *t) {
  if (!t || t->dtype != f->half) return t;
  Tensor *y = stand_in(t);
  if (f->n < IN_FLOAT_MAX) f->was[f->n] = t, f->is[f->n++] = y;
  return y;
}

static void replace_list(InFloat *f, Tensors *list) {
  Tensor **all = list->n ? scratch_array(list->n, sizeof *all) : NULL;
  if (!all) return;
  for (int i = 0; i < list->n; i++)
    all[i] = list->v[i] && list->v[i]->dtype == f->half ? stand_in(list->v[i]) : list->v[i];
  list->v = all;
}

/* Marks that the function is entered a second time; watchers see one entry. */
static bool begin(void) {
  widened = stand_in;
  computes_in_float = !failed();
  entered_again = watcher && !failed();
  return !failed();
}

static bool replace_all(InFloat *f, int n, Place *p) {
  if (failed() || !dtype_is_half(f->half)) return false;
  for (int i = 0; i < n; i++) {
    p[i].one = replace(f, p[i].one);
    replace_list(f, &p[i].list);
  }
  return begin();
}

bool in_float(InFloat *f, int n, Place *p) {
  *f = (InFloat){.half = common_type(n, p)};
  return replace_all(f, n, p);
}

bool in_float_mixed(InFloat *f, int n, Place *p) {
  *f = (InFloat){.half = common_type(1, p)};
  for (int i = 1; i < n; i++)
    if (p[i].one && p[i].one->dtype != DT_F32 && p[i].one->dtype != f->half) return false;
  return replace_all(f, n, p);
}

bool in_float_made(InFloat *f, DType *dtype) {
  *f = (InFloat){.half = *dtype};
  *dtype = DT_F32;
  return begin();
}

bool in_float_as(InFloat *f, Tensor **x, DType *dtype) {
  *f = (InFloat){.half = *dtype != DT_NONE ? *dtype : tensor_dtype((*x))};
  if (failed() || (*x)->flags & FLAG_BATCHED || dtype_is_complex(tensor_dtype((*x)))) return false;
  Tensor *y = *x;
  if (y->dtype != f->half) {
    y = elementwise_cast(y, f->half);
    if (!tensor_stand_in(y, *x)) return false;
  }
  *x = stand_in(y);
  *dtype = DT_NONE;
  return begin();
}

/* ------------------------------------------------------------ after the call */

/* Copies what the function wrote to stand-ins back to its arguments. */
static void end(InFloat *f) {
  computes_in_float = entered_again = false;
  for (int i = 0; i < f->n && !failed(); i++)
    if (tensor_version(f->is[i])) WITHOUT_GRAD(t_copy_(f->was[i], f->is[i], false));
  f->n = 0;
}

Tensor *in_float_narrow(InFloat *f, Tensor *y) {
  end(f);
  if (failed() || !y || y->dtype != DT_F32) return failed() ? NULL : y;
  Tensor *same = narrow_form(y);
  if (same && same->dtype == f->half) return same;
  Tensor *z = tensor_empty_like(y, f->half);
  return z && tensor_copy_data(z, y) && tensor_take_output(z, y) ? z : NULL;
}

void in_float_narrow_all(InFloat *f, int n, Tensor **out) {
  for (int i = 0; i < n; i++) out[i] = in_float_narrow(f, out[i]);
}
