/* Decompositions of single matrices in columns, of double and of complex_f64.
 *
 * A matrix of m rows lies in columns: element (i, j) at a[i + j * m]. Transposes in these comments
 * are conjugate ones. Functions work in place unless they say otherwise. Each type has one table of
 * functions; pointers are to numbers of that type. */
#ifndef PG_FACTORS_H
#define PG_FACTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "ground/dtype.h"

typedef struct {
  /* P^T A = L U by elimination with the largest number of a column as its pivot: L below the
   * diagonal, with ones on it, U above. pivots[k] is the row that row k was exchanged with. Gives
   * 1 + the first column without a pivot, 0 if none. to_float: every step is rounded to float.
   * fused: multipliers are quotients, and each real product is subtracted with one rounding, at
   * some ten times the cost. */
  int32_t (*eliminate)(void *a, int32_t *pivots, int64_t m, int64_t n, bool to_float, bool fused);
  /* Applies such exchanges to a column. */
  void (*exchange_rows)(void *y, const int32_t *pivots, int64_t n);
  /* det A from these factors, its sign, and log |det A|. */
  void (*determinant)(const void *lu, const int32_t *pivots, int64_t n, bool to_float, void *det,
                      void *sign, double *log);
  /* Solves A y = b for a column: A triangular, with ones on the diagonal if unit. */
  void (*substitute)(const void *a, void *y, int64_t n, bool upper, bool unit);
  /* A = L L^T: L in place of the lower triangle, which is read, zeros above. Gives the order of the
   * first minor that is not positive, 0 if none. */
  int32_t (*cholesky)(void *a, int64_t n);
  /* P A P^T = L D L^T of the lower triangle of A, which need not be definite: Hermitian or, if not
   * `hermitian`, symmetric, for which ^T is the plain transpose (Bunch and Kaufman, 1977). D is of
   * blocks of one and two. In place, as LAPACK's hetrf and sytrf leave it: D on the diagonal, below
   * it the lower corner of a block of two, L elsewhere. The pivot of a block of one is 1 + the row
   * that was exchanged with its own; a block of two has twice -(1 + the row that was with its
   * second). Gives 1 + the first block that is 0, 0 if none. */
  int32_t (*ldl)(void *a, int32_t *pivots, int64_t n, bool hermitian);
  /* Solves A y = b for a column with these factors. */
  void (*ldl_solve)(const void *ld, const int32_t *pivots, void *y, int64_t n, bool hermitian);
  /* A = Q R, where Q is the product of reflections 1 - tau v v^T, one for each of the lesser of m
   * and n: R in place of the upper triangle, below it each v less its head, which is 1. */
  void (*geqrf)(void *a, int64_t m, int64_t n, void *taus);
  /* QR with zeros below R; q (m x width): the first columns of Q, unless NULL. */
  void (*qr)(void *a, int64_t m, int64_t n, void *q, int64_t width, void *taus);
  /* A = U S V^T, m >= n: s in descending order, u (m x width); v (n x n) is the identity before. */
  void (*svd)(void *a, double *s, void *u, void *v, int64_t m, int64_t n, int64_t width);
  /* A = V diag(values) V^T of the upper or lower triangle, the least value first; V in place, if
   * wanted. NaN if the iteration does not converge. beside: n; room: 2 n, and n x n more for
   * vectors. */
  void (*eigh)(void *a, double *values, int64_t n, bool upper, bool vectors, double *beside,
               void *room);
  /* A V = V diag(values), as LAPACK normalizes V: columns of length 1 whose largest number is real.
   * vectors may be NULL. False if the iteration does not converge. room: n x n + 3 n; scales: n. */
  bool (*eig)(void *a, complex_f64 *values, complex_f64 *vectors, int64_t n, void *room,
              double *scales);
} Factorizations;

extern const Factorizations factorizations_f64, factorizations_c128;

#endif
