/* Functions of matrices that are composed of the decompositions: factors by LU (lu.c), and the
 * others (matrices.c).
 *
 * Functions of several results fill `out`, with NULL on failure. */
#ifndef PG_MATRICES_H
#define PG_MATRICES_H

#include "call/call.h"

/* y, after letting go of all else that was made since the mark; first it gets its tangents. For
 * the steps of loops, and for what would be held to the end of the call. */
Tensor *alone(int32_t mark, Tensor *y);

/* --- lu.c --- */
void t_linalg_lu_factor(Tensor *a, bool pivot, Tensor *out[2]);                /* LU, pivots */
void t_linalg_lu_factor_ex(Tensor *a, bool pivot, bool check, Tensor *out[3]); /* and info */
void t_lu_with_info(Tensor *a, bool pivot, Tensor *out[3]);
void t_lu_unpack(Tensor *lu, Tensor *pivots, bool data, bool permutation,
                 Tensor *out[3]); /* P, L, U; empty if not wanted */
void t_linalg_lu(Tensor *a, bool pivot, Tensor *out[3]);
Tensor *t_linalg_lu_solve(Tensor *lu, Tensor *pivots, Tensor *b, bool left, bool adjoint);
Tensor *t_lu_solve(Tensor *b, Tensor *lu, Tensor *pivots);

/* --- matrices.c --- */
Tensor *t_matrix_rank(Tensor *a, Tensor *atol, Tensor *rtol,
                      bool hermitian); /* tolerances may be NULL */
/* solution, residuals, rank, singular values; rcond, driver may be NULL */
void t_lstsq(Tensor *a, Tensor *b, const double *rcond, const char *driver, Tensor *out[4]);
Tensor *t_cond(Tensor *a, const char *name,
               const double *p); /* the order is `name`, or *p; both NULL: 2 */
Tensor *t_matrix_exp(Tensor *a);
Tensor *t_householder_product(Tensor *a, Tensor *tau);
Tensor *t_linalg_vander(Tensor *x, const int64_t *columns); /* NULL: as many as rows */
Tensor *t_tensorinv(Tensor *a, int64_t ind);
Tensor *t_tensorsolve(Tensor *a, Tensor *b, Ints dims);         /* dims.n == -1: none is moved */
void t_svd(Tensor *a, bool some, bool vectors, Tensor *out[3]); /* U, S, V */
Tensor *t_cholesky_inverse(Tensor *factor, bool upper);
void t_triangular_solve(Tensor *b, Tensor *a, bool upper, bool transpose, bool unitriangular,
                        Tensor *out[2]);
Tensor *t_nuclear_norm(Tensor *x, Ints dims, bool keepdim); /* dims.n == -1: the last two */
Tensor *t_frobenius_norm(Tensor *x, Ints dims, bool keepdim);
void t_svd_lowrank(Tensor *a, int64_t q, int64_t niter, Tensor *m,
                   Tensor *out[3]); /* m may be NULL */
void t_pca_lowrank(Tensor *a, const int64_t *q, bool center, int64_t niter,
                   Tensor *out[3]); /* q NULL: up to 6 */

#endif
