/* gradcheck: compares gradients and tangents with finite differences.
 *
 * The engine decides the order of the checks and the verdict; the host only calls the user's
 * function, and raises the verdict as an error. A Jacobian is a matrix with a row for each element
 * of the input and a column for each element of the output. Inputs are perturbed in place, because
 * a function may reach them by other ways than its arguments, and restored exactly, also after a
 * failure. For gradgradcheck the function is the user's followed by a recorded backward, and the
 * gradients that the backward starts from are among the inputs. The engine's own arithmetic here is
 * never recorded.
 *
 * With complex outputs, a backward is checked for their imaginary parts, then for their real parts:
 * the gradient of a real number is its derivative by the real part of an input plus i times the
 * derivative by the imaginary part. With complex inputs, forward mode is checked for their
 * imaginary parts as inputs, then for their real parts, while the other part stays fixed. */
#include <math.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/number.h"
#include "ground/poll.h"
#include "ground/text.h"
#include "kernels/complex.h"
#include "ops/create/create.h"
#include "ops/create/random.h"
#include "ops/op.h"
#include "report/tensor_text.h"
#include "tape/host.h"
#include "walk/forward.h"
#include "walk/services.h"
#include "walk/walk.h"

/* The part of complex numbers that is checked, in outputs or in inputs. */
typedef enum { WHOLE, REAL, IMAGINARY } Part;

typedef struct {
  int32_t function; /* the host's id */
  int n_points;     /* the function takes the first n_points inputs */
  bool second;      /* gradgradcheck: further inputs are start gradients of a backward */
  Tensors inputs;   /* NULL: no tensor; with `whole`, complex ones are parts */
  Tensor **whole;   /* the whole inputs while parts are perturbed, or NULL */
  Part taken;       /* the part of complex inputs */
  Part given;       /* the part of complex outputs */
  bool forward;     /* checks forward mode */
  bool fast;        /* compares one random combination of each Jacobian's elements */
  Tensor **wanted;  /* the inputs that require grad */
  int *places;      /* their places */
  Tensor **none;    /* a NULL for each input: the function gets the host's own objects */
  Tensor *
      *numeric; /* for sparse inputs, unless masked: forms with all elements, which get perturbed */
  Tensors outputs;   /* the function's first outputs */
  Tensor **recorded; /* the outputs with a history (fast forward mode: all of floating type) */
  int *kept;         /* their places */
  Tensors entire;    /* the whole outputs while parts are compared */
  int n_wanted, n_recorded;
  int n_given;       /* the number of tensors that the last call gave */
  int32_t generator; /* separate from the user's */
  double eps, atol, rtol, nondet_tol;
  bool masked;
  bool grad_mode;      /* the user's */
  bool absent;         /* a backward with undefined gradients failed */
  const char *verdict; /* the mismatch; NULL: none yet */
} Check;

static bool has_stopped(const Check *k) { return failed() || k->verdict; }

/* A list of n NULLs, or NULL without memory. */
static void *list_new(int n) { return scratch_array_zero(n + 1, sizeof(void *)); }

/* The tensors for which `asked` holds, their number, and their places (`at` may be NULL). */
static Tensor **select_tensors(Tensors t, bool (*asked)(const Tensor *), int *n, int **at) {
  Tensor **found = list_new(t.n);
  int *places = list_new(t.n);
  *n = 0;
  for (int i = 0; found && places && i < t.n; i++) {
    if (!t.v[i] || !asked(t.v[i])) continue;
    found[*n] = t.v[i];
    places[(*n)++] = i;
  }
  if (at) *at = places;
  return found;
}
static bool is_tracked(const Tensor *t) { return tensor_requires_grad(t); }
static bool is_inexact(const Tensor *t) { return dtype_is_inexact(tensor_dtype(t)); }
static Tensor **select_tracked(Tensors t, int *n, int **at) {
  return select_tensors(t, is_tracked, n, at);
}

static Tensor *reshape_like(Tensor *t, const Tensor *like) {
  return t ? t_reshape(t, like->ndim, like->sizes) : NULL;
}
static Tensor *flat(Tensor *t) { return t ? t_reshape(t, 1, &t->numel) : NULL; }
static Tensor *zeros(int64_t rows, int64_t columns, DType dtype) {
  return tensor_zeros(2, (const int64_t[]){rows, columns}, dtype);
}
static double number_of(Tensor *t) {
  if (t && t->form & FORM_HOSTED) return number_by_host(t);
  return t ? tensor_get_f(t, 0) : 0;
}
static double largest(Tensor *t) { return t && t->numel ? number_of(t_max(t_abs(t))) : 0; }
static bool is_complex(const Tensor *t) { return t && dtype_is_complex(tensor_dtype(t)); }
/* x times the imaginary unit. */
static Tensor *times_i(Tensor *x) {
  return x ? t_mul(x, tensor_wrapped_c(complex_of(0.0, 1.0))) : NULL;
}
static Tensor *part_of(Tensor *x, Part part) {
  return part == WHOLE || !is_complex(x) ? x : part == REAL ? t_real(x) : t_imag(x);
}
static bool any(Tensor *t) { return t && number_of(t_count_nonzero(t, ALL_DIMS)) > 0; }
/* Also true after a failure, which callers check. */
static bool agree(Tensor *a, Tensor *b, double rtol, double atol) {
  if (blocked(a, b)) return true;
  DType kind = dtype_promote(tensor_dtype(a), tensor_dtype(b));
  return t_allclose(t_to(a, kind), t_to(b, kind), rtol, atol, false) || failed();
}

