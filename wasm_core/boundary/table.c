/* The op table as data: ops.def and services.def, expanded twice, into the functions that run rows
 * and the array of rows. */
#include "boundary/services.h"
#include "call/call.h"
#include "complex_rows.h"
#include "create_rows.h"
#include "elementwise_rows.h"
#include "fft_rows.h"
#include "ground/poll.h"
#include "index_rows.h"
#include "linalg_rows.h"
#include "matmul_rows.h"
#include "nn_rows.h"
#include "ops/dispatch.h"
#include "optim_rows.h"
#include "order_rows.h"
#include "reduce_rows.h"
#include "sparse_rows.h"
#include "view_rows.h"
#include "walk/forward.h"

#define T(k) arg_tensor(c, k)
#define I(k) arg_int(c, k)
#define F(k) arg_float(c, k)
#define B(k) arg_bool(c, k)
#define D(k) arg_dtype(c, k)
#define IL(k) arg_ints(c, k)
#define BL(k) arg_bools(c, k)
#define TL(k) arg_tensors(c, k)
#define S(k) arg_str(c, k)
#define GIVEN(k) arg_given(c, k)
/* A factor, by default 1; NULL for 1, which needs no multiplication. */
#define ALPHA(k) (c->v[k].tag == TAG_INT && c->v[k].i == 1 ? NULL : arg_tensor(c, k))
#define PARAM(k) (c->n_args > (k) ? arg_float(c, k) : 0)

/* A row's function is named by its op and its line: row_matmul_12. */
#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define RUN(row) PASTE(row, __LINE__)

#define OP(words, name, schema, expression) \
  static void RUN(row_##name)(Call * c) { ret_tensor(c, expression); }
#define OPX(words, name, schema, ...)     \
  static void RUN(row_##name)(Call * c) { \
    (void)c;                              \
    __VA_ARGS__;                          \
  }
/* Functions of rows in elementwise.def begin with `each_`, because other rows have the same
 * names. */
#define EACH(name, expression) \
  static void RUN(each_##name)(Call * c) { ret_tensor(c, expression); }
#define UNARY(words, name, ...) EACH(name, t_##name(T(0)))
#define UNARY_P(words, name, ...) EACH(name, t_##name(T(0), PARAM(1), PARAM(2), PARAM(3)))
#define UNARY_P_AS(words, host, name, ...) EACH(host, t_##name(T(0), PARAM(1), PARAM(2), PARAM(3)))
#define BINARY(words, name, ...) EACH(name, t_##name(T(0), T(1)))
#define BINARY_AS(words, host, name, ...) EACH(host, t_##name(T(0), T(1)))
#define COMPARE(words, name, ...) EACH(name, t_##name(T(0), T(1)))
#define PREDICATE(words, name, ...) EACH(name, t_##name(T(0)))
#include "ops/ops.def"
/* after the rows that users call */
#include "boundary/services.def"
#undef OP
#undef OPX

/* `words_` may set further fields: see BATCH and WITH. */
#define OP(words_, name_, schema_, ...) \
  {.name = #name_,                      \
   .schema = #name_ schema_,            \
   .run = RUN(row_##name_),             \
   .effort = EFFORT,                    \
   .words = words_},
#define OPX OP
#define UNARY(words_, name_, ...)              \
  {.name = #name_,                             \
   .schema = #name_ "(Tensor self) -> Tensor", \
   .run = RUN(each_##name_),                   \
   .effort = EFFORT,                           \
   .words = DIRECT | words_},
#define UNARY_P(words_, name_, Node_, schema_, ...) \
  {.name = #name_,                                  \
   .schema = #name_ schema_,                        \
   .run = RUN(each_##name_),                        \
   .effort = EFFORT,                                \
   .words = DIRECT | words_},
#define UNARY_P_AS(words_, name_, c_name, Node_, schema_, ...) \
  {.name = #name_,                                             \
   .schema = #name_ schema_,                                   \
   .run = RUN(each_##name_),                                   \
   .effort = EFFORT,                                           \
   .words = DIRECT | words_},
#define BINARY UNARY_P
#define BINARY_AS UNARY_P_AS
#define COMPARE(words_, name_, schema_, ...) \
  {.name = #name_,                           \
   .schema = #name_ schema_,                 \
   .run = RUN(each_##name_),                 \
   .effort = EFFORT,                         \
   .words = DIRECT | words_},
#define PREDICATE UNARY
static const Row rows[] = {
#include "ops/ops.def"
/* after the rows that users call */
#include "boundary/services.def"
#undef OP
#undef OPX
#undef EFFORT
};

void table_begin(void) {
  op_rows = rows;
  n_op_rows = sizeof rows / sizeof *rows;
}
