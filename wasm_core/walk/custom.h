/* Custom functions: nodes whose gradient the host computes; see custom.c. */
#ifndef PG_CUSTOM_H
#define PG_CUSTOM_H

#include "call/call.h"
#include "tape/graph.h"

/* Tensors by their handles, which hosts pass as plain words to save time: 0 for none, 1 for
 * anything else. */
Tensors tensors_at(const int64_t *handles, int64_t n);
/* The type of the nodes of this name, "MulBackward": made once. */
const NodeType *custom_type(const char *name);
/* What a custom node's function is called with: its gradients, zeros made of missing ones if it
 * asked for that. */
bool custom_gradients(const Node *n, Tensor *const *grads, Tensor **out);
/* What it returned, one handle an argument of forward (0: None, 1: neither tensor nor None, but
 * an `odd`), as one tensor an edge; NULL with PyTorch's error if that does not fit. */
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
