/* An estimate is right within a factor of about ten: enough to tell a call of a microsecond from
 * one that should not block other threads. */
#include "call/effort.h"

#include <math.h>

/* The units of one element, index or multiplication. */
#define HEAVY_UNITS 8.0
#define SLOW_UNITS 32.0
#define PICK_UNITS 32.0
#define MULTIPLICATION_UNITS 0.125
#define CUBIC_UNITS 16.0
/* Below this count of pairs of elements, the broadcast shape of two operands does not matter. */
#define FEW_PAIRS 32768.0

const uint8_t effort_weights[] = {
    [EFFORT_none] = 0,   [EFFORT_light] = 1, [EFFORT_heavy] = 3,   [EFFORT_slow] = 7,
    [EFFORT_region] = 3, [EFFORT_picks] = 3, [EFFORT_product] = 1, [EFFORT_convolution] = 1,
    [EFFORT_cubic] = 3,  [EFFORT_walk] = 3};

static double elements(const Tensor *t) { return t->form & FORM_ABSENT ? 0 : (double)t->numel; }

/* The elements of all tensors of an argument. */
static double elements_of(const Value *v) {
  double n = 0;
  int at = -1;
  for (Tensor *t; (t = value_next(v, &at));) n += elements(t);
  return n;
}

static bool has_tensors(const Value *v) {
  return v->tag == TAG_TENSOR || v->tag == TAG_TENSORS || v->tag == TAG_INDEX;
}

/* The elements of two tensors, each expanded to the shape of both. */
static double broadcast(const Tensor *a, const Tensor *b) {
  double n = 1;
  for (int k = 1; k <= a->ndim || k <= b->ndim; k++) {
    int64_t of_a = k <= a->ndim ? a->sizes[a->ndim - k] : 1;
    int64_t of_b = k <= b->ndim ? b->sizes[b->ndim - k] : 1;
    n *= (double)(of_a > of_b ? of_a : of_b);
  }
  return n;
}

static double product_of_sizes(const Value *v) {
  const int64_t *sizes = v->p;
  double n = 1;
  for (int i = 0; i < v->n; i++) n *= sizes[i] > 0 ? (double)sizes[i] : 1;
  return n;
}

/* The number of elements of an element-wise op, a reduction or a factory: those of its operands,
 * together if they broadcast, or of the given sizes; without either, the largest number. */
static double span(const Call *c) {
  double n = 0, sizes = 0, number = 0;
  bool has_operands = false;
  const Tensor *first = NULL;
  for (int i = 0; i < c->n_args; i++) {
    const Value *v = &c->v[i];
    has_operands = has_operands || has_tensors(v);
    if (v->tag == TAG_TENSOR) {
      if (first && elements(first) * elements(v->t) > FEW_PAIRS) {
        double both = broadcast(first, v->t);
        n = both > n ? both : n;
      }
      first = first ? first : v->t;
      if (elements(v->t) > n) n = elements(v->t);
    } else if (has_tensors(v)) {
      n += elements_of(v);
    } else if (v->tag == TAG_INTS && sizes == 0) {
      sizes = product_of_sizes(v);
    } else if (v->tag == TAG_INT && (double)v->i > number) {
      number = (double)v->i;
    }
  }
  if (sizes > n) return sizes;
  return has_operands ? n : number;
}

/* The indices of a lookup, the arguments after the table. */
static double indices(const Call *c) {
  double n = 0;
  bool table = true;
  for (int i = 0; i < c->n_args; i++) {
    if (!has_tensors(&c->v[i])) continue;
    if (!table || c->v[i].tag != TAG_TENSOR) n += elements_of(&c->v[i]);
    table = false;
  }
  return n;
}

/* A subscript without tensors selects a view, which is free until it is written to. */
static double region(const Call *c) {
  double n = elements_of(&c->v[1]);
  if (c->n_args > 2 && c->v[2].tag == TAG_TENSOR) n += elements(c->v[2].t);
  return n * PICK_UNITS;
}

/* The element counts of the two largest operands, a >= b; b is a if there is one. */
static void two_largest(const Call *c, double *a, double *b) {
  *a = *b = 0;
  int n = 0;
  for (int i = 0; i < c->n_args; i++) {
    if (!has_tensors(&c->v[i])) continue;
    double next = elements_of(&c->v[i]);
    n++;
    if (next > *a) {
      *b = *a;
      *a = next;
    } else if (next > *b) {
      *b = next;
    }
  }
  if (n == 1) *b = *a;
}

double call_effort(const Call *c) {
  double a, b, product;
  switch ((EffortKind)c->row->effort) {
    case EFFORT_none: return 0;
    case EFFORT_light: return span(c);
    case EFFORT_heavy: return span(c) * HEAVY_UNITS;
    case EFFORT_slow: return span(c) * SLOW_UNITS;
    case EFFORT_region: return region(c);
    case EFFORT_picks: return indices(c) * PICK_UNITS;
    case EFFORT_product: /* n x k by k x m: k is about the root of the larger */
      two_largest(c, &a, &b);
      product = b * sqrt(a) * MULTIPLICATION_UNITS;
      return product > a ? product : a;
    case EFFORT_convolution: /* each element of the image meets each weight */
      two_largest(c, &a, &b);
      return a * sqrt(b) * MULTIPLICATION_UNITS;
    case EFFORT_cubic: two_largest(c, &a, &b); return a * sqrt(a) * CUBIC_UNITS;
    case EFFORT_walk: return INFINITY;
  }
  return 0;
}

/* Compares the total count of elements, in tensors and sizes, with a limit for the row's effort.
 * Each limit holds for the worst case: two operands that broadcast to n * n / 4 elements, or that
 * are multiplied. */
bool call_is_small(const Call *c) {
  static const int16_t few[] = {
      [EFFORT_light] = 512,        [EFFORT_heavy] = 180,  [EFFORT_slow] = 90,
      [EFFORT_region] = 2048,      [EFFORT_picks] = 2048, [EFFORT_product] = 8192,
      [EFFORT_convolution] = 4096, [EFFORT_cubic] = 256,  [EFFORT_walk] = -1};
  double left = few[c->row->effort];
  const Value *v = c->v;
  for (int n = c->n_args; n > 0 && left >= 0; n--, v++) {
    if (v->tag == TAG_TENSOR) left -= (double)v->t->numel;
    else if (v->tag == TAG_INT) left -= v->i > 0 ? (double)v->i : 0;
    else if (v->tag == TAG_INTS) left -= product_of_sizes(v);
    else if (has_tensors(v)) return false;
  }
  return left >= 0;
}
