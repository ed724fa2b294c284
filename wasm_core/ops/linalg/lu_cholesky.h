/* Decompositions of matrices and systems solved with them, for other ops. Matrices are the last two
 * dims of batches.
 *
 * Functions of several results fill `out`, with NULL on failure. */
#ifndef PG_LU_CHOLESKY_H
#define PG_LU_CHOLESKY_H

#include "call/call.h"

void t_lu_factor(Tensor *a, Tensor *out[3]); /* LU, pivots, info */
Tensor *t_lu_permutation(Tensor *lu, Tensor *pivots);
Tensor *t_inverse(Tensor *a);
void t_inv_ex(Tensor *a, bool check, Tensor *out[2]); /* inverse, info */
Tensor *t_solve(Tensor *a, Tensor *b, bool left);
Tensor *t_solve_triangular(Tensor *a, Tensor *b, bool upper, bool left, bool unitriangular);
Tensor *t_cholesky_solve(Tensor *b, Tensor *factor, bool upper);
void t_qr(Tensor *a, const char *mode, Tensor *out[2]);
Tensor *t_svdvals(Tensor *a, const char *driver);
Tensor *t_eigvalsh(Tensor *a, const char *uplo);
/* The default relative tolerance: the machine epsilon times the greater of the sizes. */
double linalg_standard_rtol(const Tensor *a);
Tensor *linalg_rank_threshold(Tensor *a, Tensor *s, Tensor *atol, Tensor *rtol);
Tensor *t_pinv(Tensor *a, Tensor *atol, Tensor *rtol, bool hermitian); /* tolerances may be NULL */
/* The order is `name`, or `p` if that is NULL; dims.n == -1: the last two. */
Tensor *t_matrix_norm(Tensor *a, const char *name, double p, Ints dims, bool keepdim, DType dtype);

#endif
