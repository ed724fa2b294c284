/* Complex numbers and their parts: views of one as the other, lazy conjugates and negatives, and
 * functions from complex to real numbers.
 *
 * The gradient of a complex input is PyTorch's: for a real loss L it is dL/d(re) + i dL/d(im),
 * twice the conjugate Wirtinger derivative. For an analytic function this is the incoming gradient
 * times the conjugate of the derivative: such functions have the formulas of real numbers, and
 * `saved_tensor` gives them conjugated values (tape/saved.c). Functions that are not analytic are
 * here and in the decompositions of linalg, and read with saved_plain. */
#include <string.h>

#include "complex_rows.h"
#include "ground/memory.h"
#include "kernels/complex_maths.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/op.h"
#include "ops/view/copy.h"

static bool is_complex(const Tensor *t) { return dtype_is_complex(tensor_dtype(t)); }
static DType real_type(const Tensor *t) { return dtype_real(tensor_dtype(t)); }

/* ------------------------------------------------------------ the door */

static bool is_lazy(const Tensor *t) {
  return t && (t->flags & FLAGS_LAZY) && !(t->flags & FLAG_BATCHED);
}

/* The computed form of x, with x's place in the graph. An op that returns it returns x. */
Tensor *complex_lazy_computed(Tensor *x) {
  if (!is_lazy(x)) return x;
  Tensor *y = tensor_computed(x);
  Meta *m = tensor_stand_in(y, x) ? tensor_meta(y) : NULL;
  if (!m) return NULL;
  tensor_retain(m->stands_for = x);
  return y;
}

/* A lazy argument while its op runs. `kept` is a snapshot of the stand-in, by which a write
 * shows. */
typedef struct {
  Tensor *lazy, *stand_in, *kept;
  Value *of_call; /* the Value of a call that held it; NULL: it was passed itself */
  Value was;      /* its former content */
} Settled;

/* The lazy arguments of an op under way. When the op ends, what it wrote to stand-ins is written to
 * the arguments. The watcher below is told as usual. */
typedef struct Within {
  struct Within *outer;
  const Watcher *by;
  int32_t n;
  Settled of[];
} Within;
static Within *within;

static int32_t enter(const char *op, int n, const Argument *v) {
  watcher = within->by;
  return watcher ? watcher->enter(op, n, v) : -1;
}

/* Writes what the op wrote to a stand-in. Running statistics are written without a version and
 * without history. */
static void write_through(const Settled *s) {
  const bool version = tensor_version(s->stand_in) != 0;
  if (!version && tensor_same_memory(s->stand_in, s->kept)) return;
  if (version) t_copy_(s->lazy, s->stand_in, true);
  else if (copy_check_overlap(s->lazy)) tensor_copy_data(s->lazy, s->stand_in);
}

static void leave(int32_t entry) {
  Within *w = within;
  const Watcher *by = w->by;
  for (int i = 0; i < w->n && !failed(); i++) write_through(&w->of[i]);
  for (int i = w->n - 1; i >= 0; i--)
    if (w->of[i].of_call) *w->of[i].of_call = w->of[i].was;
  within = w->outer;
  mem_free(w, sizeof *w + (size_t)w->n * sizeof *w->of);
  if (by) by->leave(entry);
}
static const Watcher within_op = {enter, leave};

static int count_lazy(int n, const Place *p) {
  int count = 0;
  Tensor *t;
  for (int i = 0; i < n; i++) {
    count += is_lazy(p[i].one);
    for (int k = 0; k < p[i].list.n; k++) count += is_lazy(p[i].list.v[k]);
    for (int k = 0; p[i].call && k < p[i].call->n_args; k++)
      for (int at = -1; (t = value_next(&p[i].call->v[k], &at));) count += is_lazy(t);
  }
  return count;
}

static Tensor *settle_argument(Within *w, Tensor *x) {
  if (!is_lazy(x)) return x;
  Tensor *y = complex_lazy_computed(x);
  w->of[w->n++] = (Settled){.lazy = x, .stand_in = y, .kept = y ? tensor_snapshot(y) : NULL};
  if (x == inplace_self) inplace_self = y; /* ops compare it with their argument */
  return y;
}

