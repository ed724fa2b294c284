/* Runs a node's gradient function, with checks of its arguments and results. The gradient functions
 * of slices are here, because the tape, which makes their nodes, may not call ops. */
#include <string.h>

#include "ground/memory.h"
#include "ops/complex/complex.h"
#include "ops/dispatch.h"
#include "ops/op.h"
#include "tape/forward.h"
#include "tape/profile.h"
#include "tape/slices.h"
#include "walk/walk.h"

static Tensor *invalid_gradient(Node *n, int index, const Tensor *g, const OutputMeta *m) {
  return fail(ERR_RUNTIME,
              "Function %s returned an invalid gradient at index %d - got %s but expected shape "
              "compatible with %s",
              n->type->name, index, shape_text(g), sizes_text(m->ndim, output_sizes(m)));
}

static NOINLINE Tensor *elsewhere(Node *n, int index, const Tensor *g) {
  return fail(ERR_RUNTIME,
              "Function %s returned an invalid gradient at index %d - expected device %s but got "
              "%s",
              n->type->name, index, tensor_absent(g) ? "cpu" : "meta", device_name(g));
}

Tensor *gradient_fit(Node *n, int index, Tensor *g, const OutputMeta *m) {
  if (!g || failed() || !m->defined) return g;
  const int64_t *sizes = output_sizes(m);
  if (!sizes_equal(g->ndim, g->sizes, m->ndim, sizes)) {
    if (!sizes_expandable(m->ndim, sizes, g->ndim, g->sizes))
      return invalid_gradient(n, index, g, m);
    g = t_sum_to(g, m->ndim, sizes);
  }
  if (g && (g->form & FORM_ABSENT) != m->form && g->ndim) return elsewhere(n, index, g);
  if (g && g->dtype != m->dtype && m->dtype != DT_NONE && dtype_is_inexact(output_dtype(m))) {
    Tensor *narrow = narrow_form(g);
    if (narrow && narrow->dtype == m->dtype) return narrow;
    bool cut = dtype_is_complex(tensor_dtype(g)) && !dtype_is_complex(output_dtype(m));
    g = t_to(cut ? t_real(g) : g, output_dtype(m));
  }
  return g;
}

/* ------------------------------------------------------------ running nodes */

/* Whether the gradients still have their outputs' dtypes and sizes: hooks may change them in place,
 * and the host may call a node with any gradients. */
static bool still_fit(Node *n, Tensor *const *g) {
  if (n->type->each & NODE_EACH || n->kind == NODE_HOST) return true;
  for (int i = 0; i < n->n_outputs; i++) {
    const OutputMeta *m = &n->outputs[i];
    if (!g[i] || !m->defined) continue;
    bool typed = m->dtype != DT_NONE && dtype_is_inexact(output_dtype(m));
    if (sizes_equal(g[i]->ndim, g[i]->sizes, m->ndim, output_sizes(m)) &&
        (!typed || g[i]->dtype == m->dtype))
      continue;
    fail(ERR_RUNTIME,
         "Function %s was given an invalid gradient at index %d - got %s of %s but expected %s of "
         "%s",
         n->type->name, i, shape_text(g[i]), dtype_info[g[i]->dtype].name,
         sizes_text(m->ndim, output_sizes(m)), typed ? dtype_info[m->dtype].name : "any type");
    return false;
  }
  return true;
}

/* ------------------------------------------------------------ slices */

static Geometry geometry_load(const Number *at) {
  Geometry geo;
  const int64_t *p = &at->i;
  geo.base_ndim = (int)p[0];
  geo.base_sizes = p + 1;
  geo.base_strides = geo.base_sizes + geo.base_ndim;
  p = geo.base_strides + geo.base_ndim;
  geo.ndim = (int)p[0];
  geo.sizes = p + 1;
  geo.strides = geo.sizes + geo.ndim;
  geo.offset = geo.strides[geo.ndim];
  geo.inner_first = geo.strides[geo.ndim + 1];
  geo.lens = (int)geo.strides[geo.ndim + 2];
  return geo;
}

