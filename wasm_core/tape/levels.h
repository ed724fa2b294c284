/* The levels of vmap and of other transforms that functions run in, and what is refused there. */
#ifndef PG_LEVELS_H
#define PG_LEVELS_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_LEVELS = 20 }; /* what the modes of a thread have room for */
typedef enum { RANDOM_ERROR, RANDOM_DIFFERENT, RANDOM_SAME, TRANSFORM } Randomness;

/* Sets of levels, a bit each, the outermost lowest; levels count from 1. */
static inline uint32_t bit_of(int32_t level) { return 1u << (level - 1); }
static inline int level_count(uint32_t bits) { return __builtin_popcount(bits); }
static inline int32_t highest(uint32_t bits) { return bits ? 32 - __builtin_clz(bits) : 0; }

/* The levels that the calling thread is in: the host says so with its modes. */
extern uint32_t vmap_levels;
uint32_t levels_active(void); /* those of them that are entered */
uint32_t levels_with(Randomness r);
int64_t level_size(int32_t level);
/* A level for the host to enter, counted from 1 and inside those it is in; 0 with the error set.
 * `randomness`: "error", "different" or "same"; or "transform", a level of another transform,
 * where nothing is batched but what is refused inside transformed functions is refused. The host
 * gives it back with vmap_exit. */
int32_t vmap_enter(int64_t size, const char *randomness);
void vmap_exit(int32_t level);
/* Whether numbers may be drawn now; sets the error if not. */
bool vmap_may_draw(void);
/* Whether this is a transformed function, where no leaf may be made to require gradients, no
 * gradient retained, and nothing accumulated by a backward; sets the error if so. */
bool vmap_refuses(const char *method, const char *more);
bool vmap_refuses_leaf(void);
bool vmap_refuses_backward(void);

#endif
