/* The parameters of a step in turn, and parts that several formulas share; see step.h. */
#include "ops/optim/step.h"

#include "call/schema.h"
#include "ops/op.h"

/* Adds the lists of state, which begin at argument 2, and returns the number of arguments that are
 * lists. */
static int add_states(Step *s, Call *c, bool counted) {
  const Schema *schema = schema_of_row(c->row);
  int n = 2;
  while (n < c->n_args && schema->args[n].type == ARG_TENSORS) n++;
  for (int i = 2; i < n - counted; i++) {
    Tensors list = arg_tensors(c, i);
    if (list.n <= 0) continue;
    s->place[i - 2] = s->lists.n_lists;
    lists_add(&s->lists, row_arg_name(c->row, i), list);
  }
  return n;
}

static bool check_kind(const Tensor *p, const Tensor *g, const char *optimizer,
                       unsigned properties) {
  const char *refused = NULL;
  if (properties & STEP_REAL && dtype_is_complex(tensor_dtype(p))) refused = "complex parameters";
  else if (is_sparse(g) && !(properties & (STEP_TAKES_SPARSE | STEP_ONLY_SPARSE)))
    refused = "sparse gradients";
  else if (!is_sparse(g) && properties & STEP_ONLY_SPARSE)
    refused = "dense gradients, please consider Adam instead";
  return !refused || (fail(ERR_RUNTIME, "%s does not support %s", optimizer, refused), false);
}

/* Gradients and states have the parameter's sizes, or are one number. */
static bool check_member(const Lists *l, int list, int k, bool may_lack) {
  const Tensor *p = l->lists[0][k], *t = l->lists[list][k];
  if (!t)
    return may_lack || (fail(ERR_RUNTIME, "%s: %s[%d] is None", l->op, l->names[list], k), false);
  if (may_lack || t->ndim == 0 || tensor_same_shape(t, p)) return true;
  fail(ERR_RUNTIME, "%s: %s[%d] has the shape %s, but the parameter %s", l->op, l->names[list], k,
       shape_text(t), shape_text(p));
  return false;
}

static bool check(const Lists *l, const char *optimizer, unsigned properties) {
  bool varies = properties & STEP_STATE_VARIES;
  for (int k = 0; k < l->n; k++) {
    for (int i = 0; i < l->n_lists; i++)
      if (!check_member(l, i, k, varies && i > 1)) return false;
    if (!check_kind(l->lists[0][k], l->lists[1][k], optimizer, properties)) return false;
  }
  return true;
}

Step step_begin(Call *c, const char *optimizer, unsigned properties) {
  grad_mode = recording = false;
  Step s = {.lists = {.op = c->row->name}, .k = -1, .mark = pool_mark()};
  bool counted = !(properties & STEP_UNCOUNTED);
  lists_add_parameters(&s.lists, c, NULL);
  int n = add_states(&s, c, counted);
  if (counted) s.counters = arg_tensors(c, n - 1);
  lists_drop_without_gradient(&s.lists, counted ? &s.counters : NULL);
  if (failed() || !check(&s.lists, optimizer, properties) ||
      (counted && !lists_check_steps(&s.lists, s.counters)))
    s.lists.n = 0;
  return s;
}

/* A complex tensor as pairs of real numbers. */
static Tensor *as_real(Tensor *t) {
  return t && dtype_is_complex(tensor_dtype(t)) ? t_view_as_real(t) : t;
}

bool step_next(Step *s) {
  pool_release(s->mark, NULL);
  if (failed() || ++s->k >= s->lists.n) return false;
  s->p = as_real(s->lists.lists[0][s->k]);
  s->g = as_real(t_resolve_conj(s->lists.lists[1][s->k]));
  for (int i = 0; i < MAX_STATES; i++)
    s->state[i] = s->place[i] ? as_real(s->lists.lists[s->place[i]][s->k]) : NULL;
  if (s->counters.n) s->t = lists_count_step(s->counters.v[s->k]);
  return !failed();
}

Tensor *step_direction(const Step *s, double weight_decay, bool maximize) {
  Tensor *g = maximize ? t_neg(s->g) : s->g;
  return weight_decay != 0 ? t_add_scaled(g, s->p, tensor_wrapped_f(weight_decay)) : g;
}

Tensor *step_decayed_direction(const Step *s, double lr, double weight_decay, bool maximize,
                               bool decoupled) {
  if (!decoupled) return step_direction(s, weight_decay, maximize);
  in_place_mul_f(s->p, 1 - lr * weight_decay);
  return step_direction(s, 0, maximize);
}

void step_average_squares(Tensor *v, Tensor *g, double keep) {
  in_place_addcmul(in_place_mul_f(v, keep), g, g, 1 - keep);
}

void step_moments(Tensor *m, Tensor *v, Tensor *g, double beta1, double beta2) {
  in_place_lerp(m, g, 1 - beta1);
  step_average_squares(v, g, beta2);
}

double step_number(const Tensor *state) {
  if (failed()) return 0;
  if (state && state->numel == 1 && dtype_is_float(tensor_dtype(state)))
    return tensor_get_f(state, 0);
  fail(ERR_RUNTIME, "a state of a step is not a floating tensor of one element");
  return 0;
}

void step_set_number(Tensor *state, double value) {
  if (failed() || !lists_may_write(state) || !lists_begin_write(state)) return;
  tensor_set_f(state, 0, (float)value);
  tensor_bump_version(state);
}
