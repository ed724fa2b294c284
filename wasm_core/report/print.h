/* The text of a tensor, equal to PyTorch's repr: number formats, column widths, summaries, line
 * breaks and the suffixes (size, dtype, grad_fn, requires_grad, tangent). Stack use grows only with
 * the rank. */
#ifndef PG_PRINT_H
#define PG_PRINT_H

#include "ground/text.h"
#include "tensor/tensor.h"

/* The options of torch.set_printoptions. threshold and linewidth are doubles because PyTorch takes
 * any number (the profile "full" has threshold infinity). */
typedef struct {
  int32_t precision; /* digits after the point, 0 to a million */
  int32_t sci_mode;  /* -1 decides by the values, 0 never, 1 always */
  double threshold;  /* more elements than this are summarised */
  double linewidth;  /* in characters; finite */
  int64_t edgeitems; /* shown at each end of a summarised dimension, at least 0 */
} PrintOptions;

/* Texts about a tensor from autograd and the host; every pointer is borrowed. */
typedef struct {
  const char *kind;     /* the name of its class, or NULL for "tensor" */
  const char *grad_fn;  /* the name of its node, such as "MulBackward0", or NULL */
  const char *tangent;  /* the text of its forward-mode tangent, or NULL */
  const char *contents; /* a text to show instead of the elements, or NULL */
} PrintNames;

/* Appends repr(tensor), in UTF-8 if the names are. False if an option is out of range; then nothing
 * is added. */
bool print_tensor(Text *text, const Tensor *tensor, const PrintNames *names,
                  const PrintOptions *options);

#endif
