/* Bools with any bytes: all but 0 are true, and no C bool is read from them, which the sanitizer
 * would say. */
#include "check.h"

#include "ops/index/index.h"
#include "ops/view/copy.h"

/* {false, true, true, true}, repeated. */
static Tensor *hostile(int64_t n) {
  static const uint8_t bytes[4] = {0, 1, 2, 255};
  Tensor *t = tensor_empty(1, &n, DT_BOOL);
  for (int64_t i = 0; t && i < n; i++) ((uint8_t *)tensor_data(t))[i] = bytes[i & 3];
  return t;
}

static void every_byte_but_0_is_1_as_a_number(void) {
  static const DType all[] = {DT_U8, DT_I8, DT_I16, DT_I32, DT_I64, DT_F32, DT_F64, DT_BOOL};
  Tensor *m = hostile(4);
  for (int i = 0; i < COUNT(all); i++)
    CHECK_VALUES(t_to_device(m, all[i], 0, FORMAT_PRESERVE), 0, 1, 1, 1);
  CHECK(tensor_get_i(m, 3) == 1 && tensor_get_f(m, 2) == 1);
  CHECK_VALUES(t_sum_all(m), 3);
  CHECK_VALUES(t_prod(m, DT_NONE), 0);
  CHECK_VALUES(t_eq(m, tensor_wrapped_b(true)), 0, 1, 1, 1);
}

static void copies_are_of_0_and_1_in_every_layout(void) {
  Tensor *m = t_view(hostile(64 * 32), SIZES(64, 32));
  Tensor *copies[] = {
      t_clone(m), t_contiguous(t_transpose(m, 0, 1)), t_flip(m, (Ints){1, (const int64_t[]){1}}),
      t_clone_format(t_expand(t_narrow(m, 1, 3, 1), SIZES(64, 32)), FORMAT_CONTIGUOUS)};
  for (int i = 0; i < COUNT(copies); i++)
    for (int64_t k = 0; k < 64 * 32; k++) CHECK(((const uint8_t *)tensor_data(copies[i]))[k] <= 1);
}

static void orders_and_extremes_know_two_values(void) {
  Tensor *m = hostile(8), *pair[2], *three[3];
  t_sort(m, 0, false, pair);
  CHECK_VALUES(pair[1], 0, 4, 1, 2, 3, 5, 6, 7);
  t_max_dim(m, 0, false, pair);
  CHECK_VALUES(pair[1], 1);
  t_cummax(m, 0, pair);
  CHECK_VALUES(pair[1], 0, 1, 2, 3, 3, 5, 6, 7);
  t_unique(t_view(m, SIZES(4, 2)), true, (const int64_t[]){0}, three);
  CHECK(three[0] && three[0]->sizes[0] == 2);
  CHECK_VALUES(three[1], 0, 1, 0, 1);
}

static void what_is_counted_is_what_is_found(void) {
  Tensor *m = hostile(8), *x = VECTOR(DT_F32, 0, 1, 2, 3, 4, 5, 6, 7);
  CHECK(index_mask_count(m) == 6);
  CHECK_VALUES(t_nonzero(m), 1, 2, 3, 5, 6, 7);
  CHECK_VALUES(t_index(x, (Tensors){1, &m}), 1, 2, 3, 5, 6, 7);
  CHECK_VALUES(t_index_put(x, (Tensors){1, &m}, tensor_number(9, DT_F32), false), 0, 9, 9, 9, 4, 9,
               9, 9);
  CHECK_VALUES(t_masked_scatter(x, m, x), 0, 0, 1, 2, 4, 3, 4, 5);
}

static void sums_and_products_at_indices_are_true_or_false(void) {
  Tensor *m = hostile(4), *at = VECTOR(DT_I64, 0, 0, 1, 1);
  CHECK_VALUES(t_index_add(tensor_zeros(SIZES(2), DT_BOOL), 0, at, m, 1), 1, 1);
  CHECK_VALUES(t_scatter_reduce(tensor_full(SIZES(2), DT_BOOL, 1), 0, at, m, "prod", true), 0, 1);
}

static void values_that_the_host_can_write_are_settled_first(void) {
  Tensor *m = hostile(4);
  CHECK(tensor_settled(m) == m && index_mask_plain(m) == m);
  CHECK(tensor_export(m));
  Tensor *still = tensor_settled(m), *mask = index_mask_plain(m);
  memset(tensor_data(m), 0, 4);
  CHECK_VALUES(still, 0, 1, 1, 1);
  CHECK_VALUES(mask, 0, 1, 1, 1);
  tensor_unexport(m);
}

int main(void) {
  RUN(every_byte_but_0_is_1_as_a_number);
  RUN(copies_are_of_0_and_1_in_every_layout);
  RUN(orders_and_extremes_know_two_values);
  RUN(what_is_counted_is_what_is_found);
  RUN(sums_and_products_at_indices_are_true_or_false);
  RUN(values_that_the_host_can_write_are_settled_first);
  return finish();
}
