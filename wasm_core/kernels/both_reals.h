/* Includes BODY twice, for float and for double: the part in terms of REAL, VEC and LANES of a file
 * that includes itself. Names that NAME makes end in SUFFIX. */
#ifndef PG_BOTH_REALS_H
#define PG_BOTH_REALS_H

#define LOAD CAT(VEC, load)
#define STORE CAT(VEC, store)
#define SPLAT CAT(VEC, splat)
#define TRANSPOSE CAT(VEC, transpose)

#define REAL float
#define VEC f32x4
#define LANES 4
#define SUFFIX f32
#include BODY
#undef REAL
#undef VEC
#undef LANES
#undef SUFFIX

#define REAL double
#define VEC f64x2
#define LANES 2
#define SUFFIX f64
#include BODY

#endif
