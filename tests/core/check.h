/* What the C tests share: checks that name their line, a frame to call through, tensors from
 * numbers.
 *
 * Each tests/core/x.c is a program of its own, linked with all of wasm_core under ASan and
 * UBSan. RUN runs one test and then holds it to leaving nothing: no error, no tensor, no node,
 * no warning. */
#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boundary/pg.h"
#include "ground/memory.h"
#include "ops/op.h"
#include "tape/graph.h"

/* An allocation that no machine could serve is an error to report, as it is in the binary. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }

static int n_failed;

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      n_failed++;                                                             \
    }                                                                         \
  } while (0)

#define CHECK_TEXT(got, expected) check_text(__FILE__, __LINE__, (got), (expected))
__attribute__((unused)) static void check_text(const char *file, int line, const char *got,
                                               const char *expected) {
  if (got && strcmp(got, expected) == 0) return;
  fprintf(stderr, "%s:%d: got      %s\n%s:%d: expected %s\n", file, line, got ? got : "nothing",
          file, line, expected);
  n_failed++;
}

/* The error that is set, and clears it. */
#define CHECK_FAILED(status, message)                            \
  do {                                                           \
    CHECK(status_now == (status));                               \
    check_text(__FILE__, __LINE__, status_message(), (message)); \
    status_clear();                                              \
  } while (0)

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
#define SIZES(...) \
  COUNT(((int64_t[]){__VA_ARGS__})), (const int64_t[]) { __VA_ARGS__ }

/* A tensor of these numbers with one dimension. */
#define VECTOR(dtype, ...) \
  vector((dtype), COUNT(((double[]){__VA_ARGS__})), (const double[]){__VA_ARGS__})
__attribute__((unused)) static Tensor *vector(DType dtype, int n, const double *values) {
  Tensor *t = tensor_empty(1, (const int64_t[]){n}, dtype);
  for (int i = 0; t && i < n; i++)
    element_store_f(tensor_data(t) + i * dtype_bytes(dtype), dtype, values[i]);
  return t;
}

__attribute__((unused)) static Tensor *leaf(Tensor *t) {
  if (t) t->flags |= FLAG_REQUIRES_GRAD;
  return t;
}

/* Whether t has these elements, in logical order. */
#define CHECK_VALUES(t, ...)                                              \
  check_values(__FILE__, __LINE__, (t), COUNT(((double[]){__VA_ARGS__})), \
               (const double[]){__VA_ARGS__})
__attribute__((unused)) static void check_values(const char *file, int line, Tensor *t, int n,
                                                 const double *expected) {
  Tensor *c = t_contiguous(t);
  bool same = c && c->numel == n;
  for (int i = 0; same && i < n; i++) same = tensor_get_f(c, i) == expected[i];
  if (same) return;
  fprintf(stderr, "%s:%d: got", file, line);
  for (int i = 0; c && i < c->numel; i++) fprintf(stderr, " %.17g", tensor_get_f(c, i));
  fprintf(stderr, "%s\n", failed() ? status_message() : c ? "" : " nothing");
  n_failed++;
}

/* --- the host --- */

/* a test's callback; results: none by default */
static int32_t (*on_host)(int32_t kind, int32_t id, int32_t n);

int32_t pg_host(int32_t kind, int32_t id, int32_t n) {
  int64_t handles[64]; /* results may go where the arguments stand */
  if (n) memcpy(handles, (const void *)(uintptr_t)pg_frame()->host_in, (size_t)n * sizeof *handles);
  pg_frame()->host_n_out = 0;
  int32_t status = on_host ? on_host(kind, id, n) : 0;
  for (int i = 0; i < n; i++) tensor_release((Tensor *)(uintptr_t)handles[i]);
  return status;
}

/* --- calls --- */

__attribute__((unused)) static int row_of(const char *name) {
  size_t n = strlen(name);
  const char *text;
  for (int i = 0; (text = pg_describe(i)) != NULL; i++) {
    const char *schema = strchr(text, ' ') + 1;
    if (strncmp(schema, name, n) == 0 && schema[n] == '(') return i;
  }
  fprintf(stderr, "no op %s\n", name);
  exit(1);
}

/* Starts a call with no arguments; `argument` and `keyword` add to it. */
__attribute__((unused)) static PgFrame *call_begin(const char *op, int mode) {
  PgFrame *f = pg_frame();
  f->row = row_of(op);
  f->mode = (uint8_t)mode;
  f->n_positional = f->n_keyword = f->n_release = 0;
  f->tags = 0;
  return f;
}

__attribute__((unused)) static void argument(PgFrame *f, Tag tag, int64_t slot) {
  int k = f->n_positional + f->n_keyword;
  f->slots[k] = slot;
  f->tags |= (uint64_t)tag << (4 * k);
  f->n_positional++;
}

__attribute__((unused)) static void keyword(PgFrame *f, const char *name, Tag tag, int64_t slot) {
  char saved[64]; /* a list of this call may stand where the name goes */
  memcpy(saved, f->data, sizeof saved);
  snprintf(f->data, sizeof saved, "%s", name);
  f->keywords[f->n_keyword] = pg_intern();
  memcpy(f->data, saved, sizeof saved);
  argument(f, tag, slot);
  f->n_positional--;
  f->n_keyword++;
}

__attribute__((unused)) static int64_t handle(const Tensor *t) { return (int64_t)(uintptr_t)t; }
__attribute__((unused)) static int64_t bits(double v) {
  int64_t i;
  memcpy(&i, &v, sizeof i);
  return i;
}

/* The result as a tensor of the pool, or NULL. */
__attribute__((unused)) static Tensor *call_tensor(void) {
  int64_t r = pg_call();
  return r > 0 ? pool_push((Tensor *)(uintptr_t)(r & ~PG_PENDING)) : NULL;
}

/* --- running --- */

#define RUN(test) run(#test, test)
static void run(const char *name, void (*test)(void)) {
  int before = n_failed;
  int64_t live = pg_live_count();
  grad_mode = true;
  pg_frame()->most_nested = 96;
  test();
  on_host = NULL;
  if (failed()) fprintf(stderr, "%s left the error: %s\n", name, status_message());
  n_failed += failed();
  status_clear();
  pool_release(0, NULL);
  scratch_release(0);
  pg_frame()->n_dropped = 0;
  const char *warning = pg_warning();
  if (warning) fprintf(stderr, "%s left the warning: %s\n", name, warning);
  n_failed += warning != NULL;
  if (pg_live_count() != live)
    fprintf(stderr, "%s left %lld tensors or nodes\n", name, (Shown)(pg_live_count() - live));
  n_failed += pg_live_count() != live;
  printf("  %s %s\n", n_failed == before ? "ok    " : "FAILED", name);
}

static int finish(void) { return n_failed ? EXIT_FAILURE : EXIT_SUCCESS; }

#endif