/* ------------------------------------------------------------ calls of the function */

/* The recorded gradients of the function's outputs: the function that gradgradcheck checks. */
static Tensor **differentiate_outputs(Check *k, Tensor *const *inputs, Tensors ys) {
  int n_roots, n = 0, n_seeds = k->inputs.n - k->n_points;
  Tensor **roots = select_tracked(ys, &n_roots, NULL), **wanted = list_new(k->n_wanted),
         **found = list_new(k->n_wanted);
  if (failed()) return NULL;
  for (; n < k->n_wanted && k->places[n] < k->n_points; n++) wanted[n] = inputs[k->places[n]];
  if (n_roots != n_seeds)
    return fail(ERR_RUNTIME, "got %d tensors and %d gradients", n_roots, n_seeds);
  walk_backward(n_seeds, roots, (Tensor **)inputs + k->n_points, true, true, n, wanted, false, true,
                found);
  for (int i = k->n_given = 0; i < n; i++)
    if (found[i]) found[k->n_given++] = found[i];
  return found;
}

/* A complex input from a perturbed part and the other part of `whole`. */
static Tensor *join_parts(const Check *k, Tensor *part, Tensor *whole) {
  return k->taken == REAL ? t_add(part, times_i(t_imag(whole)))
                          : t_add(t_real(whole), times_i(part));
}

/* Calls the function with the inputs, some replaced by `others`; n_given is 0 after a failure. */
static Tensor **evaluate(Check *k, Tensor *const *others) {
  Tensors out = {0, NULL};
  Tensor **given = list_new(k->inputs.n), **all = list_new(k->inputs.n);
  if (failed()) return (k->n_given = 0), NULL;
  grad_mode = k->grad_mode || forward_on; /* tangents need nodes even without recording */
  for (int i = 0; i < k->inputs.n && !failed(); i++) {
    given[i] = others[i];
    if (k->whole && is_complex(k->whole[i]))
      given[i] = join_parts(k, given[i] ? given[i] : k->inputs.v[i], k->whole[i]);
    all[i] = given[i] ? given[i] : k->inputs.v[i];
  }
  for (int i = 0; k->second && i < k->n_wanted && !failed(); i++)
    if (given[k->places[i]]) op_requires_grad_(given[k->places[i]], true);
  if (!failed()) host_apply(k->function, k->n_points, given, &out.n, &out.v);
  k->n_given = out.n;
  if (k->second && !failed()) out.v = differentiate_outputs(k, all, out);
  for (int i = 0; i < k->n_given && !failed(); i++) out.v[i] = part_of(out.v[i], k->given);
  grad_mode = false;
  if (failed()) k->n_given = 0;
  return out.v;
}

static Tensors evaluate_plain(Check *k) {
  Tensor **found = evaluate(k, k->none);
  return (Tensors){k->n_given, found};
}

/* ------------------------------------------------------------ finite differences */

/* Writes the values back, also after a failure. */
static void put_back(Tensor *place, Tensor *values) {
  Status was = status_now;
  const int64_t left = poll_suspend();
  status_clear();
  t_copy_(place, values, false);
  poll_resume(left);
  if (!failed()) status_now = was;
}

/* "on index (0, 1) ", or "" for all elements (-1). */
static const char *where(const Tensor *x, int64_t element) {
  int64_t index[MAX_DIM];
  if (element < 0) return "";
  for (int d = x->ndim - 1; d >= 0; element /= x->sizes[d--]) index[d] = element % x->sizes[d];
  const char *text = sizes_text(x->ndim, index);
  return textf("on index (%.*s%s) ", (int)strlen(text) - 2, text + 1, x->ndim == 1 ? "," : "");
}

static void check_alike(const Check *k, const Tensor *a, const Tensor *b, const Tensor *x,
                        int64_t element) {
  bool shapes = !tensor_same_shape(a, b);
  if (!shapes && a->dtype == b->dtype) return;
  const char *kind = shapes ? "shape" : "dtype";
  const char *first = shapes ? textf("Size(%s)", shape_text(a)) : dtype_info[a->dtype].name;
  const char *second = shapes ? textf("Size(%s)", shape_text(b)) : dtype_info[b->dtype].name;
  fail(ERR_ASSERTION,
       "Expected `func` to return outputs with the same %s when inputs are perturbed %sby %s, but "
       "got: %ss torch.%s and torch.%s.",
       kind, where(x, element), number_text(k->eps), kind, first, second);
}

static Tensor *element_of(Tensor *x, int64_t element) {
  int64_t offset = x->offset;
  for (int d = x->ndim - 1; d >= 0; element /= x->sizes[d--])
    offset += element % x->sizes[d] * x->strides[d];
  return x->form & FORM_HOSTED ? t_as_strided(t_detach(x), 0, NULL, NULL, offset)
                               : tensor_alias(x, 0, NULL, NULL, offset);
}

/* The tensor to perturb for x: for a sparse x, unless masked, its form with all elements. */
static Tensor *numeric_form(const Check *k, Tensor *x) {
  if (!is_sparse(x)) return x;
  for (int i = 0; i < k->n_wanted; i++)
    if (k->wanted[i] == x && k->numeric[k->places[i]]) return k->numeric[k->places[i]];
  return x;
}
static Tensor *content(Tensor *x) { return is_sparse(x) ? x->meta->sparse->values : x; }

