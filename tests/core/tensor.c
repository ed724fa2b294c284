/* Tensors: geometry, shared storages, copy-on-write snapshots, exports, the temporary pool. */
#include "check.h"

static void contiguous_strides_follow_the_sizes(void) {
  Tensor *t = tensor_empty(SIZES(2, 3, 4), DT_F32);
  CHECK(t->ndim == 3 && t->numel == 24);
  CHECK(t->strides[0] == 12 && t->strides[1] == 4 && t->strides[2] == 1);
  CHECK(tensor_is_contiguous(t) && tensor_is_dense(t) && tensor_covers_storage(t));
  Tensor *turned = t_transpose(t, 0, 2);
  CHECK(turned->sizes[0] == 4 && turned->strides[0] == 1);
  CHECK(!tensor_is_contiguous(turned) && tensor_is_dense(turned));
}

static void a_number_and_an_empty_tensor_have_their_shapes(void) {
  Tensor *number = tensor_number(2.5, DT_F64), *empty = tensor_empty(SIZES(2, 0, 3), DT_I32);
  CHECK(number->ndim == 0 && number->numel == 1 && tensor_get_f(number, 0) == 2.5);
  CHECK(empty->numel == 0 && tensor_is_contiguous(empty));
  CHECK_TEXT(shape_text(number), "[]");
  CHECK_TEXT(shape_text(empty), "[2, 0, 3]");
}

static void sizes_that_cannot_be_are_refused(void) {
  CHECK(sizes_numel(SIZES(2, -1)) == -1);
  CHECK_FAILED(ERR_RUNTIME, "Trying to create tensor with negative dimension -1: [2, -1]");
  CHECK(sizes_numel(SIZES((int64_t)1 << 40, (int64_t)1 << 40)) == -1);
  CHECK_FAILED(ERR_RUNTIME, "numel: integer multiplication overflow");
  CHECK(sizes_numel(SIZES((int64_t)1 << 40, (int64_t)1 << 40, 0)) == 0);
  int64_t ones[MAX_DIM + 1];
  for (int i = 0; i <= MAX_DIM; i++) ones[i] = 1;
  CHECK(tensor_empty(MAX_DIM, ones, DT_U8));
  CHECK(!tensor_empty(MAX_DIM + 1, ones, DT_U8));
  CHECK_FAILED(ERR_RUNTIME, "tensors have at most 64 dimensions, but got 65");
}

static void shapes_broadcast_from_the_last_dimension(void) {
  int nd = 2;
  int64_t out[MAX_DIM] = {3, 1};
  CHECK(sizes_broadcast(&nd, out, SIZES(4, 1, 5)));
  CHECK(sizes_equal(nd, out, SIZES(4, 3, 5)));
  CHECK(!sizes_broadcast(&nd, out, SIZES(2)));
  CHECK_FAILED(
      ERR_RUNTIME,
      "The size of tensor a (5) must match the size of tensor b (2) at non-singleton dimension 2");
}