/* A tensor of zeros with the base's layout. */
static Tensor *base_like(const Geometry *geo, DType dtype) {
  Tensor *z = tensor_empty_strided(geo->base_ndim, geo->base_sizes, geo->base_strides, dtype);
  if (z && !tensor_absent(z))
    memset(z->storage->bytes->data, 0, (size_t)z->storage->bytes->n_bytes);
  return z;
}

/* The type of a base whose view through the lens has type d. */
static DType base_dtype(int lens, DType d) {
  return lens & LENS_REAL ? dtype_complex(d) : lens & LENS_COMPLEX ? dtype_real(d) : d;
}

static Tensor *slice_of(const Geometry *geo, Tensor *base) {
  return t_as_strided(t_through(base, geo->lens), geo->ndim, geo->sizes, geo->strides, geo->offset);
}

/* The gradient of y, a view of a base that was written to: g added to zeros, because y may be
 * expanded. */
static void grad_as_strided_view(Node *n, Tensor **g, Tensor **gi) {
  Geometry geo = geometry_load(n->numbers);
  Ints sizes = {geo.ndim, geo.sizes}, strides = {geo.ndim, geo.strides};
  if (geo.lens) {
    Tensor *whole = g[0] ? base_like(&geo, base_dtype(geo.lens, tensor_dtype(g[0]))) : NULL;
    t_copy_(slice_of(&geo, whole), g[0], true);
    gi[0] = whole;
    return;
  }
  gi[0] = t_spread_strided(g[0], sizes, strides, geo.offset, (Ints){geo.base_ndim, geo.base_sizes},
                           (Ints){geo.base_ndim, geo.base_strides});
}

/* The op `inner` wrote in place to a slice of the base. The base's old value gets the gradient
 * outside the slice; inside the slice, inner's gradients go to its inputs. If inner's first input
 * is the slice's old value (inner_first), its gradient is written into the slice, which saves an
 * addition. */
static void grad_copy_slices(Node *n, Tensor **g, Tensor **gi) {
  if (n->freed) {
    saved_freed();
    return;
  }
  Geometry geo = geometry_load(n->numbers);
  Tensor *result = g[0] ? base_like(&geo, tensor_dtype(g[0])) : NULL;
  t_copy_(result, g[0], true);
  Tensor *slice = slice_of(&geo, result), *inner_gi[64] = {NULL};
  Tensor *inner_g[1] = {t_clone(slice)};
  if (failed() || !node_apply(n->inner, inner_g, inner_gi)) return;
  if (geo.inner_first && inner_gi[0]) t_copy_(slice, inner_gi[0], true);
  else t_fill_(slice, tensor_wrapped_f(0));
  gi[0] = result;
  /* inner has no gradient for the base */
  if (geo.inner_first && !inner_gi[0] && n->inner->kind == NODE_HOST) gi[0] = NULL;
  int shift = geo.inner_first ? 0 : 1;
  for (int i = 1 - shift; i < n->inner->n_edges; i++) gi[i + shift] = inner_gi[i];
}

/* ------------------------------------------------------------ any node */

/* form_made for a node that gets these gradients. */
static int32_t form_of(const Node *n, Tensor *const *g) {
  for (int i = 0; i < (n->n_outputs ? n->n_outputs : 1); i++)
    if (g[i] && tensor_absent(g[i])) return g[i]->form & FORM_ABSENT;
  return 0;
}

/* The gradients given to n, lazy ones computed. */
static Tensor **settle_gradients(const Node *n, Tensor **g) {
  int count = n->n_outputs ? n->n_outputs : 1;
  Tensor **all = scratch_array(count, sizeof *all);
  for (int i = 0; all && i < count; i++) all[i] = complex_lazy_computed(g[i]);
  return all;
}

/* Whether n takes its gradients: sparse ones only if its function reads none of their memory. */
static bool takes_gradients(const Node *n, Tensor *const *g) {
  if (n->type->each || n->kind == NODE_HOST) return true;
  for (int i = 0; i < (n->n_outputs ? n->n_outputs : 1); i++)
    if (is_sparse(g[i])) return door_refuse_layout(node_stem(n), g[i]) != NULL;
  return true;
}