static void settle_list(Within *w, Tensors *list) {
  Tensor **all = list->n > 0 ? scratch_array(list->n, sizeof *all) : NULL;
  if (!all) return;
  for (int k = 0; k < list->n; k++) all[k] = settle_argument(w, list->v[k]);
  list->v = all;
}

/* Puts stand-ins for the lazy tensors of a Value into the call, while its function runs. */
static void settle_value(Within *w, Value *v) {
  const Value was = *v;
  const int32_t before = w->n;
  int64_t *words = NULL;
  Tensor *t;
  for (int at = -1; !failed() && (t = value_next(v, &at));) {
    if (!is_lazy(t)) continue;
    Tensor *y = settle_argument(w, t);
    if (v->tag == TAG_TENSOR) v->t = y;
    else if (words || (words = scratch_array(v->n, sizeof *words))) {
      if (v->p == was.p) v->p = memcpy(words, was.p, (size_t)v->n * sizeof *words);
      words[at] = (int64_t)(uintptr_t)y;
    }
  }
  if (w->n > before) w->of[before].of_call = v, w->of[before].was = was;
}

static bool settle(int n, Place *p) {
  const int count = count_lazy(n, p);
  if (!count) return !failed();
  Within *w = failed() ? NULL : mem_alloc(sizeof *w + (size_t)count * sizeof *w->of);
  if (!w) return false;
  *w = (Within){within, watcher, 0};
  for (int i = 0; i < n; i++) {
    p[i].one = settle_argument(w, p[i].one);
    settle_list(w, &p[i].list);
    for (int k = 0; p[i].call && k < p[i].call->n_args; k++)
      settle_value(w, (Value *)(uintptr_t)&p[i].call->v[k]);
  }
  within = w;
  watcher = &within_op;
  return !failed();
}

void complex_begin(void) {
  door_settle_lazy = settle;
  conjugate = t_conj;
  computed_part = tensor_computed;
}

/* ------------------------------------------------------------ views with a flag */

GRAD(ConjBackward0, "")
{ gi[0] = t_conj(g[0]); }
GRAD(NegViewBackward0, "")
{ gi[0] = t_neg(g[0]); }

static Tensor *toggled_view(Tensor *x, int flag, const NodeType *type) {
  Node *n = node_of_view(type, 0, x);
  Tensor *v = tensor_alias(x, x->ndim, x->sizes, x->strides, x->offset);
  if (v) tensor_set_lazy(v, (v->flags & FLAGS_LAZY) ^ flag);
  return record_view(x, v, n, VIEW_PLAIN);
}

Tensor *t_conj(Tensor *x) {
  VIEW_ENTERED(t_conj, "_conj", x);
  if (blocked(x) || !is_complex(x)) return failed() ? NULL : x;
  return toggled_view(x, FLAG_CONJ, &ConjBackward0);
}

Tensor *t_neg_view(Tensor *x) {
  VIEW_ENTERED(t_neg_view, "_neg_view", x);
  return blocked(x) ? NULL : toggled_view(x, FLAG_NEG, &NegViewBackward0);
}

/* ------------------------------------------------------------ lazy tensors, computed */

Tensor *t_resolve_conj(Tensor *x) {
  ANY_ENTERED(t_resolve_conj, "resolve_conj", x);
  return blocked(x) || !(x->flags & FLAG_CONJ) ? (failed() ? NULL : x) : t_clone(x);
}
Tensor *t_resolve_neg(Tensor *x) {
  ANY_ENTERED(t_resolve_neg, "resolve_neg", x);
  return blocked(x) || !(x->flags & FLAG_NEG) ? (failed() ? NULL : x) : t_clone(x);
}

GRAD_SPARSE(ConjPhysicalBackward0, "") { gi[0] = t_conj_physical(g[0]); }

Tensor *t_conj_physical(Tensor *x) {
  VIEW_ENTERED(t_conj_physical, "conj_physical", x);
  if (blocked(x) || !is_complex(x)) return failed() ? NULL : x;
  Node *n = node_new(&ConjPhysicalBackward0, 0, 0, x, NULL);
  Tensor *turned = tensor_alias(x, x->ndim, x->sizes, x->strides, x->offset);
  if (turned) tensor_set_lazy(turned, (x->flags & FLAGS_LAZY) ^ FLAG_CONJ);
  Tensor *y = turned ? tensor_empty_like(x, tensor_dtype(x)) : NULL;
  return set_history(tensor_copy_data(y, turned) ? y : NULL, n);
}

