/* Einstein summation: an equation parsed, its operands brought to one order of dimensions, then
 * contracted.
 *
 * Every operand becomes a view with a dimension for each label: those of the output in its
 * order, then those summed over; a label that it lacks is a dimension of size one. Operands are
 * contracted from the left, two at a time: a label that no later operand has is summed away as
 * soon as both have it, in a batch of matrix products. Labels are letters; an ellipsis stands
 * for further dimensions, aligned from the last. */
#include <string.h>

#include "ground/memory.h"
#include "matmul_rows.h"
#include "ops/elementwise/elementwise.h"
#include "ops/op.h"
#include "ops/view/shape.h"

enum { LETTERS = 52, ELLIPSIS = LETTERS, MAX_LABELS = 128 };

/* The subscripts of one operand, or of the output. */
typedef struct {
  int n;
  bool ellipsis;
  uint8_t labels[MAX_LABELS]; /* A-Z, a-z, ELLIPSIS */
} Term;

typedef struct {
  const char *text;
  int n_terms;
  Term *terms; /* one for each operand */
  Term out;
  int count[LETTERS];     /* the number of occurrences in operands */
  int ellipsis_dims;      /* the most that an operand's ellipsis covers */
  int at[LETTERS + 1];    /* a label's first dimension in the common order, -1 if it has none */
  int n_out, n_all;       /* dimensions of the output; of the common order */
  int64_t sizes[MAX_DIM]; /* in the common order, after broadcasting */
} Plan;

