/* The tape: who gets a node, what a node keeps, how long it lives, and chains of any length. */
#include "check.h"
#include "ops/linalg/lu_cholesky.h"
#include "ops/run.h"
#include "walk/walk.h"

static Tensor *backward(Tensor *y) {
  walk_backward(1, &y, NULL, false, false, 0, NULL, true, true, NULL);
  return y;
}

static void an_op_is_recorded_only_where_a_gradient_is_wanted(void) {
  Tensor *x = leaf(VECTOR(DT_F32, 1, 2)), *plain = VECTOR(DT_F32, 3, 4);
  CHECK(!t_mul(plain, plain)->grad_fn);
  Node *n = t_mul(x, plain)->grad_fn;
  CHECK_TEXT(n->type->name, "MulBackward0");
  CHECK(n->n_edges == 2 && n->edges[0].node && !n->edges[1].node);
  grad_mode = false;
  CHECK(!t_mul(x, plain)->grad_fn);
}

static void a_leaf_has_one_accumulator_while_somebody_refers_to_it(void) {
  Tensor *x = leaf(VECTOR(DT_F32, 1)), *a = t_mul_f(x, 2), *b = t_mul_f(x, 3);
  CHECK(a->grad_fn->edges[0].node == b->grad_fn->edges[0].node);
  CHECK(a->grad_fn->edges[0].node->type == &AccumulateGrad && x->meta->accumulator);
  pool_release(0, x);
  CHECK(!x->meta->accumulator);
}

static void a_node_lives_as_long_as_a_result_that_needs_it(void) {
  Tensor *x = leaf(VECTOR(DT_F32, 1));
  int64_t nodes = node_live_count();
  Tensor *y = t_exp(t_mul_f(x, 2));
  CHECK(node_live_count() == nodes + 3);
  pool_release(0, y);
  CHECK(node_live_count() == nodes + 3);
  pool_release(0, NULL);
  CHECK(node_live_count() == nodes);
}

static void what_is_saved_is_the_value_of_that_moment(void) {
  Tensor *a = leaf(VECTOR(DT_F64, 1, 2)), *b = VECTOR(DT_F64, 3, 4);
  Tensor *y = t_sum_all(t_mul(a, b));
  t_fill_(t_narrow(b, 0, 0, 1), tensor_number(100, DT_F64)); /* through a view */
  t_fill_(t_detach(b), tensor_number(-1, DT_F64));
  backward(y);
  CHECK_VALUES(a->meta->grad, 3, 4);
}

static void saving_copies_nothing(void) {
  Tensor *a = leaf(VECTOR(DT_F64, 1, 2)), *b = VECTOR(DT_F64, 3, 4);
  Tensor *y = t_mul(a, b);
  CHECK(tensor_same_memory(saved_tensor(y->grad_fn, 1), b));
}

static void check_mode_reports_the_write(void) {
  saved_check_mode = true;
  Tensor *a = leaf(VECTOR(DT_F32, 1, 2)), *b = VECTOR(DT_F32, 3, 4);
  Tensor *y = t_sum_all(t_mul(a, b));
  t_fill_(b, tensor_number(0, DT_F32));
  tensor_bump_version(b);
  backward(y);
  saved_check_mode = false;
  CHECK(status_now == ERR_RUNTIME);
  CHECK(strstr(status_message(),
               "has been modified by an inplace operation: [torch.FloatTensor [2]]"));
  status_clear();
}

/* As by an in-place row of this schema. */
static void write_result(const char *schema, Tensor *self, Tensor *r) {
  const Row row = {.name = schema, .schema = schema, .words = TORCH | METHOD | INPLACE};
  run_inplace_finish(&(Call){.row = &row}, self, r);
}

static void writing_in_place_gives_the_tensor_a_new_history(void) {
  Tensor *x = leaf(VECTOR(DT_F64, 1, 2)), *y = t_mul_f(x, 3);
  write_result("exp(Tensor self) -> Tensor", y, t_exp(y));
  CHECK_TEXT(y->grad_fn->type->name, "ExpBackward0");
  Tensor *half = t_narrow(y, 0, 0, 1);
  /* the base's history changes */
  write_result("mul(Tensor self, Tensor|Scalar other) -> Tensor", half, t_mul_f(half, 5));
  CHECK_TEXT(node_short_name(y->grad_fn), "CopySlices");
  backward(t_sum_all(y));
  CHECK_VALUES(x->meta->grad, 5 * 3 * exp(3), 3 * exp(6));
}