/* ------------------------------------------------------------ real and complex views */

GRAD(ViewAsRealBackward0, "")
{ gi[0] = t_view_as_complex(t_contiguous(g[0])); }
GRAD(ViewAsComplexBackward0, "")
{ gi[0] = t_view_as_real(t_resolve_conj(g[0])); }

Tensor *t_view_as_real(Tensor *x) {
  VIEW_ENTERED(t_view_as_real, "view_as_real", x);
  if (blocked(x)) return NULL;
  if (!is_complex(x))
    return fail(ERR_RUNTIME, "view_as_real is only supported for complex tensors");
  if (x->flags & FLAG_CONJ)
    return fail(ERR_RUNTIME, "view_as_real doesn't work on unresolved conjugated tensors.  To "
                             "resolve the conjugate tensor so you can view it as real, use "
                             "self.resolve_conj(); however, be warned that the resulting tensor "
                             "will NOT alias the original.");
  Node *n = node_of_view(&ViewAsRealBackward0, 0, x);
  int64_t sizes[MAX_DIM + 1], strides[MAX_DIM + 1];
  for (int i = 0; i < x->ndim; i++) sizes[i] = x->sizes[i], strides[i] = 2 * x->strides[i];
  sizes[x->ndim] = 2, strides[x->ndim] = 1;
  Tensor *v = tensor_alias(x, x->ndim + 1, sizes, strides, 2 * x->offset);
  if (v) v->dtype = (uint8_t)real_type(x);
  return record_view(x, v, n, VIEW_PLAIN);
}

Tensor *t_view_as_complex(Tensor *x) {
  VIEW_ENTERED(t_view_as_complex, "view_as_complex", x);
  if (blocked(x)) return NULL;
  DType d = dtype_complex(tensor_dtype(x));
  if (d == DT_NONE || is_complex(x))
    return fail(ERR_RUNTIME,
                "view_as_complex is only supported for half, float and double tensors, "
                "but got a tensor of scalar type: %s",
                legacy(x));
  int last = x->ndim - 1;
  const char *problem = NULL;
  if (last < 0) problem = "Input tensor must have one or more dimensions";
  else if (x->sizes[last] != 2) problem = "Tensor must have a last dimension of size 2";
  else if (x->strides[last] != 1) problem = "Tensor must have a last dimension with stride 1";
  for (int i = 0; i < last && !problem; i++)
    if (x->strides[i] % 2)
      problem = "Tensor must have a stride divisible by 2 for all but last dimension";
  if (!problem && x->offset % 2) problem = "Tensor must have a storage_offset divisible by 2";
  if (problem) return fail(ERR_RUNTIME, "%s", problem);
  Node *n = node_of_view(&ViewAsComplexBackward0, 0, x);
  int64_t strides[MAX_DIM];
  for (int i = 0; i < last; i++) strides[i] = x->strides[i] / 2;
  Tensor *v = tensor_alias(x, last, x->sizes, strides, x->offset / 2);
  if (v) v->dtype = (uint8_t)d;
  return record_view(x, v, n, VIEW_PLAIN);
}

/* The real or the imaginary parts. The imaginary parts of a lazy conjugate are lazy negatives. */
static Tensor *part(Tensor *x, int64_t which) {
  Tensor *plain = x->flags & FLAG_CONJ ? t_conj(x) : x;
  Tensor *y = t_select(t_view_as_real(plain), -1, which);
  return plain == x || which == 0 ? y : t_neg_view(y);
}
Tensor *t_real(Tensor *x) {
  VIEW_ENTERED(t_real, "real", x);
  if (blocked(x)) return NULL;
  return is_complex(x) ? part(x, 0) : x;
}
Tensor *t_imag(Tensor *x) {
  VIEW_ENTERED(t_imag, "imag", x);
  if (blocked(x)) return NULL;
  if (!is_complex(x))
    return fail(ERR_RUNTIME, "imag is not implemented for tensors with non-complex dtypes.");
  return part(x, 1);
}

