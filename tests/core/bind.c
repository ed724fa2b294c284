/* Calls through the frame: defaults, keywords, overloads, lists, in-place and out= forms, and
 * what is said of arguments that fit nothing. The messages are PyTorch 2.13's. */
#include "check.h"

#include "boundary/bind.h"
#include "call/schema.h"

static void expect_failure(Status status, const char *message) {
  int64_t r = pg_call();
  CHECK(r == -(int64_t)status);
  if (r < 0) CHECK_TEXT(pg_frame()->message, message);
}

/* A list of the call being written, after `at` bytes of the frame's data. */
static int64_t list(PgFrame *f, size_t at, int n, const void *values) {
  memcpy(f->data + at, values, (size_t)n * 8);
  return (int64_t)(uint32_t)(uintptr_t)(f->data + at) | (int64_t)n << 32;
}

static void arguments_that_are_absent_have_their_defaults(void) {
  Tensor *x = VECTOR(DT_F32, 1, 2, 3);
  PgFrame *f = call_begin("add", 0);
  argument(f, TAG_TENSOR, handle(x));
  argument(f, TAG_INT, 10);
  CHECK_VALUES(call_tensor(), 11, 12, 13);
}

static void keywords_find_their_argument(void) {
  Tensor *x = VECTOR(DT_F32, 1, 2, 3);
  PgFrame *f = call_begin("add", 0);
  argument(f, TAG_TENSOR, handle(x));
  keyword(f, "alpha", TAG_FLOAT, bits(0.5));
  keyword(f, "other", TAG_TENSOR, handle(x));
  CHECK_VALUES(call_tensor(), 1.5, 3, 4.5);
}

static void numpys_names_are_known(void) {
  Tensor *x = t_view(VECTOR(DT_F64, 1, 2, 3, 4), SIZES(2, 2));
  PgFrame *f = call_begin("sum", 0);
  keyword(f, "input", TAG_TENSOR, handle(x));
  keyword(f, "axis", TAG_INT, 0);
  keyword(f, "keepdims", TAG_BOOL, 1);
  Tensor *r = call_tensor();
  CHECK_VALUES(r, 4, 6);
  CHECK(r && r->ndim == 2);
}

static void the_first_overload_that_fits_is_taken(void) {
  Tensor *x = t_view(VECTOR(DT_F64, 1, 2, 3, 4), SIZES(2, 2));
  PgFrame *f = call_begin("sum", 0);
  argument(f, TAG_TENSOR, handle(x));
  CHECK_VALUES(call_tensor(), 10);
  f = call_begin("sum", 0);
  argument(f, TAG_TENSOR, handle(x));
  argument(f, TAG_INTS, list(f, 0, 1, (int64_t[]){-1}));
  CHECK_VALUES(call_tensor(), 3, 7);
}

static void lists_travel_in_the_frame(void) {
  Tensor *x = VECTOR(DT_F32, 0, 1, 2, 3, 4, 5), *y = VECTOR(DT_F32, 6, 7);
  PgFrame *f = call_begin("reshape", 0);
  argument(f, TAG_TENSOR, handle(x));
  argument(f, TAG_INTS, list(f, 0, 2, (int64_t[]){2, -1}));
  Tensor *r = call_tensor();
  CHECK(r && r->ndim == 2 && r->sizes[1] == 3);
  f = call_begin("cat", 0);
  argument(f, TAG_TENSORS, list(f, 64, 2, (int64_t[]){handle(x), handle(y)}));
  CHECK_VALUES(call_tensor(), 0, 1, 2, 3, 4, 5, 6, 7);
}

static void sizes_may_come_as_separate_arguments(void) {
  PgFrame *f = call_begin("view", PG_METHOD);
  argument(f, TAG_TENSOR, handle(VECTOR(DT_F32, 1, 2, 3, 4)));
  argument(f, TAG_INT, 2);
  argument(f, TAG_INT, 2);
  Tensor *r = call_tensor();
  CHECK(r && r->ndim == 2);
}

static void in_place_forms_change_and_return_their_tensor(void) {
  Tensor *x = VECTOR(DT_F32, 1, 4);
  PgFrame *f = call_begin("sqrt", PG_METHOD | PG_INPLACE);
  argument(f, TAG_TENSOR, handle(x));
  CHECK(call_tensor() == x);
  CHECK_VALUES(x, 1, 2);
  CHECK(tensor_version(x) == 1);
}

static void out_receives_the_result(void) {
  Tensor *x = VECTOR(DT_F32, 1, 4), *out = tensor_empty(SIZES(2), DT_F64);
  PgFrame *f = call_begin("sqrt", 0);
  argument(f, TAG_TENSOR, handle(x));
  keyword(f, "out", TAG_TENSOR, handle(out));
  CHECK(call_tensor() == out);
  CHECK_VALUES(out, 1, 2);
}

static void several_results_come_as_a_list(void) {
  PgFrame *f = call_begin("topk", 0);
  argument(f, TAG_TENSOR, handle(VECTOR(DT_F32, 3, 9, 4)));
  argument(f, TAG_INT, 2);
  CHECK(pg_call() == 0 && f->result_tag == TAG_TENSORS && f->result_count == 2);
  const int64_t *handles = (const int64_t *)(uintptr_t)f->result;
  CHECK_VALUES(pool_push((Tensor *)(uintptr_t)handles[0]), 9, 4);
  CHECK_VALUES(pool_push((Tensor *)(uintptr_t)handles[1]), 1, 2);
}

