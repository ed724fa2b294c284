/* Texts of tensors, by the user's print options. */
#ifndef PG_TENSOR_TEXT_H
#define PG_TENSOR_TEXT_H

#include "call/call.h"

/* repr(t) in scratch; for a 0-dim tensor only the number unless `whole`; NULL for NULL. */
const char *tensor_text(Tensor *t, bool whole);
void op_repr(Call *c);
void op_printoptions(Call *c);

#endif
