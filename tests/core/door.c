/* The door of ops: who watched when an op was entered is told that it is left. */
#include "call/door.h"

#include "check.h"
#include "ops/op.h"

static int n_entered, n_left;
static const Watcher *after_entering;

static int32_t enter(__attribute__((unused)) const char *op, __attribute__((unused)) int n,
                     __attribute__((unused)) const Argument *v) {
  watcher = after_entering;
  return n_entered++;
}
static void leave(int32_t entry) {
  CHECK(entry == n_left);
  n_left++;
}
static const Watcher counting = {enter, leave};

static void nobody_is_told_where_nobody_watches(void) {
  watcher = NULL;
  n_entered = n_left = 0;
  CHECK(t_neg(tensor_zeros(0, NULL, DT_F32)));
  CHECK(n_entered == 0 && n_left == 0);
}

static void each_entry_is_left(void) {
  after_entering = watcher = &counting;
  n_entered = n_left = 0;
  CHECK(t_neg(tensor_zeros(0, NULL, DT_F32)));
  watcher = NULL;
  CHECK(n_entered == 1 && n_left == 1);
}

/* As a handler of a signal may, which runs while a watcher asks the host for the time. */
static void watching_may_end_within_an_op(void) {
  watcher = &counting;
  after_entering = NULL;
  n_entered = n_left = 0;
  CHECK(t_neg(tensor_zeros(0, NULL, DT_F32)));
  CHECK(n_entered == 1 && n_left == 1);
}

int main(void) {
  RUN(nobody_is_told_where_nobody_watches);
  RUN(each_entry_is_left);
  RUN(watching_may_end_within_an_op);
  return finish();
}
