/* pg_call2, by which hosts make nearly all calls: what it takes, and what it says of the result. Here
 * handles have more than 32 bits, so that a mark that lies among those of an address shows. */
#include "check.h"
#include "tape/host.h"

enum { ONE = 1, TWO = 2 };

static int64_t head(const char *op, int n, Tag first, Tag second, int mode) {
  return (int64_t)row_of(op) | (int64_t)n << 32 | (int64_t)first << 40 | (int64_t)second << 44 |
         (int64_t)mode << 48 | PG_HEAD;
}

/* The fresh tensor that came out, which is the test's. */
static Tensor *fresh(int64_t r) {
  CHECK(r > 0 && r < PG_PENDING);
  return r > 0 && r < PG_PENDING ? (Tensor *)(uintptr_t)r : NULL;
}

static void a_fresh_tensor_comes_as_its_handle(void) {
  Tensor *a = VECTOR(DT_F32, 1, 2), *b = VECTOR(DT_F32, 3, 5);
  Tensor *y = fresh(pg_call2(head("mul", TWO, TAG_TENSOR, TAG_TENSOR, 0), 0, handle(a), handle(b)));
  CHECK(handle(y) > UINT32_MAX); /* or these tests prove less than they say */
  CHECK_VALUES(y, 3, 10);
  CHECK(y && y->refs == 1);
  tensor_release(y);
}

static void numbers_are_parameters_too(void) {
  Tensor *a = VECTOR(DT_F32, 1, 2);
  Tensor *y = fresh(pg_call2(head("mul", TWO, TAG_TENSOR, TAG_FLOAT, 0), 0, handle(a), bits(2.5)));
  CHECK_VALUES(y, 2.5, 5);
  tensor_release(y);
}

static void a_call_in_place_says_so_and_gives_no_reference(void) {
  Tensor *a = VECTOR(DT_F32, 1, 2);
  int32_t refs = a->refs;
  CHECK(pg_call2(head("mul", TWO, TAG_TENSOR, TAG_FLOAT, PG_INPLACE | PG_METHOD), 0, handle(a),
                 bits(2)) == PG_SELF);
  CHECK(a->refs == refs);
  CHECK_VALUES(a, 2, 4);
}

static void a_view_is_marked(void) {
  Tensor *a = VECTOR(DT_F32, 1, 2, 3);
  int64_t r = pg_call2(head("unsqueeze", TWO, TAG_TENSOR, TAG_INT, PG_METHOD), 0, handle(a), 0);
  CHECK(r & PG_VIEW && r < PG_SELF);
  Tensor *y = (Tensor *)(uintptr_t)(r & ~PG_VIEW);
  CHECK(tensor_is(y) && y->ndim == 2 && y->storage == a->storage);
  tensor_release(y);
}

static void another_result_is_described_in_the_frame(void) {
  Tensor *a = VECTOR(DT_F32, 7);
  CHECK(pg_call2(head("item", ONE, TAG_TENSOR, 0, PG_METHOD), 0, handle(a), 0) == PG_DESCRIBED);
  CHECK(pg_frame()->result_tag == TAG_FLOAT && pg_frame()->result == bits(7));
  Tensor *b = VECTOR(DT_F32, 3, 1);
  CHECK(pg_call2(head("sort", ONE, TAG_TENSOR, 0, 0), 0, handle(b), 0) == PG_DESCRIBED);
  CHECK(pg_frame()->result_tag == TAG_TENSORS && pg_frame()->result_count == 2);
  const int64_t *sorted = (const int64_t *)(uintptr_t)pg_frame()->result;
  CHECK_VALUES((Tensor *)(uintptr_t)sorted[0], 1, 3);
  for (int i = 0; i < 2; i++) tensor_release((Tensor *)(uintptr_t)sorted[i]);
}

static void a_failure_gives_its_status_and_leaves_a_message(void) {
  Tensor *a = VECTOR(DT_F32, 1, 2), *b = VECTOR(DT_F32, 1, 2, 3);
  CHECK(pg_call2(head("mul", TWO, TAG_TENSOR, TAG_TENSOR, 0), 0, handle(a), handle(b)) ==
        (PG_FAILED | ERR_RUNTIME));
  CHECK(strstr(pg_frame()->message, "must match the size of tensor b (3)"));
  CHECK(pg_call2(head("mul", ONE, TAG_TENSOR, 0, 0), 0, handle(a), 0) == (PG_FAILED | ERR_TYPE));
  CHECK(strstr(pg_frame()->message, "missing 1 required positional argument"));
}

static void what_waits_for_the_host_is_told_with_the_result(void) {
  Tensor *a = VECTOR(DT_F32, 1, 2);
  host_drop(7);
  int64_t r = pg_call2(head("neg", ONE, TAG_TENSOR, 0, 0), 0, handle(a), 0);
  CHECK(r & PG_DESCRIBED && r & PG_PENDING);
  CHECK(pg_frame()->n_dropped == 1 && pg_frame()->dropped[0] == 7);
  Tensor *y = (Tensor *)(uintptr_t)(r & ~(PG_DESCRIBED | PG_PENDING));
  CHECK(tensor_is(y));
  CHECK_VALUES(y, -1, -2);
  tensor_release(y);
}

static void the_dead_are_let_go_of_first(void) {
  Tensor *dead = tensor_empty(1, (int64_t[]){4}, DT_F32), *a = VECTOR(DT_F32, 1);
  tensor_retain(dead);
  tensor_retain(dead);
  int32_t refs = dead->refs;
  pg_frame()->n_release = 1;
  pg_frame()->first_release = handle(dead);
  Tensor *y = fresh(pg_call2(head("neg", ONE, TAG_TENSOR, 0, 0), handle(dead), handle(a), 0));
  CHECK(dead->refs == refs - 2 && pg_frame()->n_release == 0);
  tensor_release(y);
}

static void a_prepared_frame_says_all_else_and_stays_as_it_is(void) {
  static PgFrame prepared; /* far from the frame that is on the heap */
  Tensor *a = VECTOR(DT_F32, 1, 2, 3);
  PgFrame *f = call_begin("sum", PG_PREPARED);
  argument(f, TAG_TENSOR, handle(a));
  keyword(f, "keepdim", TAG_BOOL, 1);
  keyword(f, "dim", TAG_INT, 0);
  memcpy(&prepared, f, sizeof prepared);
  int64_t call = (int64_t)row_of("sum") | (int64_t)PG_PREPARED << 48 | PG_HEAD;
  for (int i = 0; i < 2; i++) {
    Tensor *y = fresh(pg_call2(call, 0, (int64_t)(uintptr_t)&prepared, 0));
    CHECK(y && y->ndim == 1);
    CHECK_VALUES(y, 6);
    tensor_release(y);
  }
}

int main(void) {
  RUN(a_fresh_tensor_comes_as_its_handle);
  RUN(numbers_are_parameters_too);
  RUN(a_call_in_place_says_so_and_gives_no_reference);
  RUN(a_view_is_marked);
  RUN(another_result_is_described_in_the_frame);
  RUN(a_failure_gives_its_status_and_leaves_a_message);
  RUN(what_waits_for_the_host_is_told_with_the_result);
  RUN(the_dead_are_let_go_of_first);
  RUN(a_prepared_frame_says_all_else_and_stays_as_it_is);
  return finish();
}