static void run_function(Node *n, Tensor **g, Tensor **gi) {
  form_made = 0;
  if (__builtin_expect(unusual_tensors != 0, 0)) {
    if (!takes_gradients(n, g)) return;
    form_made = form_of(n, g);
    if (n->kind != NODE_HOST) g = settle_gradients(n, g);
  }
  if (n->in_float) g = in_float_gradients(n->n_outputs, g);
  if (failed()) return;
  if (n->kind == NODE_COPY_SLICES) grad_copy_slices(n, g, gi);
  else if (n->kind == NODE_SLICE) grad_as_strided_view(n, g, gi);
  else if (n->kind != NODE_ACCUMULATE) n->type->grad(n, g, gi);
}

/* A gradient function may read a FORM_HOSTED tensor only by ops. Fails if it had one and gave a
 * result that is neither hosted nor a given gradient, without an answer of the host that explains
 * it. */
static void check_by_ops(const Node *n, Tensor *const *g, Tensor *const *gi, int64_t answers,
                         int64_t plain) {
  bool given = false, kept = false;
  int n_in = n->n_outputs ? n->n_outputs : 1;
  for (int i = 0; i < n_in; i++) given = given || (g[i] && g[i]->form & FORM_HOSTED);
  for (int i = 0; i < n->n_saves; i++)
    kept = kept || (n->saves[i].value && n->saves[i].value->form & FORM_HOSTED);
  bool strange = given ? dispatch_count_plain() == plain : kept && dispatch_count() == answers;
  for (int i = 0; i < n->n_edges && strange && !failed(); i++) {
    bool known = !gi[i] || gi[i]->form & FORM_HOSTED;
    for (int k = 0; k < n_in; k++) known = known || gi[i] == g[k];
    if (!known)
      fail(ERR_NOT_IMPLEMENTED,
           "pygrad: the gradient function %s reads elements itself, and a tensor whose class has "
           "__torch_dispatch__ shows none",
           n->type->name);
  }
}

static bool ready(Node *n, Tensor **g, bool guarded) {
  return (!guarded || saves_ready(n)) && still_fit(n, g);
}

static NOINLINE void run_by_ops(Node *n, Tensor **g, Tensor **gi, bool guarded) {
  const int64_t answers = dispatch_count(), plain = dispatch_count_plain();
  const HiddenReads reads = dispatch_elements_begin();
  if (ready(n, g, guarded)) run_function(n, g, gi);
  if (n->kind != NODE_HOST) check_by_ops(n, g, gi, answers, plain);
  dispatch_elements_end(reads, n->type->name);
}

Tensor *node_tangent(Node *n, Tensor *const *t, int output_nr, Tensor *y) {
  bool guarded = n->guarded || n->freed, was = n->running;
  n->running = guarded || was;
  Tensor **in = scratch_array(n->n_edges, sizeof *in), *jt = NULL;
  if (in) memcpy(in, t, n->n_edges * sizeof *in);
  if (in && n->in_float) in = in_float_gradients(n->n_edges, in);
  if (in && (!guarded || saves_ready(n))) jt = n->type->tangent(n, in, output_nr, y);
  n->running = was;
  if (guarded && !was) saves_done(n);
  return failed() ? NULL : jt;
}

bool node_apply(Node *n, Tensor **g, Tensor **gi) {
  bool any = false;
  int n_in = n->n_outputs ? n->n_outputs : 1;
  for (int i = 0; i < n_in; i++) any = any || g[i];
  if (!any && n->kind != NODE_HOST) return true;
  int32_t event = profiling ? profile_node_begin(PROFILE_NODE, n, n_in, g) : -1;
  /* a custom node unpacks its saved tensors itself */
  bool guarded = n->kind != NODE_HOST && (n->guarded || n->freed);
  bool was = n->running;
  n->running = guarded || was;
  const int32_t form = form_made;
  if (__builtin_expect(by_ops, 0)) run_by_ops(n, g, gi, guarded);
  else if (ready(n, g, guarded)) run_function(n, g, gi);
  form_made = form;
  n->running = was;
  if (guarded && !was) saves_done(n);
  profile_end(event);
  return !failed();
}
