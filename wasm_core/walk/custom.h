/* Custom functions: nodes whose gradient the host computes; see custom.c. */
#ifndef PG_CUSTOM_H
#define PG_CUSTOM_H

#include "call/call.h"
#include "tape/graph.h"

/* Tensors from handles that hosts pass as plain words to save time: 0: none, 1: another object. */
Tensors custom_tensors_at(const int64_t *handles, int64_t n);
/* The type of nodes with this name, "MulBackward"; made once. */
const NodeType *custom_type(const char *name);
/* The arguments of a custom node's function: its gradients, with zeros for missing ones if it asked
 * for them. */
bool custom_gradients(const Node *n, Tensor *const *grads, Tensor **out);
/* Converts the function's results, a handle for each argument of forward (0: None, 1: an object of
 * type `odd`), to a tensor for each edge; NULL with PyTorch's error if they do not fit. */
Tensor **custom_given(Node *n, const Ints *given, const char *odd);

void op_custom_begin(Call *c);
void op_custom_finish(Call *c);
void op_custom_saved(Call *c);
void op_custom_saves(Call *c);
void op_custom_tangents(Call *c);
void op_custom_carry(Call *c);
void op_delayed_error(Call *c);
void op_save_tensor(Call *c);

#endif