static char letter(int label) { return (char)(label < 26 ? 'A' + label : 'a' + label - 26); }
static int label_of(char c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

/* ------------------------------------------------------------ parsing */

static bool add_label(Term *t, int label) {
  if (t->n == MAX_LABELS)
    return fail(ERR_RUNTIME, "einsum(): more than %d subscripts for one operand", MAX_LABELS),
           false;
  t->labels[t->n++] = (uint8_t)label;
  return true;
}

static bool dot_error(const char *problem_of_operand, int operand, const char *problem_of_output) {
  if (operand >= 0)
    fail(ERR_RUNTIME, "einsum(): found '.' for operand %d %s", operand, problem_of_operand);
  else fail(ERR_RUNTIME, "einsum(): found '.' for output %s", problem_of_output);
  return false;
}

/* Reads the character at *at into t: a letter, or the first dot of an ellipsis, whose others are
 * skipped. operand is -1 for the output. */
static bool read_subscript(const Plan *p, int *at, Term *t, int operand) {
  const char *s = p->text + *at;
  if (*s != '.') {
    int label = label_of(*s);
    if (label >= 0) return add_label(t, label);
    fail(ERR_RUNTIME,
         "einsum(): invalid subscript given at index %d in the equation string, subscripts must be "
         "in [a-zA-Z]",
         *at);
    return false;
  }
  if (t->ellipsis)
    return dot_error("for which an ellipsis was already found", operand,
                     "but an ellipsis (...) was already found");
  if (s[1] != '.' || s[2] != '.')
    return dot_error("that is not part of any ellipsis", operand,
                     "that is not part of any ellipsis (...)");
  *at += 2;
  t->ellipsis = true;
  return add_label(t, ELLIPSIS);
}

/* Reads the terms before the arrow; leaves *at on the arrow or the end. */
static bool read_operands(Plan *p, int *at) {
  int operand = 0;
  for (; p->text[*at] && !(p->text[*at] == '-' && p->text[*at + 1] == '>'); ++*at) {
    char c = p->text[*at];
    if (c == ' ') continue;
    if (c == ',') {
      if (++operand == p->n_terms)
        return fail(ERR_RUNTIME,
                    "einsum(): fewer operands were provided than specified in the equation"),
               false;
    } else if (!read_subscript(p, at, &p->terms[operand], operand)) {
      return false;
    }
  }
  if (operand == p->n_terms - 1) return true;
  fail(ERR_RUNTIME, "einsum(): more operands were provided than specified in the equation");
  return false;
}

/* Counts labels, and checks each operand's rank. */
static bool count_labels(Plan *p, Tensors ts) {
  for (int k = 0; k < p->n_terms; k++) {
    Term *t = &p->terms[k];
    int letters = t->n - t->ellipsis, ndim = ts.v[k]->ndim;
    if (t->ellipsis ? letters > ndim : letters != ndim) {
      fail(ERR_RUNTIME,
           "einsum(): the number of subscripts in the equation (%d) %s the number of dimensions "
           "(%d) for operand %d%s",
           letters, t->ellipsis ? "is more than" : "does not match", ndim, k,
           t->ellipsis ? "" : " and no ellipsis was given");
      return false;
    }
    if (t->ellipsis && ndim - letters > p->ellipsis_dims) p->ellipsis_dims = ndim - letters;
    for (int i = 0; i < t->n; i++)
      if (t->labels[i] != ELLIPSIS) p->count[t->labels[i]]++;
  }
  return true;
}

/* Without an arrow: the ellipsis, then the labels that occur once, in the order of the alphabet. */
static void implied_output(Plan *p) {
  for (int k = 0; k < p->n_terms; k++) p->out.ellipsis = p->out.ellipsis || p->terms[k].ellipsis;
  if (p->out.ellipsis) add_label(&p->out, ELLIPSIS);
  for (int label = 0; label < LETTERS; label++)
    if (p->count[label] == 1) add_label(&p->out, label);
}

static bool read_output(Plan *p, int at) {
  for (at += 2; p->text[at]; at++) {
    if (p->text[at] == ' ') continue;
    if (!read_subscript(p, &at, &p->out, -1)) return false;
    int label = p->out.labels[p->out.n - 1];
    if (label == ELLIPSIS) continue;
    for (int i = 0; i + 1 < p->out.n; i++)
      if (p->out.labels[i] == label)
        return fail(ERR_RUNTIME,
                    "einsum(): output subscript %c appears more than once in the output",
                    letter(label)),
               false;
    if (!p->count[label]) {
      fail(ERR_RUNTIME,
           "einsum(): output subscript %c does not appear in the equation for any input operand",
           letter(label));
      return false;
    }
  }
  return true;
}

/* Gives each label its place in the common order. */
static bool place_labels(Plan *p) {
  for (int i = 0; i <= LETTERS; i++) p->at[i] = -1;
  int n = 0;
  for (int i = 0; i < p->out.n; i++) {
    p->at[p->out.labels[i]] = n;
    n += p->out.labels[i] == ELLIPSIS ? p->ellipsis_dims : 1;
  }
  p->n_out = n;
  if (p->at[ELLIPSIS] < 0) {
    p->at[ELLIPSIS] = n;
    n += p->ellipsis_dims;
  }
  for (int label = 0; label < LETTERS; label++)
    if (p->count[label] && p->at[label] < 0) p->at[label] = n++;
  p->n_all = n;
  if (n > MAX_DIM)
    return fail(ERR_RUNTIME, "tensors have at most %d dimensions, but got %d", MAX_DIM, n), false;
  for (int i = 0; i < n; i++) p->sizes[i] = 1;
  return true;
}

static bool parse(Plan *p, Tensors ts) {
  int at = 0;
  if (!read_operands(p, &at) || !count_labels(p, ts)) return false;
  if (!p->text[at]) implied_output(p);
  else if (!read_output(p, at)) return false;
  return place_labels(p) && !failed();
}

/* ------------------------------------------------------------ operands in the common order */

static bool merge_size(int64_t *size, int64_t own) {
  if (*size != 1 && own != 1 && *size != own) return false;
  if (own != 1) *size = own;
  return true;
}

static bool check_letter(Plan *p, int label, int64_t own, int64_t *seen, int operand) {
  int64_t *size = &p->sizes[p->at[label]];
  if (*seen >= 0 && *seen != own)
    return fail(ERR_RUNTIME,
                "einsum(): subscript %c is repeated for operand %d but the sizes don't match, %lld "
                "!= %lld",
                letter(label), operand, (Shown)own, (Shown)*seen),
           false;
  *seen = own;
  if (merge_size(size, own)) return true;
  return fail(ERR_RUNTIME,
              "einsum(): subscript %c has size %lld for operand %d which does not broadcast with "
              "previously seen size %lld",
              letter(label), (Shown)own, operand, (Shown)*size),
         false;
}

/* Checks a dim that an operand's ellipsis covers; `after` such dims follow it. */
static bool check_hidden(Plan *p, int after, int dim, int64_t own, int operand) {
  int64_t *size = &p->sizes[p->at[ELLIPSIS] + p->ellipsis_dims - 1 - after];
  if (merge_size(size, own)) return true;
  return fail(
             ERR_RUNTIME,
             "einsum(): dimension %d covered by ellipsis in operand %dhas size %lld which does not "
             "broadcast with previously seen ellipsis with size %lld for the respective dimension",
             dim, operand, (Shown)own, (Shown)*size),
         false;
}

static bool check_sizes(Plan *p, const Tensor *x, int operand) {
  const Term *t = &p->terms[operand];
  int hidden = x->ndim - (t->n - t->ellipsis);
  int64_t seen[LETTERS];
  memset(seen, -1, sizeof seen);
  for (int i = 0, dim = 0; i < t->n; i++) {
    int label = t->labels[i];
    if (label != ELLIPSIS && !check_letter(p, label, x->sizes[dim++], &seen[label], operand))
      return false;
    for (int after = hidden - 1; label == ELLIPSIS && after >= 0; after--, dim++)
      if (!check_hidden(p, after, dim, x->sizes[dim], operand)) return false;
  }
  return true;
}

/* x with the dims of a repeated label replaced by their diagonal, at the place of the first. */
static Tensor *take_diagonal(Tensor *x, int first, int second) {
  return t_movedim(t_diagonal(x, 0, first, second), ONE_DIM(-1), ONE_DIM(first));
}

/* Operand k as a view with the common order of dimensions. */
static Tensor *arrange(Plan *p, Tensor *x, int operand) {
  const Term *t = &p->terms[operand];
  int from[MAX_DIM]; /* the present dim of each common dimension */
  int hidden = x->ndim - (t->n - t->ellipsis), dim = 0;
  for (int i = 0; i < p->n_all; i++) from[i] = -1;
  for (int i = 0; i < t->n && x; i++) {
    int label = t->labels[i];
    if (label == ELLIPSIS)
      for (int k = 0; k < hidden; k++) from[p->at[label] + p->ellipsis_dims - hidden + k] = dim++;
    else if (from[p->at[label]] >= 0) x = take_diagonal(x, from[p->at[label]], dim);
    else from[p->at[label]] = dim++;
  }
  int64_t order[MAX_DIM];
  for (int i = 0; i < p->n_all; i++) {
    if (from[i] < 0) {
      from[i] = dim++;
      x = t_unsqueeze(x, from[i]);
    }
    order[i] = from[i];
  }
  return t_permute(x, (Ints){p->n_all, order});
}

/* ------------------------------------------------------------ contraction */

/* A group of dims of the common order, and its number of elements. */
typedef struct {
  int n;
  int64_t dims[MAX_DIM], size;
} Group;

static void put(Group *g, int dim, int64_t size) {
  g->dims[g->n++] = dim;
  g->size *= size;
}

static Ints join_groups(const Group *const *groups, int64_t *out) {
  int n = 0;
  for (int k = 0; k < 4; k++)
    for (int i = 0; i < groups[k]->n; i++) out[n++] = groups[k]->dims[i];
  return (Ints){n, out};
}

static Tensor *sum_marked(Tensor *x, const bool *marked) {
  int64_t dims[MAX_DIM];
  int n = 0;
  if (blocked(x)) return NULL;
  for (int i = 0; i < x->ndim; i++)
    if (marked[i]) dims[n++] = i;
  return n ? t_sum(x, (Ints){n, dims}, true, DT_NONE) : x;
}

/* The product of a and b, summed over `sum` with the dims kept: both have more than one element
 * along them. */
static Tensor *sum_of_products(Tensor *a, Tensor *b, const bool *sum) {
  if (blocked(a, b)) return NULL;
  Group both = {.size = 1}, left = {.size = 1}, summed = {.size = 1}, right = {.size = 1};
  for (int i = 0; i < a->ndim; i++) {
    bool in_a = a->sizes[i] != 1, in_b = b->sizes[i] != 1;
    if (sum[i]) put(&summed, i, a->sizes[i]);
    else if (in_a && in_b) put(&both, i, a->sizes[i]);
    else if (in_a) put(&left, i, a->sizes[i]);
    else put(&right, i, b->sizes[i]);
  }
  /* Like PyTorch, exchanges the operands if all of b's own dims come before a's, so that the result
   * is in order. */
  if (left.n && right.n && right.dims[right.n - 1] < left.dims[0])
    return sum_of_products(b, a, sum);
  int64_t order[MAX_DIM], sizes[MAX_DIM], back[MAX_DIM];
  Tensor *x = t_permute(a,
                        join_groups((const Group *const[]){&both, &left, &summed, &right}, order));
  x = t_reshape(x, 3, (int64_t[]){both.size, left.size, summed.size});
  Tensor *y = t_permute(b,
                        join_groups((const Group *const[]){&both, &summed, &right, &left}, order));
  y = t_reshape(y, 3, (int64_t[]){both.size, summed.size, right.size});
  Ints out = join_groups((const Group *const[]){&both, &left, &summed, &right}, order);
  for (int i = 0; i < out.n; i++) {
    int64_t d = order[i];
    sizes[i] = sum[d] ? 1 : a->sizes[d] != 1 ? a->sizes[d] : b->sizes[d];
    back[d] = i;
  }
  return t_permute(t_view(t_bmm(x, y), out.n, sizes), (Ints){out.n, back});
}

/* Multiplies a by b, and sums away the labels that no later operand has. left[d]: the number of
 * operands still to be contracted that have more than one element along d. */
static Tensor *contract(const Plan *p, Tensor *a, Tensor *b, int *left) {
  bool alone_a[MAX_DIM] = {false}, alone_b[MAX_DIM] = {false}, sum[MAX_DIM] = {false}, any = false;
  if (blocked(a, b)) return NULL;
  for (int d = p->n_out; d < p->n_all; d++) {
    bool in_a = a->sizes[d] != 1, in_b = b->sizes[d] != 1;
    if (in_a && in_b) {
      if (--left[d] > 1) continue;
      sum[d] = any = true;
      left[d] = 0;
    } else if (left[d] == 1 && (in_a || in_b)) {
      (in_a ? alone_a : alone_b)[d] = true;
      left[d] = 0;
    }
  }
  a = sum_marked(a, alone_a);
  b = sum_marked(b, alone_b);
  return any ? sum_of_products(a, b, sum) : t_mul(a, b);
}

static Tensor *finish(const Plan *p, Tensor *x) {
  if (blocked(x) || p->n_out == p->n_all) return x;
  bool rest = false;
  int64_t dims[MAX_DIM];
  for (int d = p->n_out; d < p->n_all; d++) {
    rest = rest || x->sizes[d] != 1;
    dims[d - p->n_out] = d;
  }
  if (rest || p->n_terms == 1) return t_sum(x, (Ints){p->n_all - p->n_out, dims}, false, DT_NONE);
  return t_view(x, p->n_out, x->sizes);
}

Tensor *t_einsum(const char *equation, Tensors ts) {
  OP_ENTERED(t_einsum, "einsum", equation, ts);
  if (failed() || !equation) return NULL;
  if (ts.n < 1) return fail(ERR_RUNTIME, "einsum(): must provide at least one operand");
  for (int k = 0; k < ts.n; k++)
    if (!ts.v[k])
      return fail(
          ERR_TYPE,
          "einsum(): argument 'operands' must be tuple of Tensors, but found None at position %d",
          k);
  Plan *p = scratch_alloc(sizeof *p);
  Tensor **x = scratch_array(ts.n, sizeof *x);
  Term *terms = scratch_array(ts.n, sizeof *terms);
  if (!p || !x || !terms) return NULL;
  memset(p, 0, sizeof *p);
  memset(terms, 0, (size_t)ts.n * sizeof *terms);
  p->text = equation;
  p->n_terms = ts.n;
  p->terms = terms;
  if (!parse(p, ts)) return NULL;
  for (int k = 0; k < ts.n; k++)
    if (!check_sizes(p, ts.v[k], k)) return NULL;
  int left[MAX_DIM] = {0};
  for (int k = 0; k < ts.n; k++) {
    x[k] = arrange(p, ts.v[k], k);
    if (!x[k]) return NULL;
    for (int d = 0; d < p->n_all; d++) left[d] += x[k]->sizes[d] != 1;
  }
  Tensor *y = x[0];
  for (int k = 1; k < ts.n; k++) y = contract(p, y, x[k], left);
  return finish(p, y);
}
