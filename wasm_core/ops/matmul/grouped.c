/* grouped_mm: products of the groups into which offsets divide a dimension, for mixtures of
 * experts. */
#include "matmul_rows.h"
#include "ops/create/create.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "ops/view/view.h"

static bool check_operand(const Tensor *x, const char *name) {
  DType d = tensor_dtype(x);
  if (d != DT_F32 && !dtype_is_half(d))
    fail(ERR_RUNTIME, "Expected %s to be Float32, BFloat16 or Float16 matrix, got %s", name,
         legacy(x));
  else if (x->ndim != 2 && x->ndim != 3) fail(ERR_RUNTIME, "%s has to be 2 or 3d", name);
  return !failed();
}

static bool check_grouped(const Tensor *a, const Tensor *b, const Tensor *offs) {
  if (!check_operand(a, "mat_a") || !check_operand(b, "mat_b")) return false;
  bool whole = a->ndim == 3 && b->ndim == 3;
  if (a->sizes[a->ndim - 1] != b->sizes[b->ndim - 2])
    fail(ERR_RUNTIME, "contraction dimension of mat_a and mat_b must match");
  else if (!offs == !whole)
    fail(ERR_RUNTIME, "Have to provide offsets if there is a 2d matrix, or no offset if both "
                      "matrices are 3d");
  else if (whole && a->sizes[0] != b->sizes[0]) fail(ERR_RUNTIME, "batched dimension has to match");
  else if (offs && offs->ndim != 1) fail(ERR_RUNTIME, "offs has to be 1D");
  else if (offs && offs->dtype != DT_I32) fail(ERR_RUNTIME, "Offsets have to be int32");
  else if ((a->ndim == 3 && offs && a->sizes[0] != offs->sizes[0]) ||
           (b->ndim == 3 && offs && b->sizes[0] != offs->sizes[0]))
    fail(ERR_RUNTIME, "matrix batch sizes have to match");
  else if (a->dtype != b->dtype)
    fail(ERR_RUNTIME, "expected m1 and m2 to have the same dtype, but got: %s != %s",
         dtype_c_name(tensor_dtype(a)), dtype_c_name(tensor_dtype(b)));
  return !failed();
}

/* The part of x for group i: matrix i, or the rows or columns [begin, end) along `dim`. */
static Tensor *part_of_group(Tensor *x, int64_t i, int dim, int64_t begin, int64_t end) {
  return x->ndim == 3 ? t_select(x, 0, i) : t_slice(x, dim, begin, end, 1);
}

/* Multiplies group by group. Results behind the last group are zero. */
static Tensor *grouped_values(Tensor *a, Tensor *b, Tensor *offs) {
  if (!offs) return t_bmm(a, b);
  int64_t rows = a->sizes[a->ndim - 2], columns = b->sizes[b->ndim - 1], n = offs->sizes[0];
  bool apart = a->ndim == 2 && b->ndim == 2;
  Ints sizes = {2 + apart, (int64_t[]){n, rows, columns} + !apart};
  Tensor *y = t_zeros(sizes, tensor_dtype(a));
  if (!y || tensor_absent(y)) return y;
  for (int64_t i = 0, begin = 0, end; i < n && !failed(); i++, begin = end) {
    end = tensor_get_i(offs, i);
    Tensor *left = part_of_group(a, i, b->ndim == 2, begin, end);
    Tensor *right = part_of_group(b, i, a->ndim == 3, begin, end);
    Tensor *at = part_of_group(y, i, a->ndim == 3, begin, end);
    t_copy_(at, t_mm(left, right), false);
  }
  return y;
}

enum { SAVED_SELF, SAVED_MAT2, SAVED_OFFS };

static Tensor *multiply_groups(Tensor *a, Tensor *b, Tensor *offs);

/* y = a b, group by group:  a' = g b^T,  b' = a^T g, by the same groups. */
GRAD(GroupedMmBackward0, "self mat2 offs")
{
  Tensor *offs = saved_tensor(n, SAVED_OFFS);
  if (needs(n, 0))
    gi[0] = multiply_groups(g[0], t_transpose(saved_tensor(n, SAVED_MAT2), -2, -1), offs);
  if (needs(n, 1))
    gi[1] = multiply_groups(t_transpose(saved_tensor(n, SAVED_SELF), -2, -1), g[0], offs);
}

static Tensor *multiply_groups(Tensor *a, Tensor *b, Tensor *offs) {
  return t_grouped_mm(a, b, offs, NULL, DT_NONE);
}

Tensor *t_grouped_mm(Tensor *a, Tensor *b, Tensor *offs, Tensor *bias, DType out) {
  OP_ENTERED(t_grouped_mm, "_grouped_mm", a, b, offs, bias, out);
  if (blocked(a, b) || !check_grouped(a, b, offs)) return NULL;
  if (bias) return fail(ERR_RUNTIME, "Bias not supported yet");
  if (out != DT_NONE && out != tensor_dtype(a))
    return fail(ERR_RUNTIME, "Grouped gemm output dtype must match `mat_a` dtype");
  Node *n = node_new(&GroupedMmBackward0, 3, 0, a, b, NULL);
  if (needs(n, 0)) save(n, SAVED_MAT2, b);
  if (needs(n, 1)) save(n, SAVED_SELF, a);
  save(n, SAVED_OFFS, offs);
  return set_history(WITHOUT_GRAD(grouped_values(a, b, offs)), n);
}
