/* Matrix products against three plain loops: shapes around the block sizes, all strides, alpha
 * and beta, and the promise that an element's bits depend on its row and column alone. */
#include "kernels/gemm.h"

#include "check.h"

static uint32_t state = 1;
static double noise(void) {
  state = state * 1664525u + 1013904223u;
  return (double)(state >> 8) / (1 << 24) - 0.5;
}

static const int64_t lengths[] = {0, 1, 2, 3, 4, 5, 8, 15, 17, 31, 64, 65, 130};

typedef struct {
  int64_t m, n, k;
  bool a_turned, b_turned, c_turned;
  double alpha, beta;
} Case;

#define PRODUCT(NAME, T, TOLERANCE)                                                                \
  static void check_##NAME(Case p) {                                                               \
    size_t na = (size_t)(p.m * p.k) + 1, nb = (size_t)(p.k * p.n) + 1,                             \
           nc = (size_t)(p.m * p.n) + 1;                                                           \
    size_t n_scratch = gemm_##NAME##_scratch_bytes(p.m, p.n, p.k);                                 \
    size_t n_row_scratch = gemm_##NAME##_scratch_bytes(1, p.n, p.k);                               \
    T *a = malloc(na * sizeof *a), *b = malloc(nb * sizeof *b), *c = malloc(nc * sizeof *c);       \
    double *expected = malloc(nc * sizeof *expected);                                              \
    void *scratch = n_scratch ? malloc(n_scratch) : NULL;                                          \
    CHECK(n_scratch <= GEMM_SCRATCH_MAX_BYTES);                                                    \
    int64_t a_rs = p.a_turned ? 1 : p.k, a_cs = p.a_turned ? p.m : 1, b_rs = p.b_turned ? 1 : p.n; \
    int64_t b_cs = p.b_turned ? p.k : 1, c_rs = p.c_turned ? 1 : p.n, c_cs = p.c_turned ? p.m : 1; \
    for (size_t i = 0; i < na; i++) a[i] = (T)noise();                                             \
    for (size_t i = 0; i < nb; i++) b[i] = (T)noise();                                             \
    for (size_t i = 0; i < nc; i++)                                                                \
      c[i] = p.beta == 0 ? (T)NAN : (T)noise(); /* unread where beta is 0 */                       \
    for (int64_t i = 0; i < p.m; i++)                                                              \
      for (int64_t j = 0; j < p.n; j++) {                                                          \
        double sum = 0;                                                                            \
        for (int64_t l = 0; l < p.k; l++)                                                          \
          sum += (double)a[i * a_rs + l * a_cs] * (double)b[l * b_rs + j * b_cs];                  \
        int64_t at = i * c_rs + j * c_cs;                                                          \
        expected[at] = p.alpha * sum + (p.beta == 0 ? 0 : p.beta * (double)c[at]);                 \
      }                                                                                            \
    gemm_##NAME(p.m, p.n, p.k, (T)p.alpha, a, a_rs, a_cs, b, b_rs, b_cs, (T)p.beta, c, c_rs, c_cs, \
                scratch);                                                                          \
    bool close = true;                                                                             \
    for (int64_t i = 0; i < p.m * p.n; i++)                                                        \
      close = close && fabs((double)c[i] - expected[i]) <= (TOLERANCE) * (double)(p.k + 1);        \
    if (!close)                                                                                    \
      fprintf(stderr, "%lld x %lld x %lld, turned %d %d %d, alpha %g, beta %g\n", (Shown)p.m,      \
              (Shown)p.n, (Shown)p.k, p.a_turned, p.b_turned, p.c_turned, p.alpha, p.beta);        \
    CHECK(close);                                                                                  \
    if (p.m > 0 && p.beta == 0) { /* the last row computed alone has the same bits */              \
      T *row = malloc((size_t)(p.n + 1) * sizeof *row);                                            \
      void *row_scratch = n_row_scratch ? malloc(n_row_scratch) : NULL;                            \
      gemm_##NAME(1, p.n, p.k, (T)p.alpha, a + (p.m - 1) * a_rs, a_rs, a_cs, b, b_rs, b_cs, 0,     \
                  row, p.n, 1, row_scratch);                                                       \
      for (int64_t j = 0; j < p.n; j++)                                                            \
        CHECK(memcmp(&row[j], &c[(p.m - 1) * c_rs + j * c_cs], sizeof *row) == 0);                 \
      free(row), free(row_scratch);                                                                \
    }                                                                                              \
    free(a), free(b), free(c), free(expected), free(scratch);                                      \
  }

PRODUCT(f32, float, 1e-6)
PRODUCT(f64, double, 1e-15)

static void check(Case p) {
  check_f32(p);
  check_f64(p);
}

static void every_mix_of_lengths(void) {
  for (int i = 0; i < COUNT(lengths); i++)
    for (int j = 0; j < COUNT(lengths); j++)
      for (int k = 0; k < COUNT(lengths); k += 1 + (i + j) % 3)
        check((Case){lengths[i], lengths[j], lengths[k], false, false, false, 1, 0});
}

static void every_layout(void) {
  for (int turned = 0; turned < 8; turned++) {
    check((Case){19, 23, 70, turned & 1, turned & 2, turned & 4, 1, 0});
    check((Case){1, 40, 33, turned & 1, turned & 2, turned & 4, 1, 0});
  }
}

static void alpha_and_beta(void) {
  static const double values[] = {0, 1, -0.5, 2};
  for (int i = 0; i < COUNT(values); i++)
    for (int j = 0; j < COUNT(values); j++)
      check((Case){9, 7, 12, false, true, false, values[i], values[j]});
}

static void blocks_of_the_largest_size(void) {
  check((Case){140, 300, 600, false, true, false, 1, 1});
}

static void integers_wrap(void) {
  const int8_t a[] = {100, 100}, b[] = {3, 4};
  int8_t c = 7;
  gemm_i8(1, 1, 2, 1, a, 2, 1, b, 1, 1, 0, &c, 1, 1);
  CHECK(c == (int8_t)(700 - 768));
  const int64_t big[] = {INT64_MAX}, two[] = {2};
  int64_t d = 0;
  gemm_i64(1, 1, 1, 1, big, 1, 1, two, 1, 1, 0, &d, 1, 1);
  CHECK(d == -2);
}

static void dots_sum_pairwise(void) {
  enum { N = 100000 };
  float *ones = malloc(N * sizeof *ones);
  for (int i = 0; i < N; i++) ones[i] = 0.1f;
  float sum = gemm_dot_f32(N, ones, 1, ones, 1);
  double expected = N * ((double)0.1f * (double)0.1f);
  CHECK(fabs((double)sum - expected) < 1e-6 * expected); /* one accumulator would be off by 1e-4 */
  CHECK(gemm_dot_f32(0, ones, 1, ones, 1) == 0);
  CHECK(gemm_dot_f32(2, ones, 50000, ones, 0) == gemm_dot_f32(2, ones, 1, ones, 1));
  free(ones);
}

int main(void) {
  RUN(every_mix_of_lengths);
  RUN(every_layout);
  RUN(alpha_and_beta);
  RUN(blocks_of_the_largest_size);
  RUN(integers_wrap);
  RUN(dots_sum_pairwise);
  return finish();
}