static void what_does_not_fit_one_schema_is_explained(void) {
  Tensor *x = VECTOR(DT_F32, 1, 2);
  PgFrame *f = call_begin("cumsum", 0);
  argument(f, TAG_TENSOR, handle(x));
  expect_failure(ERR_TYPE, "cumsum() missing 1 required positional arguments: \"dim\"");
  f = call_begin("add", 0);
  argument(f, TAG_TENSOR, handle(x));
  argument(f, TAG_INT, 1);
  keyword(f, "bogus", TAG_INT, 3);
  expect_failure(ERR_TYPE, "add() got an unexpected keyword argument 'bogus'");
  f = call_begin("neg", 0);
  argument(f, TAG_TENSOR, handle(x));
  argument(f, TAG_TENSOR, handle(x));
  expect_failure(ERR_TYPE, "neg() takes 1 positional argument but 2 were given");
  f = call_begin("cumsum", 0);
  argument(f, TAG_TENSOR, handle(x));
  argument(f, TAG_INT, 0);
  keyword(f, "dim", TAG_INT, 0);
  expect_failure(ERR_TYPE, "cumsum() got multiple values for argument 'dim'");
  f = call_begin("mm", 0);
  argument(f, TAG_TENSOR, handle(x));
  argument(f, TAG_STR, (int64_t)(uintptr_t)strcpy(f->data, "x"));
  expect_failure(ERR_TYPE, "mm(): argument 'mat2' (position 2) must be Tensor, not str");
}

static void what_fits_no_overload_is_explained(void) {
  PgFrame *f = call_begin("sort", 0);
  argument(f, TAG_TENSOR, handle(VECTOR(DT_F32, 1, 2)));
  argument(f, TAG_STR, (int64_t)(uintptr_t)strcpy(f->data, "x"));
  expect_failure(ERR_TYPE,
                 "sort() received an invalid combination of arguments - got (Tensor, str), but "
                 "expected one of:\n * (Tensor input, *, bool stable, int dim = -1, bool "
                 "descending = False, tuple of Tensors out = None)\n * (Tensor input, int dim = "
                 "-1, bool descending = False, *, tuple of Tensors out = None)\n");
}

static void errors_of_an_op_reach_the_host_and_are_gone(void) {
  Tensor *x = VECTOR(DT_F32, 1, 2), *y = VECTOR(DT_F32, 1, 2, 3);
  PgFrame *f = call_begin("add", 0);
  argument(f, TAG_TENSOR, handle(x));
  argument(f, TAG_TENSOR, handle(y));
  expect_failure(
      ERR_RUNTIME,
      "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0");
  f = call_begin("neg", 0);
  argument(f, TAG_TENSOR, handle(x));
  CHECK_VALUES(call_tensor(), -1, -2);
}

static void released_handles_are_let_go_before_the_call(void) {
  Tensor *x = VECTOR(DT_F32, 1);
  tensor_retain(x);
  int32_t refs = x->refs;
  PgFrame *f = call_begin("is_grad_enabled", 0);
  f->n_release = 1;
  f->first_release = handle(x);
  CHECK(pg_call() == 0 && f->result_tag == TAG_BOOL && f->result == 1);
  CHECK(x->refs == refs - 1);
}

static void handles_that_are_no_tensors_are_refused(void) {
  static const int64_t nothing[32];
  PgFrame *f = call_begin("neg", 0);
  argument(f, TAG_TENSOR, (int64_t)(uintptr_t)nothing);
  CHECK(pg_call() < 0);
}

static void every_row_parses(void) {
  for (int i = 0; i < n_op_rows; i++) {
    PgFrame *f = pg_frame();
    f->row = i;
    f->mode = 0;
    f->n_positional = f->n_keyword = f->n_release = 0;
    f->tags = 0;
    keyword(f, "no_such_argument", TAG_INT, 0);
    CHECK(pg_call() == -ERR_TYPE); /* a schema that does not parse is a RuntimeError */
    if (pg_frame()->message && strstr(pg_frame()->message, "unknown type"))
      fprintf(stderr, "%s\n", pg_describe(i));
  }
}

int main(void) {
  RUN(arguments_that_are_absent_have_their_defaults);
  RUN(keywords_find_their_argument);
  RUN(numpys_names_are_known);
  RUN(the_first_overload_that_fits_is_taken);
  RUN(lists_travel_in_the_frame);
  RUN(sizes_may_come_as_separate_arguments);
  RUN(in_place_forms_change_and_return_their_tensor);
  RUN(out_receives_the_result);
  RUN(several_results_come_as_a_list);
  RUN(what_does_not_fit_one_schema_is_explained);
  RUN(what_fits_no_overload_is_explained);
  RUN(errors_of_an_op_reach_the_host_and_are_gone);
  RUN(released_handles_are_let_go_before_the_call);
  RUN(handles_that_are_no_tensors_are_refused);
  RUN(every_row_parses);
  return finish();
}