/* (f(x + step) - f(x - step)) / (2 eps) of every output, with an element of x moved by `step`, or
 * all of x (-1). */
static Tensor **difference(Check *k, Tensor *x, int64_t element, Tensor *step) {
  Tensor *all = content(numeric_form(k, x)),
         *place = element >= 0              ? element_of(all, element)
                  : all->form & FORM_HOSTED ? t_detach(all)
                                            : op_data(all),
         *here = place ? t_clone(place) : NULL, **below = NULL;
  int n = 0, wanted = k->outputs.n;
  if (blocked(here, step)) return NULL;
  for (int i = 0; i < 2; i++) {
    t_copy_(place, i ? t_add(here, step) : t_sub(here, step), false);
    Tensor **found = evaluate(k, k->numeric);
    for (int j = 0; j < k->n_given && (!i || j < n) && !failed(); j++) {
      if (i) check_alike(k, below[j], found[j], x, element);
      /* cloned, because the function may write to it again */
      found[j] = i ? t_div_f(t_sub(found[j], below[j]), 2 * k->eps) : t_clone(found[j]);
    }
    n = i && n < k->n_given ? n : k->n_given;
    below = found;
  }
  put_back(place, here);
  if (element < 0 && n != wanted)
    fail(ERR_ASSERTION, "Expected all_Ju and func_out to have the same length, but got %d and %d",
         n, wanted);
  return n < wanted ? fail(ERR_INDEX, "list index out of range") : below;
}

/* ------------------------------------------------------------ forward mode */

/* A tangent that is no view, so that views of it are those that the function makes. */
static Tensor *no_view(Tensor *t) {
  return tensor_is_view(t) ? tensor_alias(t, t->ndim, t->sizes, t->strides, t->offset) : t;
}

/* The tangents of the outputs for inputs with these tangents (NULL: none, the input unchanged). The
 * function gets input `plain` (-1: none) as an alias without history. */
static Tensor **push(Check *k, Tensor **tangents, int plain) {
  Tensor **given = list_new(k->inputs.n), **found = list_new(k->outputs.n);
  if (failed() || (forward_enter(), failed())) return NULL;
  forward_begin(!inference_mode && host_port.allows_forward());
  for (int i = 0; i < k->inputs.n; i++) {
    if (tangents[i])
      given[i] = forward_make_dual(t_detach(k->inputs.v[i]), no_view(tangents[i]), 0);
    else if (i == plain) given[i] = t_detach(k->inputs.v[i]);
  }
  Tensor **ys = evaluate(k, given);
  for (int i = 0; i < k->n_given && i < k->outputs.n; i++) {
    Tensor *tangent = forward_tangent(ys[i]);
    found[i] = tangent ? t_clone(tangent) : NULL;
  }
  Status was = status_now;
  status_clear();
  forward_exit(0);
  if (!failed()) status_now = was;
  return found;
}

static Tensor *unit_like(const Tensor *x, int64_t element) {
  Tensor *t = tensor_zeros(x->ndim, x->sizes, tensor_dtype(x));
  if (t) tensor_set_f(t, element, 1);
  return t;
}

/* ------------------------------------------------------------ Jacobians */

/* The derivatives of the outputs by an element of x, or (-1) by x along u. For a complex x, twice
 * the derivative by its conjugate, which is the gradient of a real output. */
static Tensor **derivatives(Check *k, Tensor *x, int64_t element, Tensor *u) {
  bool joins = is_complex(x);
  Tensor *step = u ? t_mul_f(part_of(u, REAL), k->eps) : tensor_wrapped_f(k->eps),
         *side = !joins ? NULL
                 : u    ? times_i(t_mul_f(t_imag(u), k->eps))
                        : tensor_wrapped_c(complex_of(0.0, k->eps));
  Tensor **re = difference(k, x, element, step),
         **im = joins && !failed() ? difference(k, x, element, side) : NULL;
  for (int i = 0; i < k->outputs.n && !failed(); i++) {
    if (is_complex(re[i]) && (joins || !k->forward))
      fail(ERR_ASSERTION, "Expected ds_dx to be real-valued, not complex%s", joins ? "" : ".");
    else if (joins) re[i] = t_add(re[i], times_i(im[i]));
  }
  return re;
}

/* A vector with 1 for the first element at each place and 0 for further ones: a place stored more
 * than once moves as one. */
static Tensor *first_at_place(Tensor *at, int64_t n, DType dtype) {
  Tensor *y = tensor_zeros(1, &at->numel, dtype);
  uint8_t *seen = scratch_array_zero(n + 1, sizeof *seen);
  if (!y || !seen) return NULL;
  for (int64_t i = 0; i < at->numel; i++) {
    int64_t place = tensor_get_i(at, i);
    if (!seen[place]) tensor_set_f(y, i, 1);
    seen[place] = 1;
  }
  return y;
}

/* Converts a direction over all places of x to one over its stored elements, 0 for those that do
 * not move. */
static Tensor *direction_of_elements(Tensor *x, Tensor *at, Tensor *u) {
  Tensor *own = t_index_select(u, 0, at);
  return own ? t_mul(own, first_at_place(at, x->numel, dtype_real(tensor_dtype(own)))) : NULL;
}

/* The Jacobians by x of the floating outputs (NULL for others), or their products with u: by finite
 * differences, or in forward mode if x is the input at `place` (-1: finite differences). */
