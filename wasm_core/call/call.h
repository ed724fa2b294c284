/* One call from the host, after its arguments were bound to a row's schema.
 *
 * Rows in ops/ turn a Call into a typed C call with the accessors below: T(0) is the first
 * argument as a Tensor, I(1) the second as an integer, and so on. */
#ifndef PG_CALL_H
#define PG_CALL_H

#include "call/row.h"
#include "ground/text.h"
#include "tensor/tensor.h"

/* Types of the host's values; see pg.h for the frame, which has four bits for a tag. Hosts read the
 * numbers by name: tag_missing. */
/* clang-format off */
#define TAGS(X)                                                                      \
  X(MISSING, missing) X(NONE, none) X(TENSOR, tensor) X(INT, int) X(FLOAT, float)    \
  X(BOOL, bool) X(STR, str) X(DTYPE, dtype) X(INTS, ints) X(FLOATS, floats)          \
  X(TENSORS, tensors) X(INDEX, index) X(OTHER, other) X(BOOLS, bools)                \
  X(COMPLEX, complex) X(GENERATOR, generator)
/* clang-format on */
typedef enum {
#define X(NAME, name) TAG_##NAME,
  TAGS(X)
#undef X
} Tag;

enum { MAX_ARGS = 16 };

typedef struct {
  int32_t n;
  const int64_t *v;
} Ints;
typedef struct {
  int32_t n;
  const double *v;
} Floats;
typedef struct {
  int32_t n;
  const int64_t *v; /* 0 or 1 each */
} Bools;
typedef struct {
  int32_t n;
  Tensor **v;
} Tensors;
/* A host number that scales a product, as a double, as an integer, and its imaginary part for
 * complex types. */
typedef struct {
  double f;
  int64_t i;
  double imag;
} Factor;

typedef struct {
  uint8_t tag;
  bool from_list; /* a list, not a tuple; for messages */
  int32_t n;      /* of a list */
  union {
    Tensor *t;
    int64_t i;
    double f;
    const char *s;
    const void *p;
  };
} Value;

typedef struct {
  uint8_t tag;
  int32_t n;     /* of a list */
  int64_t value; /* int, double bits, tensor, or the address of a list or text */
} Result;

struct Call {
  const Row *row;
  const char *name; /* the host's name: "add_" */
  int n_args;
  bool inplace;
  Value out; /* out=; TAG_MISSING without */
  Value v[MAX_ARGS];
  Result result;
};

/* --- accessors: `given` is false for None and for an absent optional argument --- */
bool arg_given(const Call *c, int k);
/* a number becomes a wrapped 0-dim tensor; NULL if not given */
Tensor *arg_tensor(Call *c, int k);
int64_t arg_int(const Call *c, int k);
double arg_float(const Call *c, int k);
complex_f64 arg_complex(const Call *c, int k);
bool arg_bool(const Call *c, int k);
DType arg_dtype(const Call *c, int k); /* DT_NONE if not given */
Ints arg_ints(const Call *c, int k);   /* n == -1 if not given; an int counts as a list of one */
Floats arg_floats(const Call *c, int k);
Bools arg_bools(const Call *c, int k);
Tensors arg_tensors(Call *c, int k);       /* NULL elements for None */
const char *arg_str(const Call *c, int k); /* NULL if not given */

/* Set when a number is read whose type its value does not show: 2.0, True, 1+0j. */
extern bool scalars_read;

int32_t arg_generator(const Call *c, int k); /* 0: the default generator */

/* The next tensor of a value: the value itself, or one in its list or subscript, skipping None;
 * NULL at the end. `at`, at first -1, is the tensor's word there. */
Tensor *value_next_listed(const Value *v, int *at);
static inline Tensor *value_next(const Value *v, int *at) {
  if (v->tag == TAG_TENSOR) return ++*at ? NULL : v->t;
  return v->tag == TAG_TENSORS || v->tag == TAG_INDEX ? value_next_listed(v, at) : NULL;
}

/* --- results --- */
void ret_tensor(Call *c, Tensor *t);                /* NULL without an error: None */
void ret_tensors(Call *c, int n, Tensor *const *t); /* a tuple */
void ret_int(Call *c, int64_t v);
void ret_float(Call *c, double v);
void ret_complex(Call *c, complex_f64 v);
void ret_bool(Call *c, bool v);
void ret_ints(Call *c, int n, const int64_t *v);
void ret_str(Call *c, const char *s);
void ret_text(Call *c, Text *t); /* adds the final NUL */
void ret_dtype(Call *c, DType d);
void ret_none(Call *c);
/* The name of a layout in messages: "Sparse". */
const char *layout_name(Layout l);
const char *layout_text(const Tensor *t);
/* The single element of t as the host's int, bool, float or complex. */
void ret_item(Call *c, const Tensor *t);

/* call_result_aside copies a result that is a list or a text, and returns NULL for others. Calls
 * within the call use the same place for their results; call_result_back restores the copy after
 * them. */
const void *call_result_aside(const Call *c);
void call_result_back(Call *c, const void *aside);

/* The number of tensors in a result. */
static inline int result_count(const Result *r) {
  return r->tag == TAG_TENSOR ? 1 : r->tag == TAG_TENSORS ? r->n : 0;
}

/* Tensor i of a result of tensors, or the only tensor. */
static inline Tensor *result_tensor(const Result *r, int i) {
  const int64_t *handles = r->tag == TAG_TENSORS ? (const int64_t *)(uintptr_t)r->value : &r->value;
  return (Tensor *)(uintptr_t)handles[i];
}

const char *row_shown(const Row *row, bool inplace); /* "linalg_inv", in a static buffer */
#endif
