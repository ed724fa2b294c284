/* vmap: calls on tensors that stand for one slice of a batch.
 *
 * A batched tensor is an alias of the first slice of its value, so that its sizes, strides and
 * dtype are those that the mapped function sees; its Meta names the value and the levels it is
 * batched at. In the value the batch dimensions stand in front, in the order of their levels,
 * whatever the nesting: so a rule handles all levels at once, and values are never batched
 * themselves. Histories are those of the values. */
#ifndef PG_VMAP_H
#define PG_VMAP_H

#include "call/call.h"

static inline bool is_batched(const Tensor *t) { return t->flags & FLAG_BATCHED; }

/* Runs a call that a level of vmap concerns: because an argument is batched, or since it draws
 * numbers. False: it concerns none, and was not run. */
bool vmap_run(Call *c);

/* The levels that the calling thread is in, a bit each, the outermost lowest: the host says so
 * with its modes. */
extern uint32_t vmap_levels;
/* A level for the host to enter, counted from 1 and inside those it is in; 0 with the error set.
 * `randomness`: "error", "different" or "same"; or "transform", a level of another transform,
 * where nothing is batched but what is refused inside transformed functions is refused. The host
 * gives it back with vmap_exit. */
int32_t vmap_enter(int64_t size, const char *randomness);
void vmap_exit(int32_t level);
/* t batched along a dimension at a level that is higher than those it is batched at already. */
Tensor *vmap_add(Tensor *t, int64_t dim, int32_t level);
/* The tensor whose slices at this level t stands for: the batch dimension becomes dimension
 * `dim`. One that is not batched there is expanded to `size` slices. */
Tensor *vmap_remove(Tensor *t, int32_t level, int64_t size, int64_t dim);
/* where vmap_add found the batch; 0 for results, -1 if not batched */
int32_t vmap_dim(const Tensor *t, int32_t level);
int32_t vmap_level(const Tensor *t); /* the highest level t is batched at, or 0 */
/* Whether numbers may be drawn now; sets the error if not. */
bool vmap_may_draw(void);
/* Whether this is a transformed function, where no leaf may be made to require gradients, no
 * gradient retained, and nothing accumulated by a backward; sets the error if so. */
bool vmap_refuses(const char *method, const char *more);
bool vmap_refuses_leaf(void);
/* Row.refused: fail where vmap must not do the call. */
void vmap_refuses_item(const Call *c);
void vmap_refuses_allclose(const Call *c);
void vmap_refuses_mask(const Call *c);
void vmap_refuses_data(const Call *c);
void vmap_refuses_one_hot(const Call *c);
void vmap_refuses_geometry(const Call *c);
bool vmap_refuses_backward(void);
bool vmap_item_error(void); /* sets PyTorch's error for a batched tensor used as a number; false */

#endif
