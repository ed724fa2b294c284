/* The text of tensors against PyTorch 2.13's repr, through the op that Python's repr calls. */
#include "check.h"

static const char *shown(Tensor *t) {
  PgFrame *f = call_begin("_repr", 0);
  argument(f, TAG_TENSOR, handle(t));
  argument(f, TAG_STR, (int64_t)(uintptr_t)strcpy(f->data, "tensor"));
  if (pg_call() != 0 || f->result_tag != TAG_STR) return NULL;
  return (const char *)(uintptr_t)f->result;
}

static Tensor *counting(int n, DType dtype) {
  Tensor *t = tensor_empty(1, (const int64_t[]){n}, dtype);
  for (int i = 0; i < n; i++) element_store_i(tensor_data(t) + i * dtype_bytes(dtype), dtype, i);
  return t;
}

static void numbers_share_a_format_and_a_width(void) {
  CHECK_TEXT(shown(VECTOR(DT_F32, 1.5, 2, 3)), "tensor([1.5000, 2.0000, 3.0000])");
  CHECK_TEXT(shown(t_view(VECTOR(DT_I64, 1, -20, 300, 4), SIZES(2, 2))),
             "tensor([[  1, -20],\n        [300,   4]])");
  CHECK_TEXT(shown(VECTOR(DT_BOOL, 1, 0)), "tensor([ True, False])");
  CHECK_TEXT(shown(VECTOR(DT_F32, 1e-5, 1, 1e5)), "tensor([1.0000e-05, 1.0000e+00, 1.0000e+05])");
}

static void a_dtype_that_is_not_the_default_is_named(void) {
  CHECK_TEXT(shown(tensor_number(3.14159, DT_F64)), "tensor(3.1416, dtype=torch.float64)");
  CHECK_TEXT(shown(tensor_empty(SIZES(0), DT_I64)), "tensor([], dtype=torch.int64)");
}

static void what_is_no_number_is_shown(void) {
  CHECK_TEXT(shown(VECTOR(DT_F32, (double)NAN, (double)INFINITY, -1)), "tensor([nan, inf, -1.])");
}

static void the_shape_of_emptiness_is_shown(void) {
  CHECK_TEXT(shown(tensor_empty(SIZES(2, 0), DT_F32)), "tensor([], size=(2, 0))");
}

static void many_elements_are_summarised(void) {
  CHECK_TEXT(shown(counting(2000, DT_I64)), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
}

static void strides_do_not_show(void) {
  CHECK_TEXT(shown(t_transpose(t_view(counting(6, DT_I64), SIZES(2, 3)), 0, 1)),
             "tensor([[0, 3],\n        [1, 4],\n        [2, 5]])");
}

static void blocks_stand_apart(void) {
  CHECK_TEXT(shown(t_view(counting(27, DT_F32), SIZES(3, 3, 3))),
             "tensor([[[ 0.,  1.,  2.],\n         [ 3.,  4.,  5.],\n         [ 6.,  7.,  8.]],\n\n "
             "       [[ 9., 10., 11.],\n         [12., 13., 14.],\n         [15., 16., 17.]],\n\n  "
             "      [[18., 19., 20.],\n         [21., 22., 23.],\n         [24., 25., 26.]]])");
}

static void history_is_named(void) {
  Tensor *x = leaf(VECTOR(DT_F32, 1, 2));
  CHECK_TEXT(shown(x), "tensor([1., 2.], requires_grad=True)");
  CHECK_TEXT(shown(t_mul(x, x)), "tensor([1., 4.], grad_fn=<MulBackward0>)");
}

int main(void) {
  RUN(numbers_share_a_format_and_a_width);
  RUN(a_dtype_that_is_not_the_default_is_named);
  RUN(what_is_no_number_is_shown);
  RUN(the_shape_of_emptiness_is_shown);
  RUN(many_elements_are_summarised);
  RUN(strides_do_not_show);
  RUN(blocks_stand_apart);
  RUN(history_is_named);
  return finish();
}
