/* Images sampled at places of a grid, and grids of affine maps: spatial transformers. */
#include <string.h>

#include "nn_rows.h"
#include "ops/create/create.h"
#include "ops/nn/nn.h"
#include "ops/op.h"
#include "ops/view/shape.h"

static bool has_aligned_corners(const Call *c, int k) {
  if (!arg_given(c, k))
    warn_user("Default grid_sample and affine_grid behavior has changed to align_corners=False "
              "since 1.3.0. Please specify align_corners=True if the old behavior is desired. See "
              "the documentation of grid_sample for details.");
  return arg_given(c, k) && arg_bool(c, k);
}

/* ------------------------------------------------------------ grids of affine maps */

static bool check_affine(const Call *c, const Tensor *theta) {
  Ints size = arg_ints(c, 1);
  int n = size.n - 2;
  if (!dtype_is_float(tensor_dtype(theta))) {
    fail(ERR_VALUE, "Expected theta to have floating point type, but got torch.%s",
         dtype_info[theta->dtype].name);
  } else if (n != 2 && n != 3) {
    fail(ERR_NOT_IMPLEMENTED,
         "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
         "respectively. Got size %s.",
         nn_list_text(&c->v[1]));
  } else if (theta->ndim != 3 || theta->sizes[1] != n || theta->sizes[2] != n + 1) {
    fail(ERR_VALUE,
         "Expected a batch of %dD affine matrices of shape Nx%dx%d for size %s. Got "
         "torch.Size(%s).",
         n, n, n + 1, nn_list_text(&c->v[1]), shape_text(theta));
  }
  for (int i = 0; i < size.n && !failed(); i++)
    if (size.v[i] <= 0)
      fail(ERR_VALUE, "Expected non-zero, positive output size. Got %s", nn_list_text(&c->v[1]));
  return !failed();
}

/* The coordinates of `count` pixels. -1 and 1 are the outermost centres or edges. */
static Tensor *axis(int64_t count, bool centres, DType dtype) {
  if (count <= 1 && dtype_is_half(dtype)) return dtype_no_kernel("tensor_cpu", dtype);
  if (count <= 1) return t_zeros((Ints){1, &count}, dtype);
  Tensor *places = t_linspace(tensor_wrapped_i(-1), tensor_wrapped_i(1), count, dtype);
  if (centres) return places;
  places = t_div(t_mul(places, tensor_wrapped_i(count - 1)), tensor_wrapped_i(count));
  return t_to(places, dtype);
}

