/* The door's way to what ops do with sparse arguments: bodies.def as a table of functions. */
#include <string.h>

#include "ops/sparse/sparse.h"
#include "sparse_rows.h"

/* ------------------------------------------------------------ refusals in words of their own */

static void *no_reshape(void) {
  return fail(ERR_RUNTIME, "reshape is not implemented for sparse tensors");
}
static void *no_expand(const Tensor *x) {
  return fail(ERR_RUNTIME, "expand is unsupported for %s tensors", layout_text(x));
}
static void *no_contiguous(void) {
  return fail(ERR_RUNTIME, "unsupported memory format option Contiguous");
}
static bool no_assignment(const Tensor *x) {
  fail(ERR_TYPE, is_sparse(x) ? "Cannot assign to a sparse tensor"
                              : "Cannot assign a sparse tensor to a strided one");
  return false;
}

/* ------------------------------------------------------------ arguments at the door */

typedef struct {
  int n;
  const Argument *v;
} Given;

/* The argument if it has this tag, else NULL. */
static const void *tagged(Given g, int k, int32_t tag) {
  return k < g.n && g.v[k].tag == tag ? g.v[k].at : NULL;
}

static Tensor *tensor_given(Given g, int k) {
  const double *number = tagged(g, k, TAG_FLOAT);
  Tensor *const *t = tagged(g, k, TAG_TENSOR);
  return number ? tensor_wrapped_f(*number) : t ? *t : NULL;
}

static Ints ints_given(Given g, int k) {
  const Ints *list = tagged(g, k, TAG_INTS);
  const int *count = tagged(g, k, TAG_C_INT);
  const int64_t *const *words = tagged(g, k + 1, TAG_C_WORDS);
  if (count && words) return (Ints){*count, *words};
  return list ? *list : (Ints){-1, NULL};
}

static int64_t int_given(Given g, int k) {
  const int64_t *wide = tagged(g, k, TAG_INT);
  const int *narrow = tagged(g, k, TAG_C_INT);
  return wide ? *wide : narrow ? *narrow : 0;
}

/* GIVEN_AS(name, tag, type, absent) defines the function that reads arguments of one tag. */
#define GIVEN_AS(name, tag, type, absent)    \
  static type name##_given(Given g, int k) { \
    type const *at = tagged(g, k, tag);      \
    return at ? *at : absent;                \
  }
GIVEN_AS(bool, TAG_BOOL, bool, false)
GIVEN_AS(float, TAG_FLOAT, double, 0)
GIVEN_AS(dtype, TAG_C_ENUM, DType, DT_NONE)
GIVEN_AS(tensors, TAG_TENSORS, Tensors, NO_LIST)
typedef const char *Name;
GIVEN_AS(name, TAG_STR, Name, NULL)
GIVEN_AS(factor, TAG_C_FACTOR, Factor, ((Factor){1, 1, 0}))

/* ------------------------------------------------------------ the table */

#define T(k) tensor_given(g, k)
#define I(k) int_given(g, k)
#define B(k) bool_given(g, k)
#define F(k) float_given(g, k)
#define D(k) dtype_given(g, k)
#define IL(k) ints_given(g, k)
#define TL(k) tensors_given(g, k)
#define S(k) name_given(g, k)
#define FACTOR(k) factor_given(g, k)

#define BODY(op, expression)                                                                      \
  static intptr_t body_##op(__attribute__((unused)) const char *name, int n, const Argument *v) { \
    __attribute__((unused)) const Given g = {n, v};                                               \
    return (intptr_t)(expression);                                                                \
  }
#include "ops/sparse/bodies.def"
#undef BODY

static const struct {
  const char *op;
  SparseBody *body;
} bodies[] = {
#define BODY(op, expression) {#op, body_##op},
#include "ops/sparse/bodies.def"
};

/* ------------------------------------------------------------ functions of one number */

/* A row of elementwise.def: its function without numbers of the host, or with three. */
typedef struct {
  const char *op;
  Tensor *(*plain)(Tensor *x);
  Tensor *(*with)(Tensor *x, double p0, double p1, double p2);
} Function;
static const Function functions[] = {
#define UNARY(words, name, ...) {#name, t_##name, NULL},
#define UNARY_P(words, name, ...) {#name, NULL, t_##name},
#define UNARY_P_AS(words, host, ...) UNARY_P(words, __VA_ARGS__)
#define PREDICATE UNARY
#include "ops/elementwise/elementwise.def"
};

static const Function *function_named(const char *op) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i].op, op) == 0) return &functions[i];
  return NULL;
}

static Tensor *value_of(const Function *f, Tensor *x, Floats p) {
  return f->plain ? f->plain(x) : f->with(x, p.v[0], p.v[1], p.v[2]);
}

/* f of each value, if f(0) is 0, so that elements that are not stored stay so. Coalesces x like
 * PyTorch, as f need not be linear. */
static Tensor *each_value(const Function *f, Tensor *x, Floats p) {
  ANY_ENTERED_AS(each_value(f, x, p), f->op, x);
  if (blocked(x)) return NULL;
  Tensor *zero = WITHOUT_GRAD(value_of(f, tensor_zeros(0, NULL, tensor_dtype(x)), p));
  if (zero && tensor_get_c(zero, 0) != 0) return door_refuse_layout(f->op, x);
  if (inplace_self == x && is_coo(x) && !sparse_parts(x)->coalesced)
    return fail(ERR_RUNTIME, "%s_ requires coalesced input", f->op);
  if (is_coo(x)) x = t_coalesce(x);
  Tensor *values = t_sparse_values(x), *y = values ? value_of(f, values, p) : NULL;
  const Node *n = y ? y->grad_fn : NULL;
  y = t_with_values(x, y);
  return n ? node_rename(y, n->type->name) : y;
}

static intptr_t each_body(const char *op, int n, const Argument *v) {
  const Given g = {n, v};
  const Floats *p = tagged(g, 1, TAG_FLOATS);
  return (intptr_t)each_value(function_named(op), tensor_given(g, 0), p ? *p : (Floats){0, NULL});
}

static SparseBody *body_of(const char *op) {
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
    if (strcmp(bodies[i].op, op) == 0) return bodies[i].body;
  return function_named(op) ? each_body : NULL;
}

void sparse_begin(void) { door_sparse_body = body_of; }
