/* Counters of fast paths, by which tests prove that the paths are taken. */
#ifndef PG_PATHS_H
#define PG_PATHS_H

#include <stdint.h>

#define PATHS(X)       \
  X(GELU_NEAR)         \
  X(GELU_SLOPE_NEAR)   \
  X(SIGMOID_NEAR)      \
  X(SOFTMAX_ROW)       \
  X(TRANSPOSE_VECTORS) \
  X(GATHER_ROWS)       \
  X(GATHER_ELEMENTS)   \
  X(FOLD_ROWS)         \
  X(SUM_BLOCKS)        \
  X(SUM_COLUMNS)       \
  X(SOFTMAX_KEPT)      \
  X(LAYER_COLUMNS)     \
  X(CONV_BOXES)        \
  X(CONV_TILES)        \
  X(CONV_LINES)        \
  X(CONV_MASKED)       \
  X(CONV_PRODUCTS)     \
  X(LAYER_ROWS)        \
  X(EACH_PLAIN)        \
  X(EACH_SIMPLE)       \
  X(EACH_WALKED)       \
  X(EACH_ROWS)         \
  X(EACH_SPLAT)        \
  X(GRADIENT_FUSED)    \
  X(GEMM_TINY)         \
  X(GEMM_VECTOR)       \
  X(GEMM_PACKED)       \
  X(GEMM_BATCHED)      \
  X(LINEAR_PLAIN)      \
  X(SORT_RADIX)        \
  X(STEP_FLAT)

#define PATH_ID(name) PATH_##name,
enum { PATHS(PATH_ID) PATH_COUNT };
#undef PATH_ID

extern uint32_t paths_taken[PATH_COUNT];
#define TOOK(name) (paths_taken[PATH_##name]++)
/* The number of times a path was taken since the start; -1 with an error for an unknown name. */
int64_t path_count(const char *name);

#endif
