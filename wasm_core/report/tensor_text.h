/* Tensors as texts, by the options of the user. */
#ifndef PG_TENSOR_TEXT_H
#define PG_TENSOR_TEXT_H

#include "call/call.h"

/* As Python prints it, in scratch; of one value the number alone unless `whole`; NULL of NULL. */
const char *tensor_text(Tensor *t, bool whole);
void op_repr(Call *c);
void op_printoptions(Call *c);

#endif
