/* vmap: calls on tensors that stand for one slice of a batch; see tape/batched.h. */
#ifndef PG_VMAP_H
#define PG_VMAP_H

#include "call/call.h"
#include "tape/batched.h"

/* Runs a call that a level of vmap concerns: because an argument is batched, or since it draws
 * numbers. False: it concerns none, and was not run. */
bool vmap_run(Call *c);

/* t batched along a dimension at a level that is higher than those it is batched at already. */
Tensor *vmap_add(Tensor *t, int64_t dim, int32_t level);
/* The tensor whose slices at this level t stands for: the batch dimension becomes dimension
 * `dim`. One that is not batched there is expanded to `size` slices. */
Tensor *vmap_remove(Tensor *t, int32_t level, int64_t size, int64_t dim);
/* t, or in place of one that is not batched though its tangent is, a dual batched as that is. */
Tensor *vmap_dual(Tensor *t);
/* where vmap_add found the batch; 0 for results, -1 if not batched */
int32_t vmap_dim(const Tensor *t, int32_t level);
int32_t vmap_level(const Tensor *t); /* the highest level t is batched at, or 0 */
/* Row.refused: fail where vmap must not do the call. */
void vmap_refuses_item(const Call *c);
void vmap_refuses_allclose(const Call *c);
void vmap_refuses_mask(const Call *c);
void vmap_refuses_data(const Call *c);
void vmap_refuses_one_hot(const Call *c);
void vmap_refuses_geometry(const Call *c);
bool vmap_item_error(void); /* sets PyTorch's error for a batched tensor used as a number; false */

#endif
