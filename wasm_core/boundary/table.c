/* The op table as data: ops.def expanded twice, into the functions that run rows and the array
 * of rows. */
#include "boundary/services.h"
#include "call/call.h"
#include "ops/op.h"
#include "tape/forward.h"

#define T(k) arg_tensor(c, k)
#define I(k) arg_int(c, k)
#define F(k) arg_float(c, k)
#define B(k) arg_bool(c, k)
#define D(k) arg_dtype(c, k)
#define IL(k) arg_ints(c, k)
#define TL(k) arg_tensors(c, k)
#define S(k) arg_str(c, k)
#define GIVEN(k) arg_given(c, k)
/* A factor that is 1 unless given otherwise; NULL for 1, which needs no multiplication. */
#define ALPHA(k) (c->v[k].tag == TAG_INT && c->v[k].i == 1 ? NULL : arg_tensor(c, k))
#define PARAM(k) (c->n_args > (k) ? arg_float(c, k) : 0)

#define PASTE_(family, line) run_##family##_##line
#define PASTE(family, line) PASTE_(family, line)
#define RUN PASTE(FAMILY, __LINE__)

#define OP(flags, schema, expression) \
  static void RUN(Call *c) { ret_tensor(c, expression); }
#define OPX(flags, schema, ...) \
  static void RUN(Call *c) {    \
    (void)c;                    \
    __VA_ARGS__;                \
  }
#define UNARY(flags, name, ...) OP(flags, "", t_##name(T(0)))
#define UNARY_P(flags, name, ...) OP(flags, "", t_##name(T(0), PARAM(1), PARAM(2), PARAM(3)))
#define BINARY(flags, name, ...) OP(flags, "", t_##name(T(0), T(1)))
#define COMPARE(flags, name, ...) OP(flags, "", t_##name(T(0), T(1)))
#define PREDICATE(flags, name, ...) OP(flags, "", t_##name(T(0)))
#include "ops/ops.def"

#define OP(flags, schema, ...) {flags, schema, RUN},
#define OPX(flags, schema, ...) {flags, schema, RUN},
#define UNARY(flags, name, ...) {"d" flags, #name "(Tensor self) -> Tensor", RUN},
#define UNARY_P(flags, name, Node_, schema, ...) {"d" flags, schema, RUN},
#define BINARY(flags, name, Node_, schema, ...) {"d" flags, schema, RUN},
#define COMPARE(flags, name, schema, ...) {"d" flags, schema, RUN},
#define PREDICATE(flags, name, ...) {"d" flags, #name "(Tensor self) -> Tensor", RUN},
const Row op_rows[] = {
#include "ops/ops.def"
};
const int n_op_rows = sizeof op_rows / sizeof *op_rows;
