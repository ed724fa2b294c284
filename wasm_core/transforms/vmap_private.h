/* Declarations that the files of vmap share. Each may use those before it: batch.c (batched
 * tensors), vmap_folds.c and vmap_rules.c (calls done at once), vmap.c (the loop over slices). */
#ifndef PG_VMAP_PRIVATE_H
#define PG_VMAP_PRIVATE_H

#include "ops/op.h"
#include "ops/run.h"
#include "transforms/vmap.h"

/* The batch of a call. */
typedef struct {
  uint32_t levels; /* one bit for each level */
  int n;           /* the number of levels */
  int64_t sizes[32], total;
} Batch;

typedef Tensor *Change(Tensor *t, const void *context);
/* The value with each of its tensors replaced, also those in lists and subscripts. */
Value value_map(Value v, Change *change, const void *context);
Tensor *value_first(const Value *v);   /* its first tensor, or NULL */
bool value_is_batched(const Value *v); /* whether one of its tensors is */

/* tangent_slices_aligned and tangent_slices_at (walk/tangent.h) for a batch. */
Tensor *batch_align(const Batch *b, Tensor *t, int rank);
Tensor *batch_full(const Batch *b, Tensor *t);

Batch batch_at(uint32_t bits);

/* The call as it is, ready to have its arguments replaced. */
static inline void copy_call(const Call *c, Call *inner) {
  *inner = *c;
  inner->result = (Result){.tag = TAG_NONE};
}

/* Does a call of a row with a dimension for batches at once, or declines as any rule. */
bool rule_folds(const Call *c, const Batch *b, Call *inner);
bool rule_filters(const Call *c, const Batch *b, Call *inner);
/* Does the call at once on values, leaving the result in `inner`; false if it has no such rule. */
bool rule_run(const Call *c, const Batch *b, Call *inner);

#endif
