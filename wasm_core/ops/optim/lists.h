/* Lists of tensors side by side: parameters, gradients, and the lists of state. */
#ifndef PG_LISTS_H
#define PG_LISTS_H

#include "call/call.h"
#include "tape/graph.h"
#include "tensor/iter.h"

enum { MAX_LISTS = 6 };

/* The k-th tensors of all lists belong together; list 0 has the parameters. */
typedef struct {
  const char *op;
  int n, n_lists;
  bool finds_gradients; /* none were given: list 1 has the parameters' own, some of them NULL */
  const char *names[MAX_LISTS];
  Tensor **lists[MAX_LISTS];
  Loop *const *loops; /* by the parameter's dtype */
} Lists;

bool lists_add(Lists *l, const char *name, Tensors ts);
/* Each parameter's own gradient, or NULL. Sparse ones are refused with this text, unless it is
 * NULL. */
Tensors lists_gradients(Tensors params, const char *refusal);
/* Adds the first two lists: parameters, and the given gradients or, if there are none, the
 * parameters' own. */
void lists_add_parameters(Lists *l, Call *c, const char *refusal);
/* Drops the parameters without a gradient, if gradients were looked for; `more` is a list beside
 * l's. */
void lists_drop_without_gradient(Lists *l, Tensors *more);
/* Whether all tensors fit, and all but the gradients (list 1) may be written. Nothing is recorded
 * here. */
bool lists_check(const Lists *l);
/* Takes all the memory that the writes need, so that a lack of memory changes nothing. */
bool lists_begin_writes(const Lists *l);
/* Runs the loop on the k-th tensors. */
void lists_run(const Lists *l, int k, const void *ctx);

/* Counters of steps: one number for each parameter, of a dtype of its own. */
bool lists_check_steps(const Lists *l, Tensors steps);
/* The number of the step that begins. */
double lists_count_step(Tensor *step);

/* Checks of every tensor in a step are inlined, because most tensors are small. */
static inline bool lists_may_write(const Tensor *t) {
  return !(t->flags & FLAG_INFERENCE) || history_check_inference_write(t);
}
static inline bool lists_begin_write(Tensor *t) {
  return t->storage->bytes->refs == 1 || tensor_write_begin(t, false);
}

/* A Loop over N operands of type T. Its body, an inline function with strides in elements, is
 * compiled twice: for contiguous operands, where it becomes vector code, and for others. */
#define STEP_LOOP(NAME, T, N, BODY, ...)                                      \
  static void NAME(char **q, const int64_t *st, int64_t n, const void *ctx) { \
    int64_t s[N];                                                             \
    T *t[N];                                                                  \
    bool flat = true;                                                         \
    for (int i = 0; i < N; i++) {                                             \
      t[i] = (T *)(void *)q[i];                                               \
      s[i] = st[i] / (int64_t)sizeof(T);                                      \
      flat = flat && s[i] == 1;                                               \
    }                                                                         \
    static const int64_t ones[MAX_LISTS] = {1, 1, 1, 1, 1, 1};                \
    if (flat) BODY(t, ones, (ptrdiff_t)n, ctx, __VA_ARGS__);                  \
    else BODY(t, s, (ptrdiff_t)n, ctx, __VA_ARGS__);                          \
  }

#endif
