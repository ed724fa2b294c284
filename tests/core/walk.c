/* Backward: the order of nodes and hooks, accumulation, freed graphs, higher derivatives,
 * callbacks. */
#include "walk/walk.h"
#include "check.h"

#include "tape/host.h"

static bool backward_of(Tensor *y, bool retain) {
  return walk_backward(1, &y, NULL, retain, false, 0, NULL, true, true, NULL);
}

static Tensor *gradient_of(Tensor *y, Tensor *x, bool create_graph) {
  Tensor *g = NULL;
  walk_backward(1, &y, NULL, create_graph, create_graph, 1, &x, false, false, &g);
  return g;
}

static void hook(Tensor *t, int32_t id) {
  PgFrame *f = call_begin("_hook_add", 0);
  argument(f, TAG_TENSOR, handle(t));
  argument(f, TAG_INT, id);
  argument(f, TAG_BOOL, 0);
  CHECK(pg_call() == 0);
}

static int32_t order[16], n_order;
static int32_t note(int32_t kind, int32_t id, int32_t n) {
  CHECK(kind == HOST_HOOK && n == 1);
  order[n_order++] = id;
  return 0;
}

/* As PyTorch: of the nodes that are ready, the one made last goes first. */
static void the_node_made_last_goes_first(void) {
  Tensor *a = leaf(VECTOR(DT_F32, 1, 1)), *p = t_mul_f(a, 2), *q = t_mul_f(a, 3), *s = t_add(p, q);
  hook(p, 1);
  hook(q, 2);
  hook(s, 3);
  hook(a, 4);
  on_host = note;
  n_order = 0;
  CHECK(backward_of(t_sum_all(s), false));
  CHECK(n_order == 4 && order[0] == 3 && order[1] == 2 && order[2] == 1 && order[3] == 4);
  CHECK_VALUES(a->meta->grad, 5, 5);
}

static int32_t replace(int32_t kind, int32_t id, int32_t n) {
  (void)kind, (void)id, (void)n;
  PgFrame *f = pg_frame();
  Tensor *r = VECTOR(DT_F32, 10, 20);
  *(int64_t *)(uintptr_t)f->host_out = handle(r);
  f->host_n_out = 1;
  return 0;
}

static void a_hook_may_replace_the_gradient(void) {
  Tensor *a = leaf(VECTOR(DT_F32, 1, 1)), *p = t_mul_f(a, 2);
  hook(p, 1);
  on_host = replace;
  CHECK(backward_of(t_sum_all(p), false));
  CHECK_VALUES(a->meta->grad, 20, 40);
}

static int32_t raise_error(int32_t kind, int32_t id, int32_t n) {
  (void)kind, (void)id, (void)n;
  return -1;
}

static void a_hook_that_raises_ends_the_backward(void) {
  Tensor *a = leaf(VECTOR(DT_F32, 1)), *p = t_mul_f(a, 2);
  hook(p, 1);
  on_host = raise_error;
  CHECK(!backward_of(p, false));
  CHECK(status_now == ERR_HOST);
  status_clear();
  CHECK(!a->meta->grad);
}

static void gradients_add_up(void) {
  Tensor *a = leaf(VECTOR(DT_F64, 1, 2)), *y = t_sum_all(t_mul(a, a));
  CHECK(backward_of(y, true) && backward_of(y, true));
  CHECK_VALUES(a->meta->grad, 4, 8);
}

static void a_freed_graph_is_not_walked_again(void) {
  Tensor *a = leaf(VECTOR(DT_F64, 1, 2)), *y = t_sum_all(t_mul(a, a));
  CHECK(backward_of(y, false) && !backward_of(y, false));
  CHECK_FAILED(ERR_RUNTIME,
               "Trying to backward through the graph a second time (or directly access saved "
               "tensors after they have already been freed). Saved intermediate values of the "
               "graph are freed when you call .backward() or autograd.grad(). Specify "
               "retain_graph=True if you need to backward through the graph a second time or if "
               "you need to access saved tensors after calling backward.");
}

static void a_root_must_be_one_element_with_a_history(void) {
  Tensor *a = leaf(VECTOR(DT_F32, 1, 2));
  CHECK(!backward_of(t_mul_f(a, 2), false));
  CHECK_FAILED(ERR_RUNTIME, "grad can be implicitly created only for scalar outputs");
  CHECK(!backward_of(tensor_number(1, DT_F32), false));
  CHECK_FAILED(ERR_RUNTIME,
               "element 0 of tensors does not require grad and does not have a grad_fn");
}

static void broadcast_operands_get_their_own_shape_back(void) {
  Tensor *row = leaf(VECTOR(DT_F64, 1, 2, 3)), *one = leaf(VECTOR(DT_F32, 2));
  CHECK(backward_of(t_sum_all(t_mul(t_expand(row, SIZES(2, 3)), one)), false));
  CHECK_VALUES(row->meta->grad, 4, 4, 4);
  CHECK_VALUES(one->meta->grad, 12);
  CHECK(one->meta->grad->dtype == DT_F32);
}

static void derivatives_of_any_order(void) {
  Tensor *x = leaf(VECTOR(DT_F64, 3)), *y = t_mul(t_mul(x, x), t_mul(x, x)); /* x^4 */
  Tensor *d1 = gradient_of(y, x, true), *d2 = gradient_of(d1, x, true),
         *d3 = gradient_of(d2, x, true);
  CHECK_VALUES(d1, 108);
  CHECK_VALUES(d2, 108);
  CHECK_VALUES(d3, 72);
  CHECK_VALUES(gradient_of(d3, x, false), 24);
}

static void an_input_that_was_not_used_is_an_error_unless_allowed(void) {
  Tensor *x = leaf(VECTOR(DT_F32, 1)), *other = leaf(VECTOR(DT_F32, 1)), *y = t_mul_f(x, 2),
         *g = NULL;
  CHECK(!walk_backward(1, &y, NULL, true, false, 1, &other, false, false, &g));
  CHECK_FAILED(ERR_RUNTIME, "The differentiated Tensor at index 0 appears to not have been used in "
                            "the graph. Set allow_unused=True if this is the desired behavior.");
  CHECK(walk_backward(1, &y, NULL, true, false, 1, &other, false, true, &g) && !g);
}

static void inputs_choose_where_to_accumulate(void) {
  Tensor *a = leaf(VECTOR(DT_F32, 2)), *b = leaf(VECTOR(DT_F32, 5)), *y = t_mul(a, b);
  CHECK(walk_backward(1, &y, NULL, false, false, 1, &a, true, true, NULL));
  CHECK_VALUES(a->meta->grad, 5);
  CHECK(!b->meta || !b->meta->grad);
}

int main(void) {
  RUN(the_node_made_last_goes_first);
  RUN(a_hook_may_replace_the_gradient);
  RUN(a_hook_that_raises_ends_the_backward);
  RUN(gradients_add_up);
  RUN(a_freed_graph_is_not_walked_again);
  RUN(a_root_must_be_one_element_with_a_history);
  RUN(broadcast_operands_get_their_own_shape_back);
  RUN(derivatives_of_any_order);
  RUN(an_input_that_was_not_used_is_an_error_unless_allowed);
  RUN(inputs_choose_where_to_accumulate);
  return finish();
}