static Tensor **jacobians(Check *k, Tensor *x, int place, Tensor *u, Tensor *const *outputs) {
  Tensor **m = list_new(k->outputs.n), **tangents = list_new(k->inputs.n);
  int64_t rows = u ? 1 : x->numel;
  Tensor *varied = numeric_form(k, x),
         *at = is_sparse(varied) ? WITHOUT_GRAD(t_sparse_elements(varied)) : NULL;
  for (int i = 0; i < k->outputs.n && !failed(); i++)
    if (outputs[i] && dtype_is_inexact(tensor_dtype(outputs[i])))
      m[i] = zeros(rows, outputs[i]->numel, tensor_dtype((is_complex(x) ? x : outputs[i])));
  for (int i = 0; i < k->n_wanted && !failed(); i++)
    tangents[k->places[i]] = t_zeros_like(k->wanted[i]);
  if (at && !u) rows = at->numel;
  if (at && u) u = WITHOUT_GRAD(direction_of_elements(varied, at, u));
  for (int64_t row = 0; row < rows && !failed(); row++) {
    int32_t mark = pool_mark();
    size_t scratch = scratch_mark();
    if (place >= 0) tangents[place] = u ? reshape_like(u, x) : unit_like(x, row);
    Tensor **found = place >= 0 ? push(k, tangents, -1)
                                : derivatives(k, x, u ? -1 : row,
                                              u ? reshape_like(u, content(varied)) : NULL);
    int64_t to = at && !u ? tensor_get_i(at, row) : row;
    for (int i = 0; i < k->outputs.n && !failed(); i++)
      if (m[i] && found[i]) t_copy_(t_select(m[i], 0, to), flat(found[i]), false);
    pool_release(mark, NULL);
    scratch_release(scratch);
  }
  for (int i = 0; i < k->outputs.n && u && !failed(); i++)
    m[i] = m[i] ? t_select(m[i], 0, 0) : NULL;
  return m;
}

/* The Jacobian of an output by every input, or its product with v, from a backward that is run
 * twice; *same: whether both agreed. The engine ensures that gradients have the dtypes and sizes of
 * the inputs. */
static Tensor **by_backward(int n, Tensor *const *inputs, Tensor *output, Tensor *v,
                            double tolerance, bool *same) {
  int64_t width = v ? 1 : output->numel;
  Tensor *seed = reshape_like(v, output), **first = NULL;
  GraphEnd root = {output, {NULL, 0}}, *ends = scratch_array(n + 1, sizeof *ends);
  for (int i = 0; ends && i < n; i++) ends[i] = (GraphEnd){inputs[i], {NULL, 0}};
  GraphWalk walk = {.n_roots = 1,
                    .roots = &root,
                    .grads = v ? &seed : NULL,
                    .n_inputs = n,
                    .inputs = ends,
                    .retain_graph = true,
                    .allow_unused = true,
                    .n_rows = v ? 0 : (int)width};
  *same = true;
  for (int t = 0; t < 2 && !failed(); t++) {
    Tensor **found = list_new(n);
    if (!found || (width && !walk_captured(&walk, found))) return NULL;
    for (int i = 0; i < n; i++) {
      Tensor *rows = found[i] ? t_to_dense(found[i], DT_NONE, true) : NULL, *x = inputs[i];
      found[i] = rows ? t_contiguous(t_t(t_reshape(rows, 2, (const int64_t[]){width, x->numel})))
                      : zeros(x->numel, width, tensor_dtype(x));
      if (t && largest(t_sub(first[i], found[i])) > tolerance) *same = false;
    }
    if (!t) first = found;
  }
  return first;
}

static Tensor **backward_checked(Check *k, Tensor *output, Tensor *v) {
  bool same;
  Tensor **found = by_backward(k->n_wanted, k->wanted, output, v, k->nondet_tol, &same);
  if (!same && !failed())
    k->verdict = textf(
        "Backward is not reentrant, i.e., running backward with same input and grad_output "
        "multiple times gives different values, although analytical gradient matches numerical "
        "gradient.The tolerance for nondeterminism was %s.\n\nNOTE: If the function is not "
        "deterministic by nature, call gradcheck/gradgradcheck with `nondet_tol=<tol>`.\n",
        number_text(k->nondet_tol));
  return found;
}

/* ------------------------------------------------------------ comparisons */

/* The text that adds the full Jacobians to a mismatch of fast mode. */
static const char *in_full(Check *k, int input, int output, bool is_forward) {
  Tensor *x = k->wanted[input], **only = list_new(k->outputs.n);
  int at = k->kept[output];
  bool same;
  if (!only) return NULL;
  only[at] = k->outputs.v[at];
  Tensor **numbers = jacobians(k, x, -1, NULL, only);
  Tensor **gradients = failed()     ? NULL
                       : is_forward ? jacobians(k, x, k->places[input], NULL, only)
                                    : by_backward(k->n_wanted, k->wanted, k->recorded[output], NULL,
                                                  INFINITY, &same);
  if (failed()) return NULL;
  Tensor *number = numbers[at], *gradient = gradients[is_forward ? at : input];
  return textf("\nThe above quantities relating the numerical and analytical jacobians are "
               "computed \nin fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for "
               "more background \nabout fast mode. Below, we recompute numerical and analytical "
               "jacobians in slow mode:\n\nNumerical:\n %s\nAnalytical:\n%s\n\nThe max per-element "
               "difference (slow mode) is: %s.\n%s",
               tensor_text(number, false), tensor_text(gradient, false),
               number_text(largest(t_sub(number, gradient))),
               !agree(gradient, number, k->rtol, k->atol)
                   ? ""
                   : "Fast gradcheck failed but element-wise differences are small. This means "
                     "that the\ntest might've passed in slow_mode!\n\nCall gradcheck/gradgradcheck "
                     "with `fast_mode=False` to compare element by element.");
}

