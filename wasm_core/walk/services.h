/* Services of autograd, which only rows call (autograd_services.c, custom.c and others of this
 * folder). */
#ifndef PG_WALK_SERVICES_H
#define PG_WALK_SERVICES_H

#include "call/call.h"
#include "tape/graph.h"
#include "walk/walk.h"

/* Runs a task and its course to the end, or to the next custom node. */
void task_go_on(Call *c, Task *task, Tensor **gi);
void op_backward_of(Call *c);
void op_grad(Call *c);
void op_backward_resume(Call *c);
void op_backward_abort(const Call *c);
Tensor *op_undefined_grad(Tensor *t);
Tensor *op_requires_grad_(Tensor *t, bool on);
void op_retain_grad(Tensor *t);
Tensor *op_data(Tensor *t);
Tensor *op_set_data(Tensor *t, Tensor *from);
Tensor *op_set_grad(Tensor *t, Tensor *g);
void op_version(Call *c);
void op_number_of_dim(Call *c, const int64_t *numbers); /* numbers[dim] */
bool op_is_set_to(const Tensor *a, const Tensor *b);
void op_grad_dtype(Call *c);
void op_set_grad_dtype(Call *c);
void op_increment_version(Call *c);
void op_set_saved_mode(Call *c);
void op_node_of(Call *c);
void op_made_by(Call *c);
void op_node_name(Call *c);
void op_node_kind(Call *c); /* a number that identifies its name and fields */
void op_node_sequence(Call *c);
void op_node_set_sequence(Call *c);
void op_node_next(Call *c);
Tensor *op_node_variable(Call *c);
void op_node_fields(Call *c);
void op_node_saved(Call *c);
void op_node_packed(Call *c);
Tensor *op_node_saved_data(Call *c);
void op_node_saved_hooks(Call *c);
void op_node_field(Call *c);
void op_edge_of(Call *c);
void op_node_metadata(Call *c);
void op_node_output(Call *c);
void op_node_call(Call *c);
void op_owned(Call *c);
void op_node_hook_add(Call *c);
void op_node_hook_remove(Call *c);
void op_running_node(Call *c);
void op_task_id(Call *c);
void op_task_order(Call *c);
void op_will_run(Call *c);
void op_hook_add(Call *c);
void op_hook_remove(Call *c);
void op_hooks_of(Call *c);
void op_functional_points(Call *c);
void op_functional_answer(Call *c);
void op_functional_units(Call *c);
void op_functional_columns(Call *c);
void op_several_hooks_add(Call *c);
void op_several_hooks_remove(Call *c);
void op_gradcheck(Call *c);
void op_gradcheck_note(Call *c);
void op_numerical_jacobian(Call *c);
void op_analytical_jacobian(Call *c);

#endif
