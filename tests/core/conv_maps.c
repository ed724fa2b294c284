/* The maps of convolutions against loops over their definition: odd shapes of up to three
 * dimensions, all types, and the promise that a NaN in one pixel reaches those outputs alone
 * that see it. */
#include "ops/nn/conv_maps.h"

#include "check.h"

static uint32_t state = 1;
static int64_t below(int64_t n) {
  state = state * 1664525u + 1013904223u;
  return (int64_t)(state >> 8) % n;
}

static int64_t one_of(const int64_t *values, int64_t n) { return values[below(n)]; }
#define ONE_OF(...) \
  one_of((const int64_t[]){__VA_ARGS__}, sizeof (int64_t[]){__VA_ARGS__} / sizeof(int64_t))

static Conv any_conv(void) {
  Conv c = {.nd = 3, .groups = ONE_OF(1, 1, 2, 3), .samples = ONE_OF(0, 1, 2, 3)};
  c.in_channels = c.groups * ONE_OF(1, 2, 3, 7),
  c.out_channels = c.groups * ONE_OF(1, 2, 3, 4, 5, 25);
  int64_t nd = ONE_OF(1, 2, 2, 2, 3);
  for (int i = 0; i < 3; i++) {
    c.kernel[i] = c.stride[i] = c.dilation[i] = c.in[i] = c.out[i] = 1;
    if (i < 3 - nd) continue;
    c.kernel[i] = ONE_OF(1, 2, 3, 5), c.stride[i] = ONE_OF(1, 1, 2, 3, 5),
    c.dilation[i] = ONE_OF(1, 1, 2), c.padding[i] = ONE_OF(0, 1, 2, 7);
    int64_t span = (c.kernel[i] - 1) * c.dilation[i] + 1, least = span - 2 * c.padding[i];
    c.in[i] = ONE_OF(1, 4, 5, 9, 16);
    if (c.in[i] < least) c.in[i] = least;
    c.out[i] = (c.in[i] + 2 * c.padding[i] - span) / c.stride[i] + 1;
  }
  return c;
}

/* Calls `met` for every product: elements of x, w and y. */
typedef void Met(int64_t x, int64_t w, int64_t y, double *const *data);
static void each_product(const Conv *c, Met *met, double *const *data) {
  int64_t cg = c->in_channels / c->groups, og = c->out_channels / c->groups,
          spots = volume(c->kernel), places = volume(c->out);
  for (int64_t i = 0; i < c->samples * c->out_channels * places * cg * spots; i++) {
    int64_t k = i % spots, ch = i / spots % cg, p = i / (spots * cg) % places,
            o = i / (spots * cg * places) % c->out_channels;
    int64_t n = i / (spots * cg * places * c->out_channels),
            at = (n * c->in_channels + o / og * cg + ch);
    int64_t ks[3] = {k / (c->kernel[1] * c->kernel[2]), k / c->kernel[2] % c->kernel[1],
                     k % c->kernel[2]};
    int64_t ps[3] = {p / (c->out[1] * c->out[2]), p / c->out[2] % c->out[1], p % c->out[2]};
    bool inside = true;
    for (int d = 0; d < 3; d++) {
      int64_t q = ps[d] * c->stride[d] - c->padding[d] + ks[d] * c->dilation[d];
      inside = inside && q >= 0 && q < c->in[d];
      at = at * c->in[d] + q;
    }
    if (inside) met(at, (o * cg + ch) * spots + k, (n * c->out_channels + o) * places + p, data);
  }
}

enum { X, W, Y, RESULT };
static void met_forward(int64_t x, int64_t w, int64_t y, double *const *d) {
  d[RESULT][y] += d[X][x] * d[W][w];
}
static void met_data(int64_t x, int64_t w, int64_t y, double *const *d) {
  d[RESULT][x] += d[Y][y] * d[W][w];
}
static void met_weights(int64_t x, int64_t w, int64_t y, double *const *d) {
  d[RESULT][w] += d[X][x] * d[Y][y];
}