/* A random vector of norm 1 without negative elements. */
static Tensor *direction(const Check *k, int64_t n, DType dtype) {
  Tensor *u = random_uniform(tensor_empty(1, &n, dtype_default()), 0, 1, k->generator);
  u = t_to(u, dtype);
  return t_div(u, t_vector_norm(u, 2, ALL_DIMS, false, DT_NONE));
}

/* A direction for each tensor, of the same number of elements; complex tensors get one for each
 * part. */
static void fill_directions(const Check *k, int n, Tensor *const *like, Tensor **v) {
  for (int i = 0; i < n && !failed(); i++) {
    DType real = dtype_real(tensor_dtype(like[i]));
    int64_t n_own = content(like[i])->numel;
    v[i] = direction(k, n_own, real);
    if (is_complex(like[i])) v[i] = t_complex(v[i], direction(k, n_own, real));
    Tensor *at = is_sparse(like[i]) ? t_sparse_elements(like[i]) : NULL;
    if (at && !blocked(v[i])) /* absent elements do not move */
      v[i] = t_index_add(tensor_zeros(1, &like[i]->numel, tensor_dtype(v[i])), 0, at,
                         t_mul(v[i], first_at_place(at, like[i]->numel, real)), 1);
  }
}

/* The factor by which a direction may add up errors. */
static double sum_of_parts(Tensor *u) {
  return number_of(t_sum_all(part_of(u, REAL))) +
         (is_complex(u) ? number_of(t_sum_all(t_imag(u))) : 0);
}

/* The product of a gradient with a direction, part by part. */
static Tensor *derivative_along(Tensor *gradient, Tensor *u) {
  if (!is_complex(gradient)) return t_dot(gradient, u);
  return t_add(t_dot(t_real(gradient), t_real(u)), times_i(t_dot(t_imag(gradient), t_imag(u))));
}

/* The text for the part of complex numbers that a mismatch concerns. As in PyTorch, `input` indexes
 * all inputs here. */
static const char *partly(const Check *k, int input, int output) {
  bool inputs = k->forward && k->whole && is_complex(k->whole[input]),
       outputs = !k->forward && output < k->entire.n && is_complex(k->entire.v[output]);
  if (!inputs && !outputs) return "";
  return textf("While considering the %s part of complex %s only, ",
               (inputs ? k->taken : k->given) == REAL ? "real" : "imaginary",
               inputs ? "inputs" : "outputs");
}

/* Compares the Jacobians of every output by every input computed two ways, or in fast mode one
 * random combination of the elements of each. */
static void compare(Check *k) {
  bool is_forward = k->forward, is_fast = k->fast;
  int n = k->n_wanted, m = k->n_recorded;
  Tensor **us = list_new(n), **vs = list_new(m), ***numbers = list_new(n),
         ***found = list_new(n + m);
  random_seed(k->generator, random_initial_seed(k->generator));
  if (is_fast) fill_directions(k, n, k->wanted, us);
  if (is_fast && !is_forward) fill_directions(k, m, k->recorded, vs);
  for (int i = 0; i < n && !failed(); i++)
    numbers[i] = jacobians(k, k->wanted[i], -1, us[i], k->outputs.v);
  for (int i = 0; i < n && !m && !(is_fast && is_forward) && !has_stopped(k); i++)
    for (int j = 0; j < k->outputs.n && !has_stopped(k); j++)
      if (is_fast ? largest(numbers[i][j]) > k->nondet_tol : any(numbers[i][j]))
        k->verdict = "Numerical gradient for function expected to be zero";
  for (int i = 0; i < n && m && is_forward && !failed(); i++)
    found[i] = jacobians(k, k->wanted[i], k->places[i], us[i], k->outputs.v);
  for (int j = 0; j < m && is_fast && !is_forward && !has_stopped(k); j++)
    found[j] = backward_checked(k, k->recorded[j], vs[j]);
  for (int at = 0; at < n * m && !has_stopped(k); at++) {
    /* input by input, or output by output */
    int i = is_fast ? at / m : at % n, j = is_fast ? at % m : at / n;
    double atol = k->atol;
    if (!is_forward && !found[j]) found[j] = backward_checked(k, k->recorded[j], NULL);
    if (has_stopped(k)) return;
    Tensor *number = numbers[i][k->kept[j]],
           *gradient = is_forward ? found[i][k->kept[j]] : found[j][i];
    if (us[i]) atol *= sum_of_parts(us[i]);
    if (vs[j]) {
      atol *= number_of(t_sum_all(vs[j]));
      gradient = derivative_along(flat(gradient), us[i]);
      number = t_sum_all(t_mul(vs[j], number));
    }
    if (agree(gradient, number, k->rtol, atol)) continue;
    const char *text = textf("%sJacobian %smismatch for output %d with respect to input "
                             "%d,\nnumerical:%s\nanalytical:%s\n",
                             partly(k, i, j), is_forward ? "computed with forward mode " : "", j, i,
                             tensor_text(number, false), tensor_text(gradient, false));
    const char *more = is_fast ? in_full(k, i, j, is_forward) : "";
    if (!failed()) k->verdict = textf("%s%s", text, more);
  }
}

