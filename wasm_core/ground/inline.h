/* What the compiler is told of functions that every op passes: most files are built for size, where
 * a short test would be a call. */
#ifndef PG_INLINE_H
#define PG_INLINE_H

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

#endif