/* Whole numbers throughout, so that all types are exact. */
#define MAPS(T, D)                                                                                 \
  static void check_##T(const Conv *c, bool nan) {                                                 \
    int64_t sizes[3] = {c->samples * c->in_channels * volume(c->in),                               \
                        c->out_channels * patch_size(c),                                           \
                        c->samples * c->out_channels * volume(c->out)};                            \
    Met *maps[3] = {[X] = met_data, [W] = met_weights, [Y] = met_forward};                         \
    T *t[3], *bias = malloc(64 * 3 * sizeof *bias);                                                \
    double *d[4];                                                                                  \
    for (int k = 0; k < 3; k++) {                                                                  \
      t[k] = malloc((size_t)sizes[k] * sizeof *t[k]),                                              \
      d[k] = malloc((size_t)(sizes[k] + 1) * sizeof **d);                                          \
      for (int64_t i = 0; i < sizes[k]; i++)                                                       \
        d[k][i] = (double)(below(7) - 3), t[k][i] = (T)d[k][i];                                    \
    }                                                                                              \
    for (int i = 0; i < 192; i++) bias[i] = (T)below(5);                                           \
    if (nan && sizes[X]) {                                                                         \
      int64_t at = below(sizes[X]);                                                                \
      d[X][at] = NAN, t[X][at] = (T)NAN;                                                           \
    }                                                                                              \
    for (int k = nan ? W : X; k < 3; k++) {                                                        \
      d[RESULT] = calloc((size_t)(sizes[k] + 1), sizeof **d);                                      \
      each_product(c, maps[k], d);                                                                 \
      T *out = malloc((size_t)sizes[k] * sizeof *out);                                             \
      bool biased = k != W && below(2), right = true;                                              \
      const char *b = biased ? (char *)bias : NULL, *x = (char *)t[X], *w = (char *)t[W],          \
                 *y = (char *)t[Y];                                                                \
      CHECK(k == Y   ? conv_forward(c, D, x, w, b, (char *)out)                                    \
            : k == X ? conv_data(c, D, y, w, b, (char *)out)                                       \
                     : conv_weights(c, D, x, y, (char *)out));                                     \
      int64_t channels = k == X ? c->in_channels : c->out_channels,                                \
              length = k == X ? volume(c->in) : volume(c->out);                                    \
      for (int64_t i = 0; i < sizes[k]; i++) {                                                     \
        double expected = d[RESULT][i] + (biased ? (double)bias[i / length % channels] : 0);       \
        right = right && (expected != expected ? out[i] != out[i] : (double)out[i] == expected);   \
      }                                                                                            \
      if (!right)                                                                                  \
        fprintf(                                                                                   \
            stderr,                                                                                \
            #T                                                                                     \
            " map %d, groups %d, channels %d %d, in %d %d %d, kernel %d %d %d, stride %d %d %d\n", \
            k, (int)c->groups, (int)c->in_channels, (int)c->out_channels, (int)c->in[0],           \
            (int)c->in[1], (int)c->in[2], (int)c->kernel[0], (int)c->kernel[1], (int)c->kernel[2], \
            (int)c->stride[0], (int)c->stride[1], (int)c->stride[2]);                              \
      CHECK(right);                                                                                \
      free(out), free(d[RESULT]);                                                                  \
    }                                                                                              \
    for (int k = 0; k < 3; k++) free(t[k]), free(d[k]);                                            \
    free(bias);                                                                                    \
  }
MAPS(float, DT_F32)
MAPS(double, DT_F64)
MAPS(int64_t, DT_I64)

static void maps_are_as_defined(void) {
  for (int i = 0; i < 150; i++) {
    Conv c = any_conv();
    check_float(&c, false), check_double(&c, false), check_int64_t(&c, false);
  }
}

static void a_nan_reaches_what_sees_it(void) {
  for (int i = 0; i < 100; i++) {
    Conv c = any_conv();
    check_float(&c, true), check_double(&c, true);
  }
}

static void a_kernel_as_large_as_its_image(void) {
  for (int64_t out = 1; out < 4; out++) {
    Conv c = {.nd = 2,
              .groups = 1,
              .samples = 2,
              .in_channels = 2,
              .out_channels = 3,
              .in = {1, 66, 65 + out},
              .kernel = {1, 66, 66},
              .out = {1, 1, out},
              .stride = {1, 1, 1},
              .dilation = {1, 1, 1}};
    check_float(&c, false), check_double(&c, false), check_int64_t(&c, false);
  }
}

int main(void) {
  RUN(maps_are_as_defined);
  RUN(a_nan_reaches_what_sees_it);
  RUN(a_kernel_as_large_as_its_image);
  return finish();
}
