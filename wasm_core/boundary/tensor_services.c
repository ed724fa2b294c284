/* Services for single tensors: type names, layout, elements for the host. */
#include <math.h>
#include <string.h>

#include "boundary/services.h"
#include "ops/op.h"
#include "tensor/iter.h"

void op_is_contiguous(Call *c) {
  MemoryFormat format = copy_format_named(arg_str(c, 1), FORMAT_CONTIGUOUS);
  ret_bool(c, tensor_has_format(arg_tensor(c, 0), format));
}

void op_set_default_dtype(DType d) {
  if (!dtype_is_float(d)) {
    fail(ERR_TYPE, "only floating-point types are supported as the default type");
    return;
  }
  dtype_set_default(d);
}

/* ------------------------------------------------------------ text */

/* The legacy name of t's type, such as torch.FloatTensor. */
void op_type(Call *c) {
  char *text = scratch_alloc(32);
  if (!text) return;
  strcpy(text, tensor_absent(arg_tensor(c, 0)) ? "torch.meta." : "torch.");
  strcat(strcat(text, dtype_info[arg_tensor(c, 0)->dtype].legacy), "Tensor");
  ret_str(c, text);
}

/* ------------------------------------------------------------ elements for the host */

/* Hosts differ in the bits of NaNs, so the engine returns one pattern. */
#define CANONICAL_LOOP(FN, T, IS_NAN, QUIET)                \
  static void FN(char **p, const int64_t *st, int64_t n,    \
                 __attribute__((unused)) const void *ctx) { \
    for (int64_t i = 0; i < n; i++) {                       \
      T *x = (T *)(void *)(p[0] + i * st[0]);               \
      if (IS_NAN) *x = QUIET;                               \
    }                                                       \
  }
CANONICAL_LOOP(canonical_f32, float, *x != *x, NAN)
CANONICAL_LOOP(canonical_f64, double, *x != *x, (double)NAN)
CANONICAL_LOOP(canonical_f16, Half, (x->bits & 0x7fff) > 0x7c00, (Half){0x7e00})
CANONICAL_LOOP(canonical_bf16, BHalf, (x->bits & 0x7fff) > 0x7f80, (BHalf){0x7fc0})

static void canonicalise(Tensor *t) {
  static Loop *const loops[DT_COUNT] = {[DT_F32] = canonical_f32,
                                        [DT_F64] = canonical_f64,
                                        [DT_F16] = canonical_f16,
                                        [DT_BF16] = canonical_bf16};
  if (blocked(t)) return;
  if (dtype_is_complex(tensor_dtype(t)))
    t = WITHOUT_GRAD(t_view_as_real(t->flags & FLAG_CONJ ? t_conj(t) : t));
  Loop *loop = t ? loops[t->dtype] : NULL;
  if (loop) iter_over(1, &t, loop, NULL);
}

static bool check_elements(const Tensor *t) {
  return !tensor_absent(t) || fail(ERR_NOT_IMPLEMENTED, "Cannot copy out of meta tensor; no data!");
}

Tensor *op_elements(Tensor *t) {
  if (!check_elements(t)) return NULL;
  const DType dtype = tensor_dtype(t);
  bool copied = dtype_is_inexact(dtype) || dtype == DT_BOOL || t->flags & FLAGS_LAZY;
  Tensor *y = WITHOUT_GRAD(copied ? t_clone_format(t, FORMAT_CONTIGUOUS) : t_contiguous(t));
  canonicalise(y);
  return y;
}

/* An alias of t whose memory the host shares until it ends the export. */
Tensor *op_export(Tensor *t) {
  if (!check_elements(t)) return NULL;
  Tensor *y = op_data(t);
  if (!y || !tensor_export(y)) return NULL;
  tensor_retain(y); /* the export's reference */
  if (!y->storage->retyped) canonicalise(y);
  return y;
}
