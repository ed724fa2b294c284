/* Texts of tensors, by the user's print options; print.c writes them. */
#include "report/tensor_text.h"

#include <math.h>
#include <string.h>

#include "ground/number.h"
#include "ground/text.h"
#include "ops/op.h"
#include "report/print.h"
#include "tape/batched.h"
#include "tape/forward.h"

static PrintOptions options = {
    .precision = 4, .sci_mode = -1, .threshold = 1000, .linewidth = 80, .edgeitems = 3};

void op_printoptions(Call *c) {
  options = (PrintOptions){.precision = (int32_t)arg_int(c, 0),
                           .threshold = arg_float(c, 1),
                           .edgeitems = arg_int(c, 2),
                           .linewidth = arg_float(c, 3),
                           .sci_mode = (int32_t)arg_int(c, 4)};
}

/* repr(t) in scratch, with these names and the name of its node. */
static const char *text_of(Tensor *t, PrintNames names) {
  Node *fn = tensor_grad_fn(t);
  bool invalid = failed(); /* a view whose base was written to */
  if (invalid) status_clear();
  names.grad_fn = invalid ? "Invalid" : fn ? node_short_name(fn) : NULL;
  Text text = {0};
  if (!print_tensor(&text, t, &names, &options))
    return fail(ERR_RUNTIME, "print options are out of range");
  return text_end(&text);
}

/* A part of a complex number as Python prints it: whole numbers without a decimal point. */
static const char *part_text(double v) {
  const char *text = number_text(v), *end = text + strlen(text) - 2;
  return end > text && strcmp(end, ".0") == 0 ? textf("%.*s", (int)(end - text), text) : text;
}

/* The text of t.item() in Python. */
static const char *item_text(const Tensor *t) {
  if (!dtype_is_complex(tensor_dtype(t))) return number_text(tensor_get_f(t, 0));
  complex_f64 z = tensor_get_c(t, 0);
  double re = __real__ z, im = __imag__ z;
  if (re == 0 && !signbit(re)) return textf("%sj", part_text(im));
  return textf("(%s%s%sj)", part_text(re), signbit(im) && !isnan(im) ? "" : "+", part_text(im));
}

static const char *tangent_text(Tensor *tangent) {
  const char *text = tensor_text(all_slices(tangent), false);
  int32_t level = highest(levels_of(tangent));
  return level && text ? textf("BatchedTensor(lvl=%d, bdim=0, value=%s)", level, text) : text;
}

/* Adds the text of the tensor's tangent to the names. */
static const char *named_text(Tensor *t, PrintNames names, bool whole) {
  if (blocked(t)) return NULL;
  if (!t->ndim && !whole) return item_text(t);
  Tensor *tangent = whole ? forward_tangent(t) : NULL;
  names.tangent = failed() ? NULL : tangent_text(tangent);
  return failed() ? NULL : text_of(t, names);
}

const char *tensor_text(Tensor *t, bool whole) {
  return named_text(t, (PrintNames){.kind = NULL}, whole);
}

void op_repr(Call *c) {
  const PrintNames names = {.kind = arg_str(c, 1), .contents = arg_str(c, 2)};
  const char *text = named_text(arg_tensor(c, 0), names, true);
  if (text) ret_str(c, text);
}
