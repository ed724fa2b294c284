/* The text of a tensor, character for character what PyTorch's repr gives: number formats, column
 * widths, summaries, line breaks and the suffixes (size, dtype, grad_fn, requires_grad, tangent).
 * Stack use grows with the rank alone. */
#ifndef PG_PRINT_H
#define PG_PRINT_H

#include "ground/text.h"
#include "tensor/tensor.h"

/* What torch.set_printoptions controls. threshold and linewidth are doubles since PyTorch takes
 * any number there (threshold infinity is the profile "full"). */
typedef struct {
  int32_t precision; /* digits after the point, 0 to a million */
  int32_t sci_mode;  /* -1 decides by the values, 0 never, 1 always */
  double threshold;  /* more elements than this are summarised */
  double linewidth;  /* in characters; finite */
  int64_t edgeitems; /* kept at each end of a summarised dimension, at least 0 */
} PrintOptions;

/* What autograd and the host have to say of a tensor; every pointer is borrowed. */
typedef struct {
  const char *kind;     /* the name of its class, or NULL for "tensor" */
  const char *grad_fn;  /* the name of its node, such as "MulBackward0", or NULL */
  const char *tangent;  /* the text of its forward-mode tangent, or NULL */
  const char *contents; /* what stands in the place of its elements, or NULL */
} PrintNames;

/* Adds repr(tensor), as UTF-8 if the given names are; nothing and false when an option is out of
 * range. */
bool print_tensor(Text *text, const Tensor *tensor, const PrintNames *names,
                  const PrintOptions *options);

#endif
