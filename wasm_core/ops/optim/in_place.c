/* Calls of rows in place; see in_place.h. */
#include "ops/optim/in_place.h"

#include "ops/op.h"
#include "ops/run.h"

static Value tensor(Tensor *t) { return (Value){.tag = TAG_TENSOR, .t = t}; }
static Value number(double f) { return (Value){.tag = TAG_FLOAT, .f = f}; }

static Tensor *run(const char *op, Tensor *x, int n, const Value *more) {
  if (failed()) return NULL;
  if (!x) return fail(ERR_RUNTIME, "a step lacks a state that its options ask for");
  Call c = {.row = row_of_op(op), .inplace = true, .n_args = 1 + n};
  c.v[0] = tensor(x);
  for (int i = 0; i < n; i++) {
    if (more[i].tag == TAG_TENSOR && !more[i].t) return NULL;
    c.v[1 + i] = more[i];
  }
  run_call_plain(&c);
  return failed() ? NULL : x;
}
#define RUN(op, x, ...) \
  run(op, x, sizeof((Value[]){__VA_ARGS__}) / sizeof(Value), (Value[]){__VA_ARGS__})

Tensor *in_place_add(Tensor *x, Tensor *y, double scale) {
  return RUN("add", x, tensor(y), number(scale));
}
Tensor *in_place_add_f(Tensor *x, double y) { return RUN("add", x, number(y)); }
Tensor *in_place_sub(Tensor *x, Tensor *y) { return RUN("sub", x, tensor(y)); }
Tensor *in_place_mul(Tensor *x, Tensor *y) { return RUN("mul", x, tensor(y)); }
Tensor *in_place_mul_f(Tensor *x, double y) { return RUN("mul", x, number(y)); }
Tensor *in_place_div(Tensor *x, Tensor *y) { return RUN("div", x, tensor(y)); }
Tensor *in_place_sqrt(Tensor *x) { return run("sqrt", x, 0, NULL); }
Tensor *in_place_rsqrt(Tensor *x) { return run("rsqrt", x, 0, NULL); }
Tensor *in_place_lerp(Tensor *x, Tensor *y, double weight) {
  return RUN("lerp", x, tensor(y), number(weight));
}
Tensor *in_place_addcmul(Tensor *x, Tensor *a, Tensor *b, double scale) {
  return RUN("addcmul", x, tensor(a), tensor(b), number(scale));
}
Tensor *in_place_addcdiv(Tensor *x, Tensor *a, Tensor *b, double scale) {
  return RUN("addcdiv", x, tensor(a), tensor(b), number(scale));
}
Tensor *in_place_clamp(Tensor *x, double least, double most) {
  return RUN("clamp", x, number(least), number(most));
}
Tensor *in_place_clamp_min(Tensor *x, double least) { return RUN("clamp_min", x, number(least)); }
Tensor *in_place_masked_fill(Tensor *x, Tensor *mask, double value) {
  return RUN("masked_fill", x, tensor(mask), number(value));
}