/* The grid of an affine map for size[0] images, with the n lengths after size[1]. */
Tensor *t_affine_grid_generator(Tensor *theta, Ints size, bool centres) {
  OP_ENTERED(t_affine_grid_generator, "affine_grid_generator", theta, size, centres);
  if (blocked(theta)) return NULL;
  int n = size.n - 2;
  if (n != 2 && n != 3)
    return fail(ERR_RUNTIME, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  Tensor *axes[3], *points[4];
  int32_t mark = pool_mark();
  for (int d = 0; d < n; d++) axes[d] = axis(size.v[2 + d], centres, tensor_dtype(theta));
  Tensor **places = failed() ? NULL : t_meshgrid((Tensors){n, axes}, "ij");
  if (!places) return NULL;
  for (int d = 0; d < n; d++) points[d] = places[n - 1 - d];
  points[n] = t_ones_like(places[0]);
  const int64_t row[] = {1, -1, n + 1}, rows[] = {size.v[0], -1, -1};
  Tensor *flat = t_expand(t_reshape(t_stack((Tensors){n + 1, points}, -1), 3, row), 3, rows);
  pool_release(mark, flat);
  int64_t sizes[5] = {size.v[0]};
  for (int d = 0; d < n; d++) sizes[1 + d] = size.v[2 + d];
  sizes[n + 1] = n;
  return t_reshape(t_bmm(flat, t_transpose(theta, 1, 2)), n + 2, sizes);
}

/* Arguments: theta, size, align_corners. */
Tensor *t_affine_grid(Call *c) {
  OP_ENTERED(t_affine_grid, "affine_grid", c);
  Tensor *theta = arg_tensor(c, 0);
  bool centres = has_aligned_corners(c, 2);
  if (blocked(theta) || !check_affine(c, theta)) return NULL;
  return t_affine_grid_generator(theta, arg_ints(c, 1), centres);
}

/* ------------------------------------------------------------ places among the pixels */

typedef enum { BILINEAR, NEAREST, BICUBIC } Sampling;
typedef enum { ZEROS, BORDER, REFLECTION } Padding;
static const char *const sampling_names[] = {"bilinear", "nearest", "bicubic"};
static const char *const padding_names[] = {"zeros", "border", "reflection"};
typedef struct {
  Sampling mode;
  Padding padding;
  bool centres;
} Sampler;
/* The taps of one dimension: the pixels around each place, and their weights. */
typedef struct {
  int n;
  Tensor *at[4], *share[4];
} Taps;

static Tensor *number(double v) { return tensor_wrapped_f(v); }

/* A coordinate folded back into the range from low / 2 to high / 2. */
static Tensor *reflect_into(Tensor *x, double low, double high) {
  if (low == high) return t_zeros_like(x);
  double least = low / 2, span = (high - low) / 2;
  Tensor *distance = t_abs(t_add_f(x, -least)), *rest = t_fmod(distance, number(span));
  Tensor *folds = t_floor(t_div_f(t_detach(distance), span));
  Tensor *even = t_eq(t_remainder(folds, tensor_wrapped_i(2)), tensor_wrapped_i(0));
  return t_where(even, t_add_f(rest, least), t_add_f(t_rsub(rest, number(span), NULL), least));
}

/* A coordinate from -1 to 1 as a place among the pixels of one dimension. */
static Tensor *pixel(Tensor *x, int64_t size, bool centres) {
  Tensor *from_edge = t_add_f(x, 1), *two = tensor_wrapped_i(2);
  if (centres) return t_mul(t_div(from_edge, two), tensor_wrapped_i(size - 1));
  return t_div(t_sub(t_mul(from_edge, tensor_wrapped_i(size)), tensor_wrapped_i(1)), two);
}

/* The place whose pixel is read for one that may be outside. */
static Tensor *place_to_read(const Sampler *s, Tensor *place, int64_t size) {
  double ends = s->centres ? 0 : 1;
  if (s->padding == REFLECTION)
    place = reflect_into(place, -ends, 2 * (double)size - (s->centres ? 2 : 1));
  /* The gradient is 0 at the bounds, as hardtanh has it; clamp has 1. */
  return s->padding == ZEROS ? place : t_hardtanh(place, 0, (double)(size - 1), 0);
}

/* Cubic weights of the pixels next to a place, and of the pixels behind those. SLOPE is that of
 * both at distance 1, where they meet. */
#define SLOPE (-0.75)
static Tensor *near_weight(Tensor *x) {
  Tensor *line = t_sub(t_mul_f(x, SLOPE + 2), number(SLOPE + 3));
  return t_add_f(t_mul(t_mul(line, x), x), 1);
}
static Tensor *far_weight(Tensor *x) {
  Tensor *square = t_add_f(t_mul(t_sub(t_mul_f(x, SLOPE), number(5 * SLOPE)), x), 8 * SLOPE);
  return t_sub(t_mul(square, x), number(4 * SLOPE));
}

/* The weight of the k-th pixel around a place, which is x behind the last pixel before it. */
static Tensor *weight_of(Sampling mode, int k, Tensor *x) {
  if (mode == BILINEAR) return k ? x : t_rsub(x, tensor_wrapped_i(1), NULL);
  if (k == 0) return far_weight(t_add_f(x, 1));
  if (k == 1) return near_weight(x);
  if (k == 2) return near_weight(t_rsub(x, tensor_wrapped_i(1), NULL));
  return far_weight(t_rsub(x, tensor_wrapped_i(2), NULL));
}

static Tensor *inside_mask(Tensor *at, int64_t size) {
  Tensor *low = t_ge(at, tensor_wrapped_i(0)), *high = t_le(at, tensor_wrapped_i(size - 1));
  return t_bitwise_and(low, high);
}

/* The pixel `at`, moved inside if necessary, and its weight, 0 outside. */
static void tap(const Sampler *s, Tensor *at, int64_t size, Tensor **pixel_at, Tensor **share) {
  int32_t mark = pool_mark();
  if (s->mode == BICUBIC) at = place_to_read(s, at, size);
  Tensor *known = t_nan_to_num(at, 0, false, 0, false, 0);
  known = t_clamp(known, tensor_wrapped_i(0), tensor_wrapped_i(size - 1));
  *pixel_at = t_to(known, DT_I64);
  *share = t_mul(*share, inside_mask(at, size));
  pool_keep(mark, 2, (Tensor *[]){*pixel_at, *share});
}

static void taps_of(const Sampler *s, Tensor *x, int64_t size, Taps *t) {
  bool nearest = s->mode == NEAREST;
  int32_t start = pool_mark();
  Tensor *place = pixel(x, size, s->centres);
  if (s->mode != BICUBIC) place = place_to_read(s, place, size);
  Tensor *first = nearest ? t_round_even(t_detach(place)) : t_floor(t_detach(place));
  pool_keep(start, 2, (Tensor *[]){place, first});
  t->n = nearest ? 1 : s->mode == BILINEAR ? 2 : 4;
  for (int k = 0; k < t->n; k++) { /* before the products, whose gradients come first then */
    int32_t mark = pool_mark();
    t->share[k] = nearest ? t_ones_like(place) : weight_of(s->mode, k, t_sub(place, first));
    pool_release(mark, t->share[k]);
  }
  for (int k = 0; k < t->n; k++) {
    Tensor *at = nearest ? first : t_add_f(first, k + 1 - t->n / 2);
    tap(s, at, size, &t->at[k], &t->share[k]);
  }
  Tensor *kept[8];
  memcpy(kept, t->at, (size_t)t->n * sizeof *kept);
  memcpy(kept + t->n, t->share, (size_t)t->n * sizeof *kept);
  pool_keep(start, 2 * t->n, kept);
}

/* ------------------------------------------------------------ samples */

/* The contribution of one combination of taps, one for each dimension: (N, C, places). */
static Tensor *tap_contribution(Tensor *flat, const int64_t *sizes, int n, const Taps *taps,
                                int which) {
  /* Starts from one: so second derivatives are summed in the order that they always had. */
  Tensor *index = NULL, *weight = t_ones_like(taps[0].share[0]);
  int choice[3];
  for (int d = n - 1; d >= 0; d--) {
    choice[d] = which % taps[d].n;
    which /= taps[d].n;
  }
  for (int d = 0; d < n; d++) {
    Tensor *at = taps[d].at[choice[d]], *share = taps[d].share[choice[d]];
    index = index ? t_add(t_mul(index, tensor_wrapped_i(sizes[d])), at) : at;
    weight = t_mul(weight, share);
  }
  if (blocked(flat, index)) return NULL;
  const int64_t wide[] = {-1, flat->sizes[1], -1};
  Tensor *found = t_gather(flat, 2, t_expand(t_unsqueeze(index, 1), 3, wide));
  return t_mul(found, t_unsqueeze(weight, 1));
}

static Tensor *sample_images(const Sampler *s, Tensor *x, Tensor *grid) {
  int n = x->ndim - 2, count = 1;
  const int64_t *sizes = x->sizes + 2;
  Tensor *flat = t_flatten(x, 2, -1), *points = t_flatten(grid, 1, -2);
  Taps taps[3];
  for (int d = 0; d < n && !failed(); d++) {
    taps_of(s, t_select(points, -1, n - 1 - d), sizes[d], &taps[d]);
    count *= taps[d].n;
  }
  if (blocked(flat, points)) return NULL;
  int64_t shape[5] = {flat->sizes[0], flat->sizes[1], points->sizes[1]};
  int32_t mark = pool_mark(); /* only the sum so far is kept above it */
  Tensor *none = t_sum(points, ONE_DIM(-1), false, DT_NONE);
  none = t_unsqueeze(t_mul(none, tensor_wrapped_i(0)), 1);
  Tensor *total = t_add(t_zeros((Ints){3, shape}, tensor_dtype(flat)), none);
  pool_release(mark, total);
  for (int which = 0; which < count && !failed(); which++) {
    total = t_add(total, tap_contribution(flat, sizes, n, taps, which));
    pool_release(mark, total);
  }
  for (int d = 0; d < n; d++) shape[2 + d] = grid->sizes[1 + d];
  return t_reshape(total, n + 2, shape);
}

static bool check_grid(const Tensor *x, const Tensor *grid) {
  if (tensor_size(x, 0) < 0 || tensor_size(grid, 0) < 0) return false;
  if (x->sizes[0] != grid->sizes[0])
    fail(ERR_RUNTIME,
         "grid_sampler(): expected grid and input to have same batch size, but got input with "
         "sizes %s and grid with sizes %s",
         shape_text(x), shape_text(grid));
  else if (grid->sizes[grid->ndim - 1] != x->ndim - 2)
    fail(ERR_RUNTIME,
         "grid_sampler(): expected grid to have size %d in last dimension, but got grid with "
         "sizes %s",
         x->ndim - 2, shape_text(grid));
  for (int d = 2; d < x->ndim; d++)
    if (x->sizes[d] == 0)
      fail(ERR_RUNTIME,
           "grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
           "sizes %s with dimension %d being empty",
           shape_text(x), d);
  return !failed();
}

static bool check_ranks(const Tensor *x, const Tensor *grid, int rank) {
  if (x->ndim == rank && grid->ndim == rank) return true;
  fail(ERR_RUNTIME,
       "grid_sampler(): expected %dD input and grid with same number of dimensions, but got input "
       "with sizes %s and grid with sizes %s",
       rank, shape_text(x), shape_text(grid));
  return false;
}

static bool check_types(const Tensor *x, const Tensor *grid) {
  const char *kernel = x->ndim == 4 ? "grid_sampler_2d_cpu_kernel_impl" : "grid_sampler_3d_cpu";
  if (dtype_check_float_kernel(kernel, tensor_dtype(x)) && grid->dtype != x->dtype)
    fail(ERR_RUNTIME, "expected scalar type %s but found %s", legacy(x), legacy(grid));
  return !failed();
}

/* Modes are indices in the lists of names. `rank`: the only rank allowed, or 0. */
Tensor *t_grid_sampler(Tensor *x, Tensor *grid, int64_t mode, int64_t padding, bool centres,
                       int rank) {
  OP_ENTERED(t_grid_sampler, "grid_sampler", x, grid, mode, padding, centres, rank);
  if (blocked(x, grid) || !check_grid(x, grid)) return NULL;
  if (!check_ranks(x, grid, rank ? rank : x->ndim == 4 ? 4 : 5)) return NULL;
  if (mode < 0 || mode > BICUBIC || padding < 0 || padding > REFLECTION)
    return fail(ERR_INDEX,
                "grid_sampler(): interpolation_mode and padding_mode are 0, 1 or 2, but got %lld "
                "and %lld",
                (Shown)mode, (Shown)padding);
  if (mode == BICUBIC && x->ndim != 4)
    return fail(ERR_RUNTIME, "grid_sampler(): bicubic interpolation only supports 4D input");
  if (!check_types(x, grid)) return NULL;
  Sampler s = {(Sampling)mode, (Padding)padding, centres};
  return sample_images(&s, x, grid);
}

static int place_among(const char *name, const char *const names[3]) {
  for (int k = 0; k < 3; k++)
    if (strcmp(name, names[k]) == 0) return k;
  return -1;
}

/* Arguments: input, grid, mode, padding_mode, align_corners. */
Tensor *t_grid_sample(Call *c) {
  OP_ENTERED(t_grid_sample, "grid_sample", c);
  Tensor *x = arg_tensor(c, 0), *grid = arg_tensor(c, 1);
  const char *mode = arg_str(c, 2), *padding = arg_str(c, 3);
  if (blocked(x, grid) || !mode || !padding) return NULL;
  int sampling = place_among(mode, sampling_names), edge = place_among(padding, padding_names);
  if (sampling < 0)
    return fail(ERR_VALUE,
                "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or "
                "'bicubic', but got: '%s'",
                mode);
  if (edge < 0)
    return fail(ERR_VALUE,
                "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
                "'reflection', but got: '%s'",
                padding);
  return t_grid_sampler(x, grid, sampling, edge, has_aligned_corners(c, 4), 0);
}