/* ------------------------------------------------------------ gradients and tangents that are
 * zero, or absent */

static const char *layout_shown(const Tensor *t) {
  static const char *const names[] = {
#define X(NAME, name, shown) #name,
      TENSOR_LAYOUTS(X)
#undef X
  };
  return names[tensor_layout(t)];
}

/* The difference in layout between a sparse gradient and its input; NULL: none. */
static const char *other_layout(Tensor *g, Tensor *x) {
  const char *own = layout_shown(g);
  if (tensor_layout(g) != tensor_layout(x))
    return textf("grad is incorrect layout (torch.%s is not torch.%s)", own, layout_shown(x));
  int n = g->meta->sparse->sparse_dim, wanted = x->meta->sparse->sparse_dim;
  const char *kind = tensor_layout(g) == LAYOUT_SPARSE_COO ? "sparse" : own;
  if (n != wanted)
    return textf("grad is %s tensor, but has incorrect sparse_dim %d, expected %d", kind, n,
                 wanted);
  return NULL;
}

/* Whether a backward that starts from zeros gives nonzero gradients. */
static bool zeros_grow(Check *k, int n, Tensor *const *outputs, bool masked) {
  Tensor **seeds = list_new(n), **found = list_new(k->n_wanted);
  for (int i = 0; i < n && !failed(); i++)
    seeds[i] = tensor_zeros(outputs[i]->ndim, outputs[i]->sizes, tensor_dtype(outputs[i]));
  if (failed() ||
      !walk_backward(n, outputs, seeds, false, false, k->n_wanted, k->wanted, false, true, found))
    return false;
  for (int i = 0; i < k->n_wanted; i++)
    if (is_sparse(found[i])) {
      if ((k->verdict = other_layout(found[i], k->wanted[i]))) return false;
      found[i] = t_to_dense(found[i], DT_NONE, true);
    }
  for (int i = 0; i < k->n_wanted; i++)
    if (found[i] && (masked ? !agree(found[i], t_zeros_like(found[i]), 1e-5, 1e-8) : any(found[i])))
      return !failed();
  return false;
}

#define DERIVATIVES                                                \
  " Please look at \"Notes about undefined output gradients\" in " \
  "\"tools/autograd/derivatives.yaml\""

static void warn_of_absent(void) {
  warn_user(
      "Backwards compatibility: New undefined gradient support checking feature is enabled by "
      "default, but it may break existing callers of this function. If this is true for you, you "
      "can call this function with \"check_undefined_grad=False\" to disable the feature");
}

/* Checks that undefined gradients count as zeros: all of them, then one at a time. */
static void expect_zero_of_absent(Check *k) {
  int n = 0, *counts = list_new(k->n_recorded);
  Tensor ***outputs = list_new(k->n_recorded);
  for (int i = 0; i <= n && !failed(); i++) {
    outputs[i] = select_tracked(evaluate_plain(k), &counts[i], NULL);
    grad_mode = k->grad_mode;
    for (int j = 0; j < counts[i]; j++)
      if (!i || j == i - 1) outputs[i][j] = op_undefined_grad(outputs[i][j]);
    grad_mode = false;
    if (!i && counts[0] > 1) n = k->n_recorded;
  }
  for (int i = 0; i <= n && !has_stopped(k); i++) {
    bool grown = zeros_grow(k, counts[i], outputs[i], false);
    k->absent = failed();
    if (!grown) continue;
    warn_of_absent();
    k->verdict = "Expected all input grads to be undefined or zero when all output grads are "
                 "undefined or zero." DERIVATIVES;
  }
}

/* Checks that an input without a tangent acts as one with a tangent of zeros. */
static void compare_absent_tangents(Check *k) {
  Tensor **us = list_new(k->n_wanted), **tangents = list_new(k->inputs.n);
  random_seed(k->generator, random_initial_seed(k->generator));
  fill_directions(k, k->n_wanted, k->wanted, us);
  for (int i = 0; i < k->n_wanted && !failed(); i++)
    tangents[k->places[i]] = reshape_like(us[i], k->wanted[i]);
  for (int i = 0; i < k->n_wanted && !has_stopped(k); i++) {
    Tensor **tangent = &tangents[k->places[i]], *u = *tangent, *x = k->wanted[i];
    *tangent = t_zeros_like(x);
    Tensor **zero = push(k, tangents, -1);
    *tangent = NULL;
    Tensor **none = push(k, tangents, k->places[i]);
    *tangent = u;
    for (int j = 0; j < k->outputs.n && !has_stopped(k); j++)
      if (!agree(zero[j], none[j], 1e-5, 1e-8))
        k->verdict = textf(
            "('Mismatch in tangent values for output with index: ', %d, ' when input: ', %s, ' has "
            "an undefined tangent value. ', ' Got: ', %s, ' but expected: ', %s)",
            j, tensor_text(x, true), tensor_text(zero[j], true), tensor_text(none[j], true));
  }
}

/* ------------------------------------------------------------ the whole check */

/* Checks that an input requires grad, that elements do not overlap, and warns unless they are in
 * double precision. */
