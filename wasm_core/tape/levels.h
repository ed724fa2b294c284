/* The levels of vmap and of other transforms that functions run in, and the checks that hold
 * there. */
#ifndef PG_LEVELS_H
#define PG_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_LEVELS = 20 }; /* the limit of the modes of a thread */
typedef enum { RANDOM_ERROR, RANDOM_DIFFERENT, RANDOM_SAME, TRANSFORM } Randomness;

/* Sets of levels, a bit each, the outermost lowest; levels count from 1. */
static inline uint32_t bit_of(int32_t level) { return 1u << (level - 1); }
static inline int level_count(uint32_t bits) { return __builtin_popcount(bits); }
static inline int32_t highest(uint32_t bits) { return bits ? 32 - __builtin_clz(bits) : 0; }

/* The levels of the calling thread, which the host passes with its modes. */
extern uint32_t vmap_levels;
uint32_t levels_active(void); /* vmap_levels without those that were exited */
uint32_t levels_with(Randomness r);
int64_t level_size(int32_t level);
/* Takes a level for the host, counted from 1 and inside the active ones; 0 with the error set.
 * `randomness` is "error", "different" or "same"; "transform" is a level of another transform,
 * which batches nothing but has the checks of transformed functions. The host returns the level
 * with vmap_exit. */
int32_t vmap_enter(int64_t size, const char *randomness);
void vmap_exit(int32_t level);
/* Whether random numbers may be drawn now; sets the error if not. */
bool vmap_may_draw(void);
/* Whether a transformed function runs; sets the error if so. There no leaf may be made to require
 * gradients, no gradient retained, and no backward called. */
bool vmap_refuses(const char *method, const char *more);
bool vmap_refuses_leaf(void);
bool vmap_refuses_backward(void);

#endif