static void writing_what_has_no_gradient_cuts_the_view_off_what_it_was(void) {
  Tensor *x = leaf(VECTOR(DT_F64, 1, 2)), *y = t_mul_f(x, 3), *half = t_narrow(y, 0, 0, 1);
  write_result("le(Tensor self, Tensor|Scalar other) -> Tensor", half,
               t_le(half, tensor_number(4, DT_F64)));
  backward(t_add(t_sum_all(half), t_sum_all(y)));
  CHECK_VALUES(x->meta->grad, 0, 3);
}

static void a_leaf_must_not_be_written(void) {
  Tensor *x = leaf(VECTOR(DT_F32, 1));
  CHECK(!history_check_inplace(x));
  CHECK_FAILED(ERR_RUNTIME,
               "a leaf Variable that requires grad is being used in an in-place operation.");
}

enum { N_CHAIN = 1000000 };

static Tensor *chain(Tensor *x) {
  Tensor *y = x;
  for (int i = 0; i < N_CHAIN && y; i++) {
    y = t_neg(y);
    pool_release(1, y); /* x stands at the bottom */
  }
  return y;
}

static void an_op_that_fails_leaves_no_node(void) {
  Tensor *x = leaf(tensor_zeros(2, (int64_t[]){2, 3}, DT_F64)),
         *y = leaf(tensor_zeros(1, (int64_t[]){4}, DT_F64));
  int64_t nodes = node_live_count();
  Tensor *(*const ops[])(Tensor *, Tensor *) = {t_add, t_mul, t_pow, t_matmul};
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
    CHECK(!ops[k](x, y));
    status_clear();
  }
  Tensor *several[3];
  t_linalg_svd(leaf(tensor_full(2, (int64_t[]){2, 1}, DT_F64, NAN)), false, NULL, several);
  CHECK(failed() && !several[0]);
  status_clear();
  CHECK(node_live_count() == nodes);
}

static void a_million_nodes_are_walked_and_freed(void) {
  Tensor *x = leaf(VECTOR(DT_F32, 2));
  int64_t nodes = node_live_count();
  Tensor *y = chain(x);
  CHECK(node_live_count() == nodes + N_CHAIN + 1);
  backward(y);
  CHECK_VALUES(x->meta->grad, 1);
  pool_release(1, NULL);
  CHECK(node_live_count() == nodes);
}

static void a_million_nodes_are_freed_without_being_walked(void) {
  Tensor *x = leaf(VECTOR(DT_F32, 2));
  int64_t nodes = node_live_count();
  CHECK(chain(x));
  pool_release(1, NULL);
  CHECK(node_live_count() == nodes);
}

static void forty_names_of_nodes_are_kept_apart(void) {
  static char names[40][32];
  Tensor *x = leaf(VECTOR(DT_F32, 1)), *y[40];
  for (int i = 0; i < 40; i++) {
    snprintf(names[i], sizeof names[i], "Another%dBackward0", i);
    y[i] = node_rename(t_neg(x), names[i]);
  }
  for (int i = 0; i < 40; i++) CHECK_TEXT(y[i]->grad_fn->type->name, names[i]);
  CHECK(node_rename(t_neg(x), names[39])->grad_fn->type == y[39]->grad_fn->type);
  CHECK(node_rename_with(t_neg(x), names[39], "other")->grad_fn->type != y[39]->grad_fn->type);
}

int main(void) {
  RUN(an_op_is_recorded_only_where_a_gradient_is_wanted);
  RUN(a_leaf_has_one_accumulator_while_somebody_refers_to_it);
  RUN(a_node_lives_as_long_as_a_result_that_needs_it);
  RUN(what_is_saved_is_the_value_of_that_moment);
  RUN(saving_copies_nothing);
  RUN(check_mode_reports_the_write);
  RUN(writing_in_place_gives_the_tensor_a_new_history);
  RUN(writing_what_has_no_gradient_cuts_the_view_off_what_it_was);
  RUN(a_leaf_must_not_be_written);
  RUN(an_op_that_fails_leaves_no_node);
  RUN(a_million_nodes_are_walked_and_freed);
  RUN(a_million_nodes_are_freed_without_being_walked);
  RUN(forty_names_of_nodes_are_kept_apart);
  return finish();
}
