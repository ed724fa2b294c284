/* What a host asks of single tensors besides maths: text, layout, the address of their elements. */
#include <math.h>
#include <string.h>

#include "boundary/services.h"
#include "ground/number.h"
#include "ops/op.h"
#include "report/print.h"
#include "tape/forward.h"
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

static PrintOptions options = {
    .precision = 4, .sci_mode = -1, .threshold = 1000, .linewidth = 80, .edgeitems = 3};

void op_printoptions(Call *c) {
  options = (PrintOptions){.precision = (int32_t)arg_int(c, 0),
                           .threshold = arg_float(c, 1),
                           .edgeitems = arg_int(c, 2),
                           .linewidth = arg_float(c, 3),
                           .sci_mode = (int32_t)arg_int(c, 4)};
}

/* t as PyTorch prints it, in scratch; with the text of its tangent, if any. */
static const char *text_of(Tensor *t, const char *tangent) {
  Node *fn = tensor_grad_fn(t);
  bool invalid = failed(); /* a view whose base was written to */
  if (invalid) status_clear();
  PrintNames names = {.grad_fn = invalid ? "Invalid"
                                 : fn    ? node_short_name(fn)
                                         : NULL,
                      .tangent = tangent};
  Text text = {0};
  if (!print_tensor(&text, t, &names, &options))
    return fail(ERR_RUNTIME, "print options are out of range");
  return text_end(&text);
}

/* Beside a tensor stands its tangent, as Python formats it. */
const char *tensor_text(Tensor *t, bool whole) {
  if (blocked(t)) return NULL;
  if (!t->ndim && !whole) return number_text(tensor_get_f(t, 0));
  Tensor *tangent = whole ? forward_tangent(t) : NULL;
  return failed() ? NULL : text_of(t, tensor_text(tangent, false));
}

void op_repr(Call *c) {
  const char *text = tensor_text(arg_tensor(c, 0), true);
  if (text) ret_str(c, text);
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