static void check_inputs(const Check *k) {
  for (int i = 0; i < k->n_wanted; i++) {
    const Tensor *t = content(k->wanted[i]);
    if (t->dtype != DT_F64 && t->dtype != DT_C128)
      warn_user("Input #%d requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                k->places[i]);
    for (int d = 0; d < t->ndim; d++)
      if (t->strides[d] <= 0 && t->sizes[d] > 1)
        fail(ERR_RUNTIME,
             "The %dth input has a dimension with stride 0. gradcheck only supports inputs that "
             "are non-overlapping to be able to compute the numerical gradients correctly. You "
             "should call .contiguous on the input before passing it to gradcheck.",
             k->places[i]);
  }
  if (!k->n_wanted)
    fail(ERR_VALUE, "gradcheck expects at least one input tensor to require gradient, but none of "
                    "them have requires_grad=True.");
}

static void set_inputs(Check *k, Tensors inputs) {
  k->inputs = inputs;
  k->wanted = select_tracked(inputs, &k->n_wanted, &k->places);
  k->none = list_new(inputs.n);
  k->numeric = list_new(inputs.n);
  for (int i = 0; i < k->n_wanted && !k->masked && !failed(); i++)
    if (is_sparse(k->wanted[i])) k->numeric[k->places[i]] = t_sparse_filled(k->wanted[i]);
}

/* A random gradient to start a backward from: uniform in [-1, 1), a leaf that requires grad. */
static Tensor *random_gradient(const Tensor *y, bool spread) {
  int64_t sizes[MAX_DIM + 1];
  memcpy(sizes, y->sizes, y->ndim * sizeof *sizes);
  sizes[y->ndim] = 2;
  spread = spread && y->numel > 1 && y->ndim < MAX_DIM;
  Tensor *t = random_uniform(tensor_empty(y->ndim + spread, sizes, tensor_dtype(y)), -1, 1, 0);
  if (spread) t = t_select(t, -1, 1);
  return t ? op_requires_grad_(t, true) : NULL;
}

/* Adds the gradients that the backward starts from to the inputs, for gradgradcheck. */
static void add_gradients(Check *k, Tensors gradients, bool spread) {
  if (gradients.n < 0) {
    gradients.v = select_tracked(evaluate_plain(k), &gradients.n, NULL);
    grad_mode = k->grad_mode;
    for (int i = 0; i < gradients.n; i++) gradients.v[i] = random_gradient(gradients.v[i], spread);
    grad_mode = false;
  }
  Tensor **all = list_new(k->inputs.n + gradients.n);
  if (failed()) return;
  memcpy(all, k->inputs.v, (size_t)k->inputs.n * sizeof *all);
  memcpy(all + k->inputs.n, gradients.v, (size_t)gradients.n * sizeof *all);
  set_inputs(k, (Tensors){k->inputs.n + gradients.n, all});
  k->second = true;
}

/* Runs a check of the host, with the outputs that have a history, a NULL, and the inputs that
 * require grad. */
static void ask_host(const Check *k, int32_t check) {
  int m = k->n_recorded, n = m + 1 + k->n_wanted;
  Tensor **out, **all = check && !has_stopped(k) ? list_new(n) : NULL;
  if (!all) return;
  memcpy(all, k->recorded, (size_t)m * sizeof *all);
  memcpy(all + m + 1, k->wanted, (size_t)k->n_wanted * sizeof *all);
  grad_mode = k->grad_mode;
  host_apply(check, n, all, &n, &out);
  grad_mode = false;
}

typedef struct {
  bool forward, backward, undefined;
  int32_t batched_forward, batched; /* ids of the host's checks, 0: none */
} Wanted;

static void set_outputs(Check *k, Tensors outputs) {
  bool all = k->forward && k->fast;
  k->outputs = outputs;
  k->recorded = select_tensors(outputs, all ? is_inexact : is_tracked, &k->n_recorded, &k->kept);
}

static bool any_complex(Tensors t) {
  for (int i = 0; i < t.n; i++)
    if (is_complex(t.v[i])) return true;
  return false;
}

/* Replaces every complex input by a part of it. */
static void take_part(Check *k, Tensors whole, Part part) {
  Tensors parts = {whole.n, list_new(whole.n)};
  grad_mode = k->grad_mode;
  for (int i = 0; i < whole.n && !failed(); i++) parts.v[i] = part_of(whole.v[i], part);
  grad_mode = false;
  k->whole = part == WHOLE ? NULL : whole.v;
  k->taken = part;
  if (!failed()) set_inputs(k, parts);
}

/* Checks backward: real outputs directly, complex outputs a part at a time. */
static void check_backward(Check *k) {
  const Tensors outputs = k->outputs;
  if (!any_complex(outputs)) {
    compare(k);
    return;
  }
  k->entire = (Tensors){k->n_recorded, k->recorded};
  for (k->given = IMAGINARY; k->given && !has_stopped(k); k->given--) {
    set_outputs(k, evaluate_plain(k));
    if (!failed()) compare(k);
  }
  k->given = WHOLE;
  if (!has_stopped(k)) set_outputs(k, outputs);
}

/* Checks forward mode: real inputs directly, complex inputs a part at a time. */
static void check_forward(Check *k, bool undefined) {
  const Tensors inputs = k->inputs, outputs = k->outputs;
  k->forward = true;
  if (!any_complex(inputs)) {
    set_outputs(k, outputs);
    if (!failed()) compare(k);
    if (undefined && !has_stopped(k)) compare_absent_tangents(k);
  } else {
    for (Part part = IMAGINARY; part && !has_stopped(k); part--) {
      take_part(k, inputs, part);
      set_outputs(k, evaluate_plain(k));
      if (!failed()) compare(k);
    }
    for (Part part = IMAGINARY; part && undefined && !has_stopped(k); part--) {
      take_part(k, inputs, part);
      if (!failed()) compare_absent_tangents(k);
    }
    if (!has_stopped(k)) take_part(k, inputs, WHOLE);
  }
  k->forward = false;
  if (!has_stopped(k)) set_outputs(k, outputs);
}

static void check_function(Check *k, const Wanted *w) {
  check_inputs(k);
  if (failed()) return;
  set_outputs(k, evaluate_plain(k));
  for (int i = 0; i < k->outputs.n && !failed(); i++)
    if (is_sparse(k->outputs.v[i]))
      fail(ERR_VALUE, "Sparse output is not supported at gradcheck yet. Please call "
                      "to_dense(masked_grad=...) on the output of fn for gradcheck.");
  if (w->backward && !has_stopped(k)) check_backward(k);
  if (w->forward && !has_stopped(k)) check_forward(k, w->undefined);
  ask_host(k, w->batched_forward);
  if (!w->backward) return;
  ask_host(k, w->batched);
  if (!has_stopped(k) && zeros_grow(k, k->n_recorded, k->recorded, k->masked))
    k->verdict = "backward not multiplied by grad_output";
  if (w->undefined && !has_stopped(k)) expect_zero_of_absent(k);
}

static bool check_options(const Wanted *w, bool second) {
  const char *forward = second ? "check_fwd_over_rev" : "check_forward_ad",
             *backward = second ? "check_rev_over_rev" : "check_backward_ad";
  const char *odd = w->backward || (!w->batched && !(second && w->undefined)) ? NULL
                    : second && w->undefined ? "check_undefined_grad"
                                             : "check_batched_grad";
  if (!w->forward && !w->backward)
    fail(ERR_ASSERTION, "Expected at least one of %s or %s to be True", forward, backward);
  else if (odd || (w->batched_forward && !w->forward))
    fail(ERR_ASSERTION, "Setting %s=True requires %s to be True",
         odd ? odd : "check_batched_forward_grad", odd ? backward : forward);
  return !failed();
}

/* whether the last check failed in a backward with undefined gradients */
static bool absent;

/* Checks a function, or its gradient (`second`); returns the mismatch or None. */
void op_gradcheck(Call *c) {
  bool second = arg_bool(c, 2);
  Wanted w = {.undefined = arg_bool(c, 9),
              .forward = arg_bool(c, 10),
              .backward = arg_bool(c, 11),
              .batched = (int32_t)arg_int(c, 14),
              .batched_forward = (int32_t)arg_int(c, 15)};
  Check k = {.function = (int32_t)arg_int(c, 0),
             .eps = arg_float(c, 5),
             .atol = arg_float(c, 6),
             .rtol = arg_float(c, 7),
             .nondet_tol = arg_float(c, 8),
             .fast = arg_bool(c, 12),
             .masked = arg_bool(c, 13),
             .grad_mode = grad_mode,
             .generator = random_generator_new()};
  grad_mode = false;
  if (check_options(&w, second)) {
    set_inputs(&k, arg_tensors(c, 1));
    k.n_points = k.inputs.n;
    if (second) add_gradients(&k, arg_tensors(c, 3), arg_bool(c, 4));
    if (!failed()) check_function(&k, &w);
  }
  grad_mode = k.grad_mode;
  absent = failed() && k.absent;
  random_generator_free(k.generator);
  if (k.verdict) ret_str(c, k.verdict);
}

/* The text for a failure of the last check in a backward with undefined gradients, or None. */
void op_gradcheck_note(Call *c) {
  if (!absent) return;
  absent = false;
  warn_of_absent();
  ret_str(c, "Expected backward function to handle undefined output grads." DERIVATIVES);
}

/* The Jacobians by x of the floating tensors among the function's outputs. */
void op_numerical_jacobian(Call *c) {
  Check k = {.function = (int32_t)arg_int(c, 0),
             .eps = arg_float(c, 4),
             .forward = arg_bool(c, 5),
             .grad_mode = grad_mode};
  Tensor *x = arg_tensor(c, 3);
  if (!tensor_requires_grad(x)) fail(ERR_ASSERTION, "Expected input to have requires_grad=True");
  grad_mode = false;
  set_inputs(&k, arg_tensors(c, 1));
  k.n_points = k.inputs.n;
  k.outputs = arg_tensors(c, 2);
  Tensor **found = failed() ? NULL : jacobians(&k, x, -1, NULL, k.outputs.v);
  grad_mode = k.grad_mode;
  int n = 0;
  for (int i = 0; i < k.outputs.n && !failed(); i++)
    if (found[i]) found[n++] = found[i];
  ret_tensors(c, n, found);
}

/* The Jacobians of an output by all inputs, and whether two backwards agreed. */
void op_analytical_jacobian(Call *c) {
  Tensors inputs = arg_tensors(c, 0);
  bool same;
  Tensor **found = WITHOUT_GRAD(
      by_backward(inputs.n, inputs.v, arg_tensor(c, 1), NULL, arg_float(c, 2), &same));
  if (failed()) return;
  found[inputs.n] = tensor_number(same, DT_BOOL);
  ret_tensors(c, inputs.n + 1, found);
}
