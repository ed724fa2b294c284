/* Inlining attributes for functions on every op's path: most files are built for size, where the
 * compiler would make a short test a call. */
#ifndef PG_INLINE_H
#define PG_INLINE_H

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

#endif
