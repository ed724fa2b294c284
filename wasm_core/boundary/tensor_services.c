/* What a host asks of single tensors besides maths: text, layout, the address of their elements. */
#include <math.h>
#include <string.h>

#include "boundary/services.h"
#include "ops/op.h"
#include "tensor/iter.h"

void op_is_contiguous(Call *c) {
  MemoryFormat format = format_named(arg_str(c, 1), FORMAT_CONTIGUOUS);
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
  strcat(strcat(strcpy(text, "torch."), dtype_info[arg_tensor(c, 0)->dtype].legacy), "Tensor");
  ret_str(c, text);
}

/* ------------------------------------------------------------ elements for the host */

/* NaNs differ between hosts in their bits alone, so one pattern leaves the engine; and 1 is what
 * is true. */
static void canonicalise(char **p, const int64_t *strides, int64_t n, const void *dtype){
    DISPATCH_FLOAT(*(const DType *)dtype,
                   {
                     const T quiet = (T)NAN;
                     for (int64_t i = 0; i < n; i++) {
                       T *x = (T *)(void *)(p[0] + i * strides[0]);
                       if (*x != *x) *x = quiet;
                     }
                   })}

Tensor *op_elements(Tensor *t) {
  const DType dtype = (DType)t->dtype;
  Tensor *y = WITHOUT_GRAD(dtype_is_float(dtype) || dtype == DT_BOOL
                               ? t_clone_format(t, FORMAT_CONTIGUOUS)
                               : t_contiguous(t));
  if (y && dtype_is_float(dtype)) iterate(1, &y, canonicalise, &dtype);
  return y;
}

/* An alias of t, whose memory is the host's too until it ends the export. */
Tensor *op_export(Tensor *t) {
  Tensor *y = op_data(t);
  if (!y || !tensor_export(y)) return NULL;
  tensor_retain(y); /* until then */
  const DType dtype = (DType)y->dtype;
  iterate(1, &y, canonicalise, &dtype);
  return y;
}
