/* Transforms against the sum that defines them: every length up to 130, larger primes and
 * products, either direction, halves of spectra, any strides; and the promise that the bits of a line do
 * not depend on the lines beside it. */
#include "kernels/fft.h"

#include "check.h"

static uint32_t state = 1;
static double noise(void) {
  state = state * 1664525u + 1013904223u;
  return (double)(state >> 8) / (1 << 24) - 0.5;
}

/* exp(-2 pi i k / n) for all k < n. */
static long double *turns_of(int64_t n) {
  long double *turns = malloc((size_t)n * 2 * sizeof *turns);
  for (int64_t k = 0; k < n; k++) {
    long double angle = 2 * 3.14159265358979323846264338327950288L * (long double)k /
                        (long double)n;
    turns[2 * k] = cosl(angle), turns[2 * k + 1] = -sinl(angle);
  }
  return turns;
}

typedef struct {
  FftKind kind;
  int64_t n, lines;
  bool backward, turned; /* turned: lines are columns */
} Case;

static void describe(Case c, const char *type) {
  fprintf(stderr, "%s of %lld, kind %d, %lld lines%s%s\n", type, (Shown)c.n, (int)c.kind,
          (Shown)c.lines, c.backward ? ", backward" : "", c.turned ? ", turned" : "");
}

#define TRANSFORM(NAME, T, TOLERANCE)                                                            \
  static void check_##NAME(Case c) {                                                             \
    int64_t half = c.n / 2 + 1, rows_in = c.kind == FFT_FROM_HALF ? half : c.n;                  \
    int64_t rows_out = c.kind == FFT_TO_HALF ? half : c.n;                                       \
    int in_reals = c.kind == FFT_TO_HALF ? 1 : 2, out_reals = c.kind == FFT_FROM_HALF ? 1 : 2;   \
    size_t n_in = (size_t)(rows_in * c.lines * in_reals);                                        \
    size_t n_out = (size_t)(rows_out * c.lines * out_reals);                                     \
    T *in = malloc(n_in * sizeof(T)), *out = malloc(n_out * sizeof(T));                          \
    T *alone = malloc((size_t)(rows_out * out_reals) * sizeof(T)), scale = (T)0.25;              \
    long double *turns = turns_of(c.n), *full = malloc((size_t)c.n * 2 * sizeof *full);          \
    void *plan = malloc(fft_##NAME##_plan_bytes(c.kind, c.n));                                   \
    void *work = malloc(fft_##NAME##_work_bytes(c.kind, c.n, c.lines));                          \
    void *work_of_one = malloc(fft_##NAME##_work_bytes(c.kind, c.n, 1));                         \
    for (size_t i = 0; i < n_in; i++) in[i] = (T)noise();                                        \
    int64_t in_step = c.turned ? c.lines : 1, in_line = c.turned ? 1 : rows_in;                  \
    int64_t out_step = c.turned ? c.lines : 1, out_line = c.turned ? 1 : rows_out;               \
    FftLines at = {c.lines, in_step, in_line, out_step, out_line};                               \
    fft_##NAME##_plan(c.kind, c.n, plan, work_of_one);                                           \
    fft_##NAME(plan, c.backward, in, out, at, scale, work);                                      \
    double worst = 0, norm = 0;                                                                  \
    bool same = true;                                                                            \
    for (int64_t line = 0; line < c.lines; line += line + 1 < c.lines ? c.lines - 1 : 1) {       \
      for (int64_t j = 0; j < c.n; j++) {                                                        \
        int64_t k = c.kind == FFT_FROM_HALF && j >= half ? c.n - j : j;                          \
        const T *x = in + (k * in_step + line * in_line) * in_reals;                             \
        full[2 * j] = x[0];                                                                      \
        full[2 * j + 1] = in_reals == 1 ? 0 : k == j ? x[1] : -x[1];                             \
        if (c.kind == FFT_FROM_HALF && 2 * j % c.n == 0) full[2 * j + 1] = 0;                    \
      }                                                                                          \
      for (int64_t k = 0; k < rows_out; k++) {                                                   \
        long double re = 0, im = 0;                                                              \
        for (int64_t j = 0, t = 0; j < c.n; j++, t = (t + k) % c.n) {                            \
          long double a = turns[2 * t], b = c.backward ? -turns[2 * t + 1] : turns[2 * t + 1];   \
          re += full[2 * j] * a - full[2 * j + 1] * b;                                           \
          im += full[2 * j] * b + full[2 * j + 1] * a;                                           \
        }                                                                                        \
        const T *y = out + (k * out_step + line * out_line) * out_reals;                         \
        double off = (double)fabsl(y[0] - re * scale);                                           \
        if (out_reals == 2) off = fmax(off, (double)fabsl(y[1] - im * scale));                   \
        worst = off > worst ? off : worst;                                                       \
        norm += (double)(re * re + im * im) * scale * scale / (double)rows_out;                  \
      }                                                                                          \
      FftLines one = {1, in_step, 0, 1, 0};                                                      \
      fft_##NAME(plan, c.backward, in + line * in_line * in_reals, alone, one, scale,            \
                 work_of_one);                                                                   \
      for (int64_t k = 0; k < rows_out; k++)                                                     \
        same = same &&                                                                           \
               memcmp(alone + k * out_reals, out + (k * out_step + line * out_line) * out_reals, \
                      (size_t)out_reals * sizeof(T)) == 0;                                       \
    }                                                                                            \
    bool close = worst <= (TOLERANCE) * sqrt(norm);                                              \
    if (!close) fprintf(stderr, "off by %g of %g: ", worst, sqrt(norm));                         \
    if (!close || !same) describe(c, #NAME);                                                     \
    CHECK(close);                                                                                \
    CHECK(same);                                                                                 \
    free(in), free(out), free(alone), free(turns), free(full), free(plan), free(work);           \
    free(work_of_one);                                                                           \
  }

TRANSFORM(f32, float, 1e-6)
TRANSFORM(f64, double, 2e-15)

static void check(Case c) {
  check_f32(c);
  check_f64(c);
}

static void check_kinds(int64_t n, int64_t lines, bool turned) {
  check((Case){FFT_COMPLEX, n, lines, false, turned});
  check((Case){FFT_COMPLEX, n, lines, true, turned});
  check((Case){FFT_TO_HALF, n, lines, false, turned});
  check((Case){FFT_FROM_HALF, n, lines, true, turned});
}

static void lengths_up_to_130_are_the_sums_that_define_them(void) {
  for (int64_t n = 1; n <= 130; n++) check_kinds(n, 1, false);
}

static void lines_of_a_call_are_what_each_is_alone(void) {
  for (int64_t n = 1; n <= 130; n += 1 + n / 40)
    for (int64_t lines = 2; lines <= 9; lines += n % 3 + 1) {
      check_kinds(n, lines, false);
      check_kinds(n, lines, true);
    }
  check_kinds(8, 300, false);
  check_kinds(2048, 9, true);
}

static void large_primes_and_products_are_so_too(void) {
  static const int64_t lengths[] = {211,  509,  1009, 2003,    1024,     4096,    2187,
                                    3125, 2401, 1000, 61 * 61, 2 * 1009, 4 * 509, 1022};
  for (int i = 0; i < COUNT(lengths); i++) check_kinds(lengths[i], 1, false);
}

int main(void) {
  RUN(lengths_up_to_130_are_the_sums_that_define_them);
  RUN(lines_of_a_call_are_what_each_is_alone);
  RUN(large_primes_and_products_are_so_too);
  return finish();
}