/* x seen through `lens` (tape/slices.h). LENS_COMPLEX shows all of x's storage. */
Tensor *t_through(Tensor *x, int lens) {
  if (blocked(x) || !lens) return failed() ? NULL : x;
  if (lens & LENS_REAL) x = t_view_as_real(x);
  if (lens & LENS_COMPLEX) {
    int64_t count = x->storage->bytes->n_bytes / dtype_bytes(tensor_dtype(x)) / 2;
    x = t_view_as_complex(t_as_strided(x, 2, (int64_t[]){count, 2}, (int64_t[]){2, 1}, 0));
  }
  if (lens & FLAG_CONJ) x = toggled_view(x, FLAG_CONJ, &ConjBackward0);
  if (lens & FLAG_NEG) x = t_neg_view(x);
  return x;
}

/* ------------------------------------------------------------ made of parts */

#define MAKE_LOOP(fn, Z, R, VALUE)                                                    \
  static void fn(char *const *q, size_t n, __attribute__((unused)) const double *k,   \
                 __attribute__((unused)) LoopScratch *s) {                            \
    const R *a_ = (const R *)(const void *)q[1], *b_ = (const R *)(const void *)q[2]; \
    for (size_t i = 0; i < n; i++) {                                                  \
      R a = a_[i], b = b_[i];                                                         \
      ((Z *)(void *)q[0])[i] = VALUE;                                                 \
    }                                                                                 \
  }
MAKE_LOOP(complex_f32_loop, complex_f32, float, complex_of(a, b))
MAKE_LOOP(complex_f64_loop, complex_f64, double, complex_of(a, b))
MAKE_LOOP(polar_f32_loop, complex_f32, float,
          complex_of((float)((double)a * cos((double)b)), (float)((double)a * sin((double)b))))
MAKE_LOOP(polar_f64_loop, complex_f64, double, complex_of(a *cos(b), a *sin(b)))

/* Checks that both have one floating type, with PyTorch's errors. */
static bool check_parts(const char *op, const Tensor *a, const Tensor *b) {
  if (dtype_complex(tensor_dtype(a)) == DT_NONE || dtype_complex(tensor_dtype(b)) == DT_NONE ||
      is_complex(a) || is_complex(b))
    return fail(ERR_RUNTIME,
                "Expected both inputs to be Half, Float or Double tensors but got %s and %s",
                legacy(a), legacy(b));
  if (a->dtype != b->dtype)
    return fail(ERR_RUNTIME,
                "Expected object of scalar type %s but got scalar type %s for second argument",
                legacy(a), legacy(b));
  return a->dtype != DT_F16 || strcmp(op, "polar") != 0 || dtype_no_kernel("polar_cpu", DT_F16);
}

static const NodeType PolarBackward0;
static Tensor *complex_of_parts(const char *op, const NodeType *type, Flat *f32, Flat *f64,
                                Tensor *a, Tensor *b) {
  if (blocked(a, b) || !check_parts(op, a, b)) return NULL;
  Node *n = node_new(type, 3, 0, a, b, NULL);
  if (type == &PolarBackward0 || needs(n, 0)) save(n, 0, a);
  if (type == &PolarBackward0 || needs(n, 1)) save(n, 1, b);
  DType d = tensor_dtype(a), made = dtype_complex(d);
  Tensor *in[2] = {d == DT_F16 ? elementwise_cast(a, DT_F32) : a,
                   d == DT_F16 ? elementwise_cast(b, DT_F32) : b};
  return set_history(
      elementwise_run_raw(d == DT_F64 ? f64 : f32, 2, in, made == DT_C32 ? DT_C64 : made), n);
}

GRAD_PARTS(ComplexBackward0, "real imag") {
  if (needs(n, 0)) gi[0] = t_real(g[0]);
  if (needs(n, 1)) gi[1] = t_imag(g[0]);
}
Tensor *t_complex(Tensor *real, Tensor *imag) {
  OP_ENTERED(t_complex, "complex", real, imag);
  Tensor *y = complex_of_parts("complex", &ComplexBackward0, complex_f32_loop, complex_f64_loop,
                               real, imag);
  return y && real->dtype == DT_F16 ? t_to(y, DT_C32) : y;
}

/* y = r (cos t + i sin t):  r' = Re(conj(g) (cos t + i sin t)),  t' = Re(conj(g) i y). The node
 * saves y only to show it: PyTorch's formula uses y, and takes r for positive. */