static void dimensions_count_from_both_ends(void) {
  CHECK(dim_wrap(-1, 3) == 2 && dim_wrap(0, 3) == 0 && dim_wrap(-1, 0) == 0);
  CHECK(dim_wrap(3, 3) == -1);
  CHECK_FAILED(ERR_INDEX, "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
}

static void views_share_elements_and_the_version(void) {
  Tensor *t = VECTOR(DT_F32, 0, 1, 2, 3, 4, 5);
  Tensor *row = t_select(t_view(t, SIZES(2, 3)), 0, 1);
  CHECK_VALUES(row, 3, 4, 5);
  CHECK(row->storage == t->storage && tensor_data(row) == tensor_data(t) + 3 * sizeof(float));
  t_fill_(row, tensor_number(7, DT_F32));
  CHECK_VALUES(t, 0, 1, 2, 7, 7, 7);
  CHECK(tensor_version(t) == tensor_version(row) && tensor_version(t) == 1);
}

static void a_snapshot_shares_memory_until_the_first_write(void) {
  Tensor *t = VECTOR(DT_F64, 1, 2, 3), *kept = tensor_snapshot(t);
  const char *place = tensor_data(t);
  CHECK(tensor_data(kept) == place && tensor_same_memory(t, kept));
  t_fill_(t_narrow(t, 0, 0, 1), tensor_number(9, DT_F64));
  CHECK_VALUES(t, 9, 2, 3);
  CHECK_VALUES(kept, 1, 2, 3);
  CHECK(tensor_data(kept) == place && !tensor_same_memory(t, kept)); /* who writes moves */
  const char *own = tensor_data(t);
  t_fill_(t, tensor_number(0, DT_F64)); /* the second write moves nothing */
  CHECK(tensor_data(t) == own && tensor_data(kept) == place);
  CHECK_VALUES(kept, 1, 2, 3);
}

static void a_write_to_all_of_a_storage_leaves_the_old_memory_to_the_snapshot(void) {
  Tensor *t = VECTOR(DT_F64, 1, 2, 3), *kept = tensor_snapshot(t);
  const char *place = tensor_data(t);
  int64_t live = mem_live_bytes();
  t_fill_(t, tensor_number(9, DT_F64));
  CHECK(tensor_data(kept) == place && tensor_data(t) != place);
  CHECK(mem_live_bytes() > live);
  CHECK_VALUES(kept, 1, 2, 3);
}

static void a_write_beside_a_snapshot_moves_nothing(void) {
  Tensor *t = tensor_zeros(SIZES(4, 4, 4), DT_F32);
  for (int64_t dim = 0; dim < 3; dim++)
    for (int64_t k = 0; k < 3; k++) {
      int32_t mark = pool_mark();
      Tensor *kept = tensor_snapshot(t_select(t, dim, k));
      const char *place = tensor_data(kept);
      t_fill_(t_select(t, dim, k + 1), tensor_number(1, DT_F32));
      CHECK(tensor_data(kept) == place && tensor_same_memory(kept, t));
      t_fill_(t_narrow(t_select(t, dim, k), 0, 3, 1), tensor_number(2, DT_F32));
      CHECK(tensor_data(kept) != place && !tensor_same_memory(kept, t));
      pool_release(mark, NULL);
    }
}

static void one_snapshot_moves_for_all_of_the_same_elements(void) {
  Tensor *t = tensor_zeros(SIZES(1000), DT_F64), *row = t_narrow(t, 0, 10, 100);
  Tensor *one = tensor_snapshot(row), *same = tensor_snapshot(row), *of_one = tensor_snapshot(one);
  CHECK(one->storage->bytes == same->storage->bytes &&
        of_one->storage->bytes == one->storage->bytes);
  int64_t live = mem_live_bytes();
  t_fill_(t_narrow(t, 0, 50, 1), tensor_number(1, DT_F64));
  CHECK(mem_live_bytes() - live < 2000); /* the row, not the vector */
  CHECK(tensor_data(one) == tensor_data(same) && tensor_get_f(one, 40) == 0);
}

static void snapshots_that_overlap_move_together(void) {
  Tensor *t = tensor_zeros(SIZES(1000), DT_F64), *kept[100];
  for (int64_t k = 0; k < 100; k++) kept[k] = tensor_snapshot(t_narrow(t, 0, 400 + k, 100));
  int64_t live = mem_live_bytes();
  CHECK(tensor_write_begin(t, false));
  for (int64_t k = 0; k < 1000; k++) tensor_set_f(t, k, 1);
  CHECK(mem_live_bytes() - live < 2000); /* 199 numbers instead of 10,000 */
  for (int k = 0; k < 100; k++) CHECK(tensor_get_f(kept[k], 0) == 0 && tensor_get_f(t, k) == 1);
  CHECK(tensor_data(kept[7]) == tensor_data(kept[0]) + 7 * 8);
}

static void a_snapshot_may_be_written_to_itself(void) {
  Tensor *t = VECTOR(DT_F64, 1, 2, 3), *kept = tensor_snapshot(t), *copy = tensor_snapshot(kept);
  t_fill_(copy, tensor_number(7, DT_F64));
  t_fill_(t_narrow(kept, 0, 0, 1), tensor_number(8, DT_F64));
  CHECK_VALUES(t, 1, 2, 3);
  CHECK_VALUES(kept, 8, 2, 3);
  CHECK_VALUES(copy, 7, 7, 7);
}

static bool rows_are(const Tensor *t, const Tensor *as) {
  bool same = true;
  for (int64_t i = 0; i < t->sizes[0]; i++)
    for (int64_t k = 0; k < t->sizes[1]; k++)
      same = same && tensor_get_i(t, i * t->strides[0] + k * t->strides[1]) ==
                         tensor_get_i(as, i * as->strides[0] + k * as->strides[1]);
  return same;
}

/* Parts at random places, of random layouts, against copies. */
static void snapshots_keep_their_elements_whatever_is_written(void) {
  enum { N = 60, KEPT = 40 };
  Tensor *t = tensor_zeros(SIZES(N), DT_I32), *kept[KEPT] = {NULL}, *copies[KEPT];
  uint32_t random = 7;
#define DRAWN(n) ((int64_t)((random = random * 1664525u + 1013904223u) >> 16) % (n))
  for (int round = 0; round < 4000; round++) {
    int64_t rows = 1 + DRAWN(4)
    , columns = 1 + DRAWN(5)
    , step = 1 + DRAWN(3)
    , skip = 1 + DRAWN(9);
    int64_t strides[2] = {skip, step}, sizes[2] = {rows, columns};
    int64_t end = (rows - 1) * skip + (columns - 1) * step;
    int32_t mark = pool_mark();
    Tensor *view = tensor_alias(t, 2, sizes, strides, DRAWN(N - end));
    int64_t k = DRAWN(KEPT);
    if (DRAWN(3)) {
      if (kept[k]) tensor_release(kept[k]), tensor_release(copies[k]);
      tensor_retain(kept[k] = tensor_snapshot(view));
      tensor_retain(copies[k] = t_clone(view));
    } else {
      Tensor *to = DRAWN(8)
      || !kept[k] ? DRAWN(9)
      ? t_select(view, 0, 0) : t : kept[k];
      if (to == kept[k]) t_fill_(copies[k], tensor_number(-round, DT_I32));
      t_fill_(to, tensor_number(to == kept[k] ? -round : round, DT_I32));
    }
    if (round % 50 == 0 || round > 3900)
      for (int i = 0; i < KEPT; i++)
        if (kept[i]) CHECK(rows_are(kept[i], copies[i]));
    pool_release(mark, NULL);
  }
  for (int i = 0; i < KEPT; i++) tensor_release(kept[i]), tensor_release(copies[i]);
}

static void a_snapshot_of_an_exported_tensor_is_a_copy(void) {
  Tensor *t = VECTOR(DT_F32, 1, 2);
  CHECK(tensor_export(t));
  char *address = tensor_data(t);
  Tensor *kept = tensor_snapshot(t);
  CHECK(!tensor_same_memory(kept, t));
  element_store_f(address, DT_F32, 5); /* the host writes without asking */
  CHECK_VALUES(kept, 1, 2);
  t_fill_(t, tensor_number(8, DT_F32));
  CHECK(tensor_data(t) == address);
  tensor_unexport(t);
}

static void snapshots_of_an_exported_tensor_share_one_copy_until_a_write(void) {
  Tensor *t = VECTOR(DT_F32, 1, 2);
  CHECK(tensor_export(t));
  Tensor *one = tensor_snapshot(t), *same = tensor_snapshot(t);
  CHECK(one->storage->bytes == same->storage->bytes);
  element_store_f(tensor_data(t), DT_F32, 5);
  Tensor *other = tensor_snapshot(t), *part = tensor_snapshot(t_narrow(t, 0, 1, 1));
  CHECK(other->storage->bytes != one->storage->bytes);
  CHECK(part->storage->bytes->n_bytes == 4);
  CHECK_VALUES(one, 1, 2);
  CHECK_VALUES(other, 5, 2);
  CHECK_VALUES(part, 2);
  t_fill_(other, tensor_number(7, DT_F32)); /* the latest copy itself */
  CHECK_VALUES(tensor_snapshot(t), 5, 2);
  tensor_unexport(t);
}

static void pinned_bytes_stay_until_the_storage_grows(void) {
  Tensor *t = VECTOR(DT_F32, 1, 2), *before = tensor_snapshot(t);
  CHECK(tensor_pin(t) && tensor_pin(t));
  char *address = tensor_data(t);
  element_store_f(address, DT_F32, 5);
  Tensor *kept = tensor_snapshot(t);
  t_fill_(t, tensor_number(8, DT_F32));
  CHECK(tensor_data(t) == address);
  CHECK_VALUES(before, 1, 2);
  CHECK_VALUES(kept, 5, 2);
  storage_unpin(t->storage, true);
  CHECK(tensor_resize(t, 1, (int64_t[]){100}));
  CHECK(tensor_data(t) != address);
  CHECK(t->storage->exports == 1);
  storage_unpin(t->storage, false);
  CHECK(!t->storage->exports);
}

static void a_pin_that_ended_costs_nothing_more(void) {
  Tensor *t = VECTOR(DT_F32, 1, 2);
  CHECK(tensor_pin(t) && tensor_snapshot(t) && t->storage->copy);
  storage_unpin(t->storage, false);
  CHECK(!t->storage->copy && tensor_same_memory(tensor_snapshot(t), t));
}

static void a_pin_outlives_its_storage(void) {
  int64_t live = mem_live_bytes();
  int32_t mark = pool_mark();
  Tensor *t = tensor_zeros(SIZES(1000), DT_F32);
  CHECK(tensor_pin(t));
  Storage *s = t->storage;
  pool_release(mark, NULL);
  CHECK(mem_live_bytes() == live + (int64_t)sizeof *s);
  storage_unpin(s, true);
  CHECK(mem_live_bytes() == live);
}

static void exporting_a_tensor_with_snapshots_gives_it_bytes_of_its_own(void) {
  Tensor *t = VECTOR(DT_F32, 1, 2), *kept = tensor_snapshot(t);
  CHECK(tensor_export(t));
  element_store_f(tensor_data(t), DT_F32, 5);
  CHECK_VALUES(kept, 1, 2);
  tensor_unexport(t);
}

static void bytes_are_stolen_only_where_no_one_can_tell(void) {
  Tensor *to = VECTOR(DT_F32, 1, 2), *from = VECTOR(DT_F32, 3, 4);
  CHECK(tensor_steal_bytes(to, from));
  CHECK_VALUES(to, 3, 4);
  CHECK(!tensor_steal_bytes(to, VECTOR(DT_F64, 1, 2)));
  CHECK(!tensor_steal_bytes(t_narrow(to, 0, 0, 1), VECTOR(DT_F32, 5)));
  Tensor *shared = VECTOR(DT_F32, 6, 7);
  CHECK(t_view(shared, SIZES(2)) && !tensor_steal_bytes(to, shared));
}

static void resizing_keeps_the_bytes_that_fit(void) {
  Tensor *t = VECTOR(DT_I64, 1, 2, 3);
  CHECK(tensor_resize(t, SIZES(2, 3)));
  CHECK(t->ndim == 2 && t->numel == 6 && tensor_get_i(t, 2) == 3);
  CHECK(tensor_resize(t, SIZES(1, 1, 1, 1, 2)));
  CHECK_VALUES(t, 1, 2);
}

static void elements_convert_as_the_types_say(void) {
  char at[8];
  element_store_f(at, DT_U8, 255);
  CHECK(element_load_i(at, DT_U8) == 255);
  element_store_i(at, DT_I8, 200); /* wraps */
  CHECK(element_load_i(at, DT_I8) == -56);
  element_store_f(at, DT_BOOL, 0.5);
  CHECK(element_load_i(at, DT_BOOL) == 1);
  CHECK(int_from_double(NAN) == INT64_MIN && int_from_double(1e300) == INT64_MIN &&
        int_from_double(-2.9) == -2);
}

static void promotion_ranks_kinds_then_widths_and_numbers_last(void) {
  Tensor *bytes = VECTOR(DT_U8, 1), *shorts = VECTOR(DT_I16, 1), *halves = VECTOR(DT_F32, 1);
  CHECK(elementwise_result_dtype(2, (Tensor *[]){bytes, VECTOR(DT_I8, 1)}) == DT_I16);
  CHECK(elementwise_result_dtype(2, (Tensor *[]){shorts, halves}) == DT_F32);
  CHECK(elementwise_result_dtype(2, (Tensor *[]){shorts, tensor_wrapped_i(5)}) == DT_I16);
  CHECK(elementwise_result_dtype(2, (Tensor *[]){shorts, tensor_wrapped_f(0.5)}) == DT_F32);
  /* 0-dim: of lower rank */
  CHECK(elementwise_result_dtype(2, (Tensor *[]){halves, tensor_number(1, DT_F64)}) == DT_F32);
  CHECK(elementwise_result_dtype(2, (Tensor *[]){halves, VECTOR(DT_F64, 1)}) == DT_F64);
}

static void the_pool_frees_down_to_its_mark_and_keeps_one(void) {
  int64_t live = tensor_live_count();
  int32_t mark = pool_mark();
  Tensor *kept = NULL;
  for (int i = 0; i < 1000; i++) { /* grows the pool on the way */
    Tensor *t = VECTOR(DT_F32, (double)i);
    if (i == 500) kept = t;
  }
  pool_release(mark, kept);
  CHECK(tensor_live_count() == live + 1 && pool_mark() == mark + 1);
  CHECK_VALUES(kept, 500);
}

int main(void) {
  RUN(contiguous_strides_follow_the_sizes);
  RUN(a_number_and_an_empty_tensor_have_their_shapes);
  RUN(sizes_that_cannot_be_are_refused);
  RUN(shapes_broadcast_from_the_last_dimension);
  RUN(dimensions_count_from_both_ends);
  RUN(views_share_elements_and_the_version);
  RUN(a_snapshot_shares_memory_until_the_first_write);
  RUN(a_write_to_all_of_a_storage_leaves_the_old_memory_to_the_snapshot);
  RUN(a_write_beside_a_snapshot_moves_nothing);
  RUN(one_snapshot_moves_for_all_of_the_same_elements);
  RUN(snapshots_that_overlap_move_together);
  RUN(a_snapshot_may_be_written_to_itself);
  RUN(snapshots_keep_their_elements_whatever_is_written);
  RUN(a_snapshot_of_an_exported_tensor_is_a_copy);
  RUN(snapshots_of_an_exported_tensor_share_one_copy_until_a_write);
  RUN(pinned_bytes_stay_until_the_storage_grows);
  RUN(a_pin_that_ended_costs_nothing_more);
  RUN(a_pin_outlives_its_storage);
  RUN(exporting_a_tensor_with_snapshots_gives_it_bytes_of_its_own);
  RUN(bytes_are_stolen_only_where_no_one_can_tell);
  RUN(resizing_keeps_the_bytes_that_fit);
  RUN(elements_convert_as_the_types_say);
  RUN(promotion_ranks_kinds_then_widths_and_numbers_last);
  RUN(the_pool_frees_down_to_its_mark_and_keeps_one);
  return finish();
}