GRAD_PARTS(PolarBackward0, "- - result") {
  Tensor *r = saved_tensor(n, 0), *t = saved_tensor(n, 1),
         *c = t_mul(g[0], t_complex(t_cos(t), t_neg(t_sin(t))));
  if (needs(n, 0)) gi[0] = t_real(c);
  if (needs(n, 1)) gi[1] = t_mul(r, t_imag(c));
}
Tensor *t_polar(Tensor *abs, Tensor *angle) {
  OP_ENTERED(t_polar, "polar", abs, angle);
  Tensor *y = complex_of_parts("polar", &PolarBackward0, polar_f32_loop, polar_f64_loop, abs,
                               angle);
  if (y && y->grad_fn && y->grad_fn->type == &PolarBackward0) save_output(y->grad_fn, 2, y);
  return y;
}

/* ------------------------------------------------------------ sizes and angles */

#define REAL_LOOP(fn, VALUE)                                                        \
  static void fn(char *const *q, size_t n, __attribute__((unused)) const double *k, \
                 __attribute__((unused)) LoopScratch *s) {                          \
    for (size_t i = 0; i < n; i++) {                                                \
      complex_f64 z = ((const complex_f64 *)(const void *)q[1])[i];                 \
      ((double *)(void *)q[0])[i] = VALUE;                                          \
    }                                                                               \
  }
REAL_LOOP(abs_loop, complex_abs(z))
REAL_LOOP(angle_loop, complex_angle(z))

static void sgn_loop(char *const *q, size_t n, __attribute__((unused)) const double *k,
                     __attribute__((unused)) LoopScratch *s) {
  for (size_t i = 0; i < n; i++)
    ((complex_f64 *)(void *)q[0])[i] = complex_sgn(((const complex_f64 *)(const void *)q[1])[i]);
}

static Tensor *run_and_record(Tensor *x, const NodeType *type, int n_saves, Flat *loop,
                              DType of_loop, DType out) {
  if (blocked(x)) return NULL;
  Node *n = node_new(type, n_saves, 0, x, NULL);
  save(n, 0, x);
  return set_history(elementwise_run_typed(loop, 1, &x, DT_C128, of_loop, out, NULL), n);
}

/* y = |x|:  x' = g x / |x|. */
GRAD_PARTS(AbsBackward0, "self") { gi[0] = t_mul(g[0], t_sgn(saved_plain(n, 0))); }
Tensor *complex_abs_of(Tensor *x) {
  if (inplace_self == x)
    return fail(ERR_RUNTIME, "In-place abs is not supported for complex tensors.");
  return run_and_record(x, &AbsBackward0, 1, abs_loop, DT_F64, real_type(x));
}

/* With x = r e^{i t}, y = t:  x' = i g x / r^2, zero at zero. */
GRAD_PARTS(AngleBackward0, "self") {
  Tensor *x = saved_plain(n, 0), *r = t_abs(x), *i = tensor_wrapped_c(complex_of(0.0, 1.0));
  Tensor *at_zero = t_eq(r, tensor_wrapped_f(0));
  Tensor *square = t_mul(r, r);
  gi[0] = t_where(at_zero, tensor_wrapped_f(0), t_mul(t_mul(g[0], i), t_div(x, square)));
}
Tensor *complex_angle_of(Tensor *x) {
  return run_and_record(x, &AngleBackward0, 1, angle_loop, DT_F64, real_type(x));
}

/* y = x / |x|:  x' = (g - y Re(g conj(y))) / |x|, zero at zero. */
GRAD_PARTS(SgnBackward0, "self result") {
  Tensor *x = saved_plain(n, 0), *r = t_abs(x), *y = t_sgn(x), *zero = tensor_wrapped_f(0);
  Tensor *along = t_real(t_mul(g[0], t_conj(y)));
  gi[0] = t_where(t_eq(r, zero), zero, t_div(t_sub(g[0], t_mul(y, along)), r));
}
Tensor *complex_sgn_of(Tensor *x) {
  Tensor *y = run_and_record(x, &SgnBackward0, 2, sgn_loop, DT_C128, x ? tensor_dtype(x) : DT_C128);
  if (y && y->grad_fn && y->grad_fn->type == &SgnBackward0) save_output(y->grad_fn, 1, y);
  return y;
}
