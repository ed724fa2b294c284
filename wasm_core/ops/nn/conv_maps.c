/* Convolutions without an unrolled image.
 *
 * A map lays out its input a box at a time: some positions of some images, with zeros around, and
 * every stride-th cell of a line side by side. In a box, the cells that a tap of the kernel meets
 * at successive positions are adjacent, at a fixed distance from the position. So one tile loop
 * does all maps: it adds up products of a record (lanes of four rows) with the vectors at the
 * record's offset from some places. Forward and data have a record for each tap, its weights
 * splatted, and groups of positions as places. Weights have a record for each group of positions,
 * and taps as places. Data with a stride is one such map for each remainder of the position by the
 * stride.
 *
 * Invariant: sums go over channels, then taps, in blocks that the number of taps decides.
 *
 * The file includes itself once per type: what stands behind the #else is the body, in terms of
 * REAL, VEC, LANES. */
#ifndef CONV_BODY

#include "ops/nn/conv_maps.h"

#include <stdint.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/paths.h"
#include "ground/poll.h"
#include "ground/status.h"
#include "kernels/gemm.h"
#include "kernels/simd.h"

enum {
  TILE_ROWS = 4, /* by two vectors, */
  TILE_PLACES = 2,
  /* or one row by six: as many as let engines hoist a step's loads into registers */
  LINE_PLACES = 6,
  BOX_BYTES = 256 << 10, /* of a laid out box: half of a small L2 */
  BOX_GROUPS = 2048,     /* groups of positions in a box */
  MANY_RESTS = 8,   /* remainders by a stride above which a map for each costs more than patches */
  RAGGED_ROWS = 24, /* the least rows, */
  /* the least positions, and the longest line, for which patches cost less than missing lanes */
  RAGGED_PLACES = 16,
  RAGGED_LINE = 16,
  /* elements of the patches of an image and group; larger patches are never made */
  MAX_PATCHES = 4 << 20,
  VAST_TAPS = 4096,
  DEPTH_TAPS = 320,   /* taps in a sum: their records, of 68 bytes, stay in L1 */
  DEPTH_GROUPS = 256, /* groups in a sum of the weights' gradient: their records stay in L1 */
  WEIGHT_TAPS = 320   /* taps whose channels are laid out at once for gradients of weights */
};

/* A vector of positions, or a tap: its offset in a box, the number of its lanes, and its first
 * element in the output (or in the weight). */
typedef struct {
  int32_t offset, count;
  int64_t to;
} Place;

/* A weight of a channel's kernel, and the cell it meets. */
typedef struct {
  int64_t weight, cell[3];
} Spot;

/* The destination of rows of sums. They are added to it or, if they are the first, to the bias or
 * nothing. */
typedef struct {
  char *to;
  const char *bias;
  int64_t row_step, lane_step;
  bool first;
} Target;

/* Sums are [rows][TILE_PLACES]; of a single row [LINE_PLACES]. */
typedef struct {
  int64_t bytes, lanes;
  void (*lay_lines)(void *to, const void *lines, int64_t n, int64_t at, int64_t size, int64_t step,
                    int64_t length);
  void (*splat)(void *records, int64_t tile, int64_t rows, int64_t n, const Place *taps,
                const void *w, int64_t row_step);
  void (*gather)(void *records, int64_t tile, int64_t rows, bool masked, int64_t n,
                 const Place *groups, const void *y, int64_t row_step);
  /* [masked][one row] */
  void (*multiply[2][2])(ptrdiff_t n, const void *records, const char *box, const Place *places,
                         void *sums);
  void (*write)(const void *sums, int64_t rows, int64_t n, const Place *groups,
                const Target *target);
  int64_t (*write_whole)(int64_t tile, ptrdiff_t n, const void *records, const char *box,
                         const Place *groups, int64_t n_groups, const Target *target);
  void (*add)(const void *sums, int64_t rows, int64_t n, const Place *taps, void *to,
              int64_t row_step);
  void (*product)(int64_t m, int64_t n, int64_t k, const void *a, int64_t a_rs, int64_t a_cs,
                  const void *b, int64_t b_rs, int64_t b_cs, bool add, void *c, int64_t c_rs,
                  void *scratch);
  void (*fill)(void *to, const void *values, int64_t rows, int64_t length);
  void (*patches)(const Conv *c, void *image, void *patches, bool back);
} Loops;

/* Positions j of each dimension meet the cells j * step .. + span - 1 of the input, whose cell 0 is
 * element -low. */
typedef struct {
  const Loops *loops;
  int64_t channels, image_step, size[3], step[3], low[3], span[3];
  int64_t count[4]; /* of images, and of positions in each dimension */
  int64_t to_step[4], row_step, rows, w_row, w_channel; /* elements from one to the next */
  int64_t groups, read_group, w_group;
  int64_t spots;
  Spot *spot;
} Plan;

typedef struct {
  int64_t from[4], n[4]; /* images and positions */
  /* in elements; a line is `step` pieces of `length` */
  int64_t cells[2], length, line, plane, image;
} Box;

static int64_t places_of(int64_t tile) { return tile == 1 ? LINE_PLACES : TILE_PLACES; }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceiling(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -ceiling(-a, b); }

/* ------------------------------------------------------------ boxes */

/* Planes are an odd number of cache lines apart, so that the same cell of many planes falls on all
 * sets of the cache. */
SMALL static void box_measure(const Plan *p, int64_t channels, Box *b) {
  for (int d = 0; d < 2; d++) b->cells[d] = (b->n[1 + d] - 1) * p->step[d] + p->span[d];
  b->length = b->n[3] + (p->span[2] - 1) / p->step[2];
  b->line = b->length * p->step[2];
  b->plane = (ceiling(b->cells[0] * b->cells[1] * b->line * p->loops->bytes, 64) | 1) * 64 /
             p->loops->bytes;
  b->image = channels * b->plane;
}

SMALL static int64_t box_groups(const Plan *p, const Box *b) {
  return b->n[0] * b->n[1] * b->n[2] * ceiling(b->n[3], p->loops->lanes);
}

SMALL static bool box_fits(const Plan *p, int64_t channels, int64_t groups, Box *b) {
  box_measure(p, channels, b);
  return b->n[0] * b->image * p->loops->bytes <= BOX_BYTES && box_groups(p, b) <= groups;
}

/* Chooses a box: as many images as fit or, of a large image, as many planes, lines and
 * positions. */
SMALL static Box box_make(const Plan *p, int64_t channels, int64_t groups) {
  Box b = {.n = {1, p->count[1], p->count[2], p->count[3]}};
  for (int d = 1; d < 4; d++)
    while (!box_fits(p, channels, groups, &b) && b.n[d] > (d < 3 ? 1 : 64))
      b.n[d] = d < 3 ? (b.n[d] + 1) / 2 : ceiling(b.n[d], 16) * 8;
  if (box_fits(p, channels, groups, &b) && b.n[1] == p->count[1] && b.n[2] == p->count[2] &&
      b.n[3] == p->count[3])
    b.n[0] = most(1, least(p->count[0], least(BOX_BYTES / (b.image * p->loops->bytes),
                                              groups / box_groups(p, &b))));
  return b;
}

SMALL static bool box_at(const Plan *p, const Box *whole, int64_t channels, int64_t index, Box *b) {
  for (int d = 3; d >= 0; d--) {
    int64_t pieces = ceiling(p->count[d], whole->n[d]);
    b->from[d] = index % pieces * whole->n[d];
    b->n[d] = least(whole->n[d], p->count[d] - b->from[d]);
    index /= pieces;
  }
  box_measure(p, channels, b);
  return index == 0;
}

/* Memory for a box, with a margin: positions behind the last ones of a line may be read. */
SMALL static char *box_room(const Plan *p, const Box *b) {
  double bytes = (double)b->n[0] * (double)b->cells[0] * (double)b->cells[1] * (double)b->line *
                 (double)(b->image / b->plane);
  bool fits = bytes * 8 < 1 << 30;
  return scratch_array(fits ? b->n[0] * b->image + p->loops->lanes : INT64_MAX,
                       (size_t)p->loops->bytes);
}

/* Lays out channels [first, first + n) of the box's images; x is at the first image of all. */
SMALL static void box_lay(const Plan *p, const Box *b, const char *x, int64_t first, int64_t n,
                          char *to) {
  const int64_t *size = p->size, bytes = p->loops->bytes, line = b->line * bytes;
  int64_t at[3];
  for (int d = 0; d < 3; d++) at[d] = b->from[1 + d] * p->step[d] - p->low[d];
  int64_t above = least(most(-at[1], 0), b->cells[1]),
          inside = most(least(size[1] - at[1], b->cells[1]) - above, 0);
  for (int64_t i = 0; i < b->n[0] * n; i++) {
    const char *image =
        x + ((b->from[0] + i / n) * p->image_step + (first + i % n) * volume(size)) * bytes;
    char *plane = to + i * b->plane * bytes;
    for (int64_t z = at[0]; z < at[0] + b->cells[0]; z++, plane += b->cells[1] * line) {
      int64_t lines = z >= 0 && z < size[0] ? inside : 0;
      char *begin = plane + above * line, *end = begin + lines * line;
      const char *read = image + (z * size[1] + at[1] + above) * size[2] * bytes;
      memset(plane, 0, (size_t)(above * line));
      memset(end, 0, (size_t)((b->cells[1] - above - lines) * line));
      if (lines) p->loops->lay_lines(begin, read, lines, at[2], size[2], p->step[2], b->length);
    }
  }
}

/* Repeats the last of a list, for the places of a tile that would be beyond it. */
SMALL static void repeat_last(Place *list, int64_t n) {
  for (int64_t i = n; n && i < n + LINE_PLACES; i++) list[i] = list[n - 1];
}

SMALL static int64_t list_groups(const Plan *p, const Box *b, Place *groups) {
  int64_t n = 0;
  for (int64_t line = 0; line < b->n[0] * b->n[1] * b->n[2]; line++) {
    int64_t y = line % b->n[2], z = line / b->n[2] % b->n[1], i = line / (b->n[2] * b->n[1]);
    int64_t at = i * b->image + (z * p->step[0] * b->cells[1] + y * p->step[1]) * b->line;
    int64_t to = (b->from[0] + i) * p->to_step[0] + (b->from[1] + z) * p->to_step[1] +
                 (b->from[2] + y) * p->to_step[2];
    for (int64_t x = 0; x < b->n[3]; x += p->loops->lanes)
      groups[n++] = (Place){(int32_t)((at + x) * p->loops->bytes),
                            (int32_t)least(b->n[3] - x, p->loops->lanes),
                            to + (b->from[3] + x) * p->to_step[3]};
  }
  repeat_last(groups, n);
  return n;
}

/* Lists taps [first, first + n) of a box that holds channels from `channel` on. */
SMALL static void list_taps(const Plan *p, const Box *b, int64_t channel, int64_t first, int64_t n,
                            Place *taps) {
  for (int64_t i = 0; i < n; i++) {
    int64_t in = (first + i) / p->spots, s = p->step[2];
    const Spot *spot = p->spot + (first + i) % p->spots;
    int64_t at = (in - channel) * b->plane +
                 (spot->cell[0] * b->cells[1] + spot->cell[1]) * b->line;
    at += spot->cell[2] % s * b->length + spot->cell[2] / s;
    taps[i] = (Place){(int32_t)(at * p->loops->bytes), 1, in * p->w_channel + spot->weight};
  }
  repeat_last(taps, n);
}

/* ------------------------------------------------------------ the types */

/* The output positions o in [0, n) of dimension d whose input o * stride - padding + k *
 * dilation exists. */
SMALL static void reach(const Conv *c, int d, int64_t k, int64_t *first, int64_t *end) {
  int64_t at = k * c->dilation[d] - c->padding[d], s = c->stride[d];
  int64_t low = at >= 0 ? 0 : (-at + s - 1) / s,
          high = c->in[d] - at <= 0 ? 0 : (c->in[d] - at + s - 1) / s;
  *first = low < c->out[d] ? low : c->out[d];
  *end = high < c->out[d] ? high : c->out[d];
  if (*end < *first) *end = *first;
}

#define CAT_(a, b) a##_##b
#define CAT(a, b) CAT_(a, b)
#define NAME(stem) CAT(stem, SUFFIX)

#define UNCONST(at) ((char *)(uintptr_t)(at))
enum { VECTOR_BYTES = 16, SUM_VECTORS = TILE_ROWS * TILE_PLACES };

typedef int64_t i64x2 __attribute__((vector_size(16)));

static inline i64x2 i64x2_load(const int64_t *from) {
  i64x2 v;
  memcpy(&v, from, sizeof v);
  return v;
}
static inline void i64x2_store(int64_t *to, i64x2 v) { memcpy(to, &v, sizeof v); }
static inline i64x2 i64x2_splat(int64_t x) { return (i64x2){x, x}; }

#define CONV_BODY

#define PLAIN
/* A single row has loops of its own, and whole tiles are written where they are summed. */
#define LINES
#define MOVES f32
#define REAL float
#define VEC f32x4
#define MASK i32x4
#define LANES 4
#define SUFFIX f32
#include "ops/nn/conv_maps.c"
#undef PLAIN
#undef LINES
#undef MOVES
#undef REAL
#undef VEC
#undef MASK
#undef LANES
#undef SUFFIX

/* Functions that only move elements are shared by both types of eight bytes. */
#define PLAIN SMALL
#define WHOLE /* zero times anything is zero: no masks */
#define MOVES i64
#define REAL int64_t
#define VEC i64x2
#define MASK i64x2
#define LANES 2
#define SUFFIX i64
#include "ops/nn/conv_maps.c"
#undef WHOLE
#undef REAL
#undef VEC
#undef SUFFIX

#define MOVED
#define REAL double
#define VEC f64x2
#define SUFFIX f64
#include "ops/nn/conv_maps.c"

static const Loops *const loops[DT_COUNT] = {
    [DT_F32] = &loops_f32, [DT_F64] = &loops_f64, [DT_I64] = &loops_i64};

/* ------------------------------------------------------------ the maps */

/* Rows are computed four at a time, the last one or two singly. */
static int64_t tile_of(const Plan *p, int64_t rows) {
  return rows > 2 || !p->loops->multiply[0][1] ? TILE_ROWS : 1;
}

SMALL static void *records_room(const Plan *p, int64_t n) {
  return scratch_array(n, (size_t)((TILE_ROWS + 1) * VECTOR_BYTES + p->loops->bytes));
}

SMALL static Place *places_room(int64_t n) { return scratch_array(n + LINE_PLACES, sizeof(Place)); }

/* The input of a map (to be laid out), its weights, and its output. The gradient of weights reads
 * `to` and writes `weights`. */
typedef struct {
  const char *read, *bias;
  char *weights, *to;
} Operands;

typedef struct {
  int64_t first, n, channel, channels; /* taps; and their channels */
  Box box;
  Place *taps, *groups;
  void *records;
  char *room;
} Block;

/* Computes rows [row, row + rows) of a group at all positions of a box. */
SMALL static void multiply_strip(const Plan *p, const Block *k, int64_t tile, int64_t row,
                                 int64_t rows, int64_t groups, const Operands *o) {
  int64_t places = places_of(tile), bytes = p->loops->bytes, g = 0;
  char sums[SUM_VECTORS * VECTOR_BYTES] = {0};
  Target t = {o->to + row * p->row_step * bytes, o->bias ? o->bias + row * bytes : NULL,
              p->row_step, p->to_step[3], k->first == 0};
  p->loops->splat(k->records, tile, rows, k->n, k->taps, o->weights + row * p->w_row * bytes,
                  p->w_row);
  if (p->loops->write_whole && k->n && rows == tile && t.lane_step == 1)
    g = p->loops->write_whole(tile, (ptrdiff_t)k->n, k->records, k->room, k->groups, groups, &t);
  if (g > 0) TOOK(CONV_TILES);
  if (tile == 1) TOOK(CONV_LINES);
  for (; g < groups; g += places) {
    if (k->n)
      p->loops->multiply[0][tile == 1]((ptrdiff_t)k->n, k->records, k->room, k->groups + g, sums);
    p->loops->write(sums, rows, least(places, groups - g), k->groups + g, &t);
  }
}

/* Adds to the gradient of weights: rows of y times the cells that the taps meet. */
SMALL static void correlate_strip(const Plan *p, const Block *k, int64_t tile, int64_t row,
                                  int64_t rows, int64_t groups, const Operands *o) {
  int64_t places = places_of(tile), bytes = p->loops->bytes;
  bool masked = k->box.n[3] % p->loops->lanes != 0 && p->loops->multiply[1][0];
  char sums[SUM_VECTORS * VECTOR_BYTES], *w = o->weights + row * p->w_row * bytes;
  if (masked) TOOK(CONV_MASKED);
  if (tile == 1) TOOK(CONV_LINES);
  p->loops->gather(k->records, tile, rows, masked, groups, k->groups,
                   o->to + row * p->row_step * bytes, p->row_step);
  for (int64_t t = 0; t < k->n; t += places) {
    p->loops->multiply[masked][tile == 1]((ptrdiff_t)groups, k->records, k->room, k->taps + t,
                                          sums);
    p->loops->add(sums, rows, least(places, k->n - t), k->taps + t, w, p->w_row);
  }
}

typedef void StripMap(const Plan *p, const Block *k, int64_t tile, int64_t row, int64_t rows,
                      int64_t groups, const Operands *o);

/* Maps taps [k->first, k->first + n), box after box. */
SMALL static void map_block(const Plan *p, Block *k, const Box *whole, int64_t n, StripMap *strip,
                            const Operands *all) {
  int64_t bytes = p->loops->bytes;
  k->n = n;
  k->channel = n ? k->first / p->spots : 0;
  k->channels = n ? (k->first + n - 1) / p->spots + 1 - k->channel : 0;
  Box last = {0};
  for (int64_t i = 0; box_at(p, whole, k->channels, i, &k->box); i++, last = k->box) {
    if (last.plane != k->box.plane || last.line != k->box.line || last.cells[1] != k->box.cells[1])
      list_taps(p, &k->box, k->channel, k->first, n, k->taps);
    int64_t groups = list_groups(p, &k->box, k->groups);
    for (int64_t g = 0; g < p->groups; g++) {
      Operands o = {
          all->read + g * p->read_group * bytes, all->bias ? all->bias + g * p->rows * bytes : NULL,
          all->weights + g * p->w_group * bytes, all->to + g * p->rows * p->row_step * bytes};
      box_lay(p, &k->box, o.read, k->channel, k->channels, k->room);
      for (int64_t r = 0, tile; r < p->rows; r += tile) {
        tile = tile_of(p, p->rows - r);
        if (poll_stops(k->n * groups * tile)) return;
        strip(p, k, tile, r, least(tile, p->rows - r), groups, &o);
      }
    }
  }
}

/* Maps all taps, `depth` at a time. */
SMALL static void map_all(const Plan *p, int64_t depth, int64_t max_groups, StripMap *strip,
                          const Operands *all) {
  int64_t taps = p->channels * p->spots,
          channels = taps ? least(p->channels, (depth + p->spots - 2) / p->spots + 1) : 1;
  size_t mark = scratch_mark();
  TOOK(CONV_BOXES);
  Box whole = box_make(p, channels, max_groups);
  int64_t groups = box_groups(p, &whole);
  Block k = {.taps = places_room(depth),
             .groups = places_room(groups),
             .records = records_room(p, most(depth, groups)),
             .room = box_room(p, &whole)};
  do map_block(p, &k, &whole, least(depth, taps - k.first), strip, all);
  while ((k.first += depth) < taps && !failed());
  scratch_release(mark);
}

/* ------------------------------------------------------------ by matrix products */

/* Whether the image is its own patches. */
static bool is_pointwise(const Conv *c) {
  bool plain = true;
  for (int i = 0; i < 3; i++)
    plain = plain && c->kernel[i] == 1 && c->stride[i] == 1 && c->in[i] == c->out[i] &&
            c->padding[i] == 0;
  return plain;
}

static double steps(const Conv *c) {
  return (double)c->stride[0] * (double)c->stride[1] * (double)c->stride[2];
}

static bool few_patches(const Conv *c) {
  return (double)patch_size(c) * (double)volume(c->out) <= MAX_PATCHES;
}

/* Whether a kernel is so large, and its positions so few, that laying out channels for each block
 * of taps would cost more than patches. */
static bool is_vast(const Conv *c) {
  return volume(c->kernel) > VAST_TAPS && volume(c->out) <= RAGGED_PLACES && few_patches(c);
}

/* Whether most cells that taps meet in data are zeros around y, or there are many remainders. */
static bool meets_few(const Conv *c) {
  return few_patches(c) && (steps(c) > MANY_RESTS ||
                            2 * (double)volume(c->in) > 5 * steps(c) * (double)volume(c->out));
}

/* Whether groups of positions would lack many lanes, or lines be in many pieces, with enough rows
 * to make the unrolling of the image worth it. */
static bool is_ragged(const Conv *c, DType d) {
  bool ragged = (c->out[2] < RAGGED_LINE && c->out[2] % loops[d]->lanes) || steps(c) > MANY_RESTS;
  return ragged && few_patches(c) && c->out_channels >= RAGGED_ROWS * c->groups &&
         volume(c->out) >= RAGGED_PLACES;
}

/* Computes a map of every sample and group as a matrix product, with patches unless the image is
 * its own. */
enum { FORWARD, DATA, WEIGHTS };
SMALL static bool convolve_by_products(const Conv *c, DType d, int map, const char *x,
                                       const char *w, const char *y, const char *bias) {
  size_t mark = scratch_mark();
  const Loops *l = loops[d];
  bool pointwise = is_pointwise(c);
  TOOK(CONV_PRODUCTS);
  int64_t m = c->out_channels / c->groups, k = patch_size(c), n = volume(c->out), bytes = l->bytes;
  void *scratch = scratch_alloc(GEMM_SCRATCH_MAX_BYTES);
  char *patches = pointwise ? NULL : scratch_array(k * n, (size_t)bytes);
  for (int64_t i = 0; i < c->samples * c->groups && !failed(); i++) {
    char *xi = UNCONST(x) + i * (c->in_channels / c->groups) * volume(c->in) * bytes,
         *yi = UNCONST(y) + i * m * n * bytes;
    char *wi = UNCONST(w) + i % c->groups * m * k * bytes;
    const char *b = bias ? bias + i % c->groups * (map == DATA ? k / volume(c->kernel) : m) * bytes
                         : NULL;
    if (map != DATA && !pointwise) l->patches(c, xi, patches, false);
    if (map == WEIGHTS)
      l->product(m, k, n, yi, n, 1, pointwise ? xi : patches, 1, n, true, wi, k, scratch);
    else if (map == FORWARD) {
      if (b) l->fill(yi, b, m, n);
      l->product(m, n, k, wi, k, 1, pointwise ? xi : patches, n, 1, b, yi, n, scratch);
    } else {
      if (b || !pointwise) l->fill(xi, b, c->in_channels / c->groups, volume(c->in));
      l->product(k, n, m, wi, 1, k, yi, n, 1, pointwise && b, pointwise ? xi : patches, n, scratch);
      if (!pointwise) l->patches(c, xi, patches, true);
    }
  }
  scratch_release(mark);
  return !failed();
}

void conv_patches(const Conv *c, DType d, char *images, char *patches, bool back) {
  int64_t bytes = dtype_bytes(d), image = c->in_channels * volume(c->in) * bytes,
          all = patch_size(c) * volume(c->out) * bytes;
  for (int64_t i = 0; i < c->samples; i++)
    loops[d]->patches(c, images + i * image, patches + i * all, back);
}

/* ------------------------------------------------------------ plans */

/* The plan of y = w * x. */
SMALL static Plan plan_forward(const Conv *c, DType d) {
  Plan p = {.loops = loops[d],
            .channels = c->in_channels / c->groups,
            .image_step = c->in_channels * volume(c->in),
            .rows = c->out_channels / c->groups,
            .row_step = volume(c->out),
            .spots = volume(c->kernel),
            .groups = c->groups};
  p.w_channel = p.spots, p.w_row = patch_size(c), p.w_group = p.rows * p.w_row,
  p.read_group = p.channels * volume(c->in);
  p.count[0] = c->samples;
  p.to_step[0] = c->out_channels * volume(c->out), p.to_step[1] = c->out[1] * c->out[2],
  p.to_step[2] = c->out[2], p.to_step[3] = 1;
  for (int i = 0; i < 3; i++) {
    p.size[i] = c->in[i], p.step[i] = c->out[i] == 1 ? 1 : c->stride[i], p.low[i] = c->padding[i],
    p.count[1 + i] = c->out[i];
    p.span[i] = (c->kernel[i] - 1) * c->dilation[i] + 1;
  }
  p.spot = scratch_array(p.spots, sizeof *p.spot);
  for (int64_t k = 0; p.spot && k < p.spots; k++) {
    int64_t at[3] = {k / (c->kernel[1] * c->kernel[2]), k / c->kernel[2] % c->kernel[1],
                     k % c->kernel[2]};
    p.spot[k].weight = k;
    for (int i = 0; i < 3; i++) p.spot[k].cell[i] = at[i] * c->dilation[i];
  }
  return p;
}

/* The plan of x = w^T * y at the positions stride * j + rest, with the taps that meet a y there. */
SMALL static Plan plan_data(const Conv *c, DType d, const int64_t rest[3], Spot *spot) {
  Plan p = {.loops = loops[d],
            .channels = c->out_channels / c->groups,
            .image_step = c->out_channels * volume(c->out),
            .rows = c->in_channels / c->groups,
            .row_step = volume(c->in),
            .spot = spot,
            .groups = c->groups};
  p.w_row = volume(c->kernel), p.w_channel = p.rows * p.w_row, p.w_group = p.channels * p.w_channel,
  p.read_group = p.channels * volume(c->out);
  p.count[0] = c->samples;
  p.to_step[0] = c->in_channels * volume(c->in), p.to_step[1] = c->in[1] * c->in[2],
  p.to_step[2] = c->in[2], p.to_step[3] = 1;
  for (int i = 0; i < 3; i++) {
    int64_t s = c->stride[i];
    p.size[i] = c->out[i], p.step[i] = 1, p.count[1 + i] = ceiling(c->in[i] - rest[i], s),
    p.to_step[1 + i] *= s;
    p.low[i] = -floor_div(c->padding[i] - (c->kernel[i] - 1) * c->dilation[i], s);
    p.span[i] = p.low[i] + (s - 1 + c->padding[i]) / s + 1;
  }
  for (int64_t k = 0; k < volume(c->kernel); k++) {
    int64_t at[3] = {k / (c->kernel[1] * c->kernel[2]), k / c->kernel[2] % c->kernel[1],
                     k % c->kernel[2]};
    bool met = true;
    for (int i = 0; i < 3; i++) {
      int64_t from = rest[i] + c->padding[i] - at[i] * c->dilation[i];
      met = met && from % c->stride[i] == 0;
      spot[p.spots].cell[i] = from / c->stride[i] + p.low[i];
    }
    spot[p.spots].weight = k;
    p.spots += met;
  }
  return p;
}

/* The number of taps in each block of a sum but the last: equal shares, in multiples of four. */
static int64_t depth_block(const Plan *p) {
  int64_t taps = p->channels * p->spots;
  return taps ? ceiling(ceiling(taps, ceiling(taps, DEPTH_TAPS)), 4) * 4 : 0;
}

static bool nothing(const Plan *p) {
  return !p->rows || !p->count[0] || !p->count[1] || !p->count[2] || !p->count[3];
}

SMALL bool conv_forward(const Conv *c, DType d, const char *x, const char *w, const char *bias,
                        char *y) {
  if ((is_pointwise(c) || is_vast(c)) && loops[d]->product)
    return convolve_by_products(c, d, FORWARD, x, w, y, bias);
  size_t mark = scratch_mark();
  Plan p = plan_forward(c, d);
  if (!failed() && !nothing(&p))
    map_all(&p, depth_block(&p), BOX_GROUPS, multiply_strip, &(Operands){x, bias, UNCONST(w), y});
  scratch_release(mark);
  return !failed();
}

SMALL bool conv_data(const Conv *c, DType d, const char *y, const char *w, const char *bias,
                     char *x) {
  if ((is_pointwise(c) || meets_few(c)) && loops[d]->product)
    return convolve_by_products(c, d, DATA, x, w, y, bias);
  size_t mark = scratch_mark();
  int64_t rests[3];
  for (int i = 0; i < 3; i++) rests[i] = least(c->stride[i], c->in[i]);
  Spot *spot = scratch_array(volume(c->kernel) + 1, sizeof *spot); /* one more for a trial */
  for (int64_t r = 0; r < volume(rests) && !failed(); r++) {
    int64_t rest[3] = {r / (rests[1] * rests[2]), r / rests[2] % rests[1], r % rests[2]};
    Plan p = plan_data(c, d, rest, spot);
    Operands all = {y, bias, UNCONST(w),
                    x + ((rest[0] * c->in[1] + rest[1]) * c->in[2] + rest[2]) * p.loops->bytes};
    if (!nothing(&p)) map_all(&p, depth_block(&p), BOX_GROUPS, multiply_strip, &all);
  }
  scratch_release(mark);
  return !failed();
}

SMALL bool conv_weights(const Conv *c, DType d, const char *x, const char *y, char *w) {
  memset(w, 0, (size_t)(c->out_channels * patch_size(c) * dtype_bytes(d)));
  if ((is_pointwise(c) || is_ragged(c, d)) && loops[d]->product)
    return convolve_by_products(c, d, WEIGHTS, x, w, y, NULL);
  size_t mark = scratch_mark();
  Plan p = plan_forward(c, d);
  int64_t depth = least(p.channels, most(1, WEIGHT_TAPS / most(1, p.spots))) * p.spots;
  if (!failed() && depth && !nothing(&p))
    map_all(&p, depth, DEPTH_GROUPS, correlate_strip, &(Operands){x, NULL, w, UNCONST(y)});
  scratch_release(mark);
  return !failed();
}

#else

#define LOAD CAT(VEC, load)
#define STORE CAT(VEC, store)
#define SPLAT CAT(VEC, splat)
#define TRANSPOSE CAT(VEC, transpose)

/* The size of a record in reals: the lanes of its rows, a mask if `masked`, an offset. */
INLINE ptrdiff_t NAME(record_size)(int64_t rows, int masked) {
  return (ptrdiff_t)(rows + masked) * LANES + 1;
}

INLINE void NAME(add_record)(int rows, int places, int masked, VEC *sum, const REAL *record,
                             const char *const *place) {
  int32_t offset;
  VEC x[LINE_PLACES];
  memcpy(&offset, record + NAME(record_size)(rows, masked) - 1, sizeof offset);
  UNROLLED for (int v = 0; v < places; v++) {
    memcpy(&x[v], place[v] + offset, sizeof x[v]);
    if (masked) x[v] = (VEC)((MASK)x[v] & (MASK)LOAD(record + rows * LANES));
  }
  UNROLLED for (int i = 0; i < rows; i++) {
    VEC lanes = LOAD(record + i * LANES);
    UNROLLED for (int v = 0; v < places; v++) sum[i * places + v] += lanes * x[v];
  }
}

/* sum[rows][places] += n > 0 records, each times the vectors at its offset from the places. Engines
 * hoist the loads of a basic block above its arithmetic, and the loads of two records do not fit
 * the registers: so an exit stands between two records. */
INLINE void NAME(add_records)(int rows, int places, int masked, ptrdiff_t n, const REAL *record,
                              const char *box, const Place *at, VEC *sum) {
  const char *place[LINE_PLACES];
  ptrdiff_t size = NAME(record_size)(rows, masked);
  const REAL *end = record + n * size;
  UNROLLED for (int v = 0; v < places; v++) place[v] = box + at[v].offset;
  for (;; record += 2 * size) {
    NAME(add_record)(rows, places, masked, sum, record, place);
    if (record + size == end) break;
    NAME(add_record)(rows, places, masked, sum, record + size, place);
    if (record + 2 * size == end) break;
  }
}

INLINE void NAME(multiply)(int rows, int places, int masked, ptrdiff_t n, const REAL *record,
                           const char *box, const Place *at, REAL *sums) {
  VEC sum[SUM_VECTORS] = {{0}};
  NAME(add_records)(rows, places, masked, n, record, box, at, sum);
  UNROLLED for (int i = 0; i < rows * places; i++) STORE(sums + i * LANES, sum[i]);
}

#define MULTIPLY(name, rows, places, masked)                                                 \
  static void NAME(name)(ptrdiff_t n, const void *records, const char *box, const Place *at, \
                         void *sums) {                                                       \
    NAME(multiply)(rows, places, masked, n, records, box, at, sums);                         \
  }
MULTIPLY(tile, TILE_ROWS, TILE_PLACES, 0)
#ifndef WHOLE
MULTIPLY(masked_tile, TILE_ROWS, TILE_PLACES, 1)
#endif
#ifdef LINES
MULTIPLY(line, 1, LINE_PLACES, 0)
MULTIPLY(masked_line, 1, LINE_PLACES, 1)
#endif
#undef MULTIPLY

#ifndef MOVED
/* Writes zeros by whole vectors, perhaps some more. */
INLINE void NAME(lay_zeros)(REAL *to, ptrdiff_t n) {
  const VEC none = {0};
  if (n > 0) STORE(to, none);
  for (ptrdiff_t i = LANES; i < n; i += LANES) STORE(to + i, none);
}

/* Copies n lines so that cell 0 holds element `at`; pads with zeros. A line becomes `step` pieces
 * of `length`. The next piece overwrites zeros beyond its predecessor. */
SMALL static void NAME(lay_lines)(void *to, const void *lines, int64_t n, int64_t at, int64_t size,
                                  int64_t step, int64_t length) {
  REAL *piece = to;
  const REAL *line = lines;
  for (ptrdiff_t k = (ptrdiff_t)n; k; k--, line += size)
    for (int64_t r = at; r < at + step; r++, piece += length) {
      int64_t low = -r, high = size - r;
      if (step > 1) low = ceiling(low, step), high = ceiling(high, step);
      ptrdiff_t first = (ptrdiff_t)least(most(low, 0), length),
                end = (ptrdiff_t)most(least(high, length), first), i = first;
      const REAL *read = line + r;
      NAME(lay_zeros)(piece, first);
      for (; step == 1 && i + LANES <= end; i += LANES) STORE(piece + i, LOAD(read + i));
      for (; i < end; i++) piece[i] = read[i * (ptrdiff_t)step];
      NAME(lay_zeros)(piece + end, (ptrdiff_t)length - end);
    }
}

INLINE void NAME(put_offset)(REAL *record, ptrdiff_t size, int32_t offset) {
  memcpy(record + size - 1, &offset, sizeof offset);
}

/* Makes a record of each tap, with zeros in missing rows. */
PLAIN static void NAME(splat)(void *records, int64_t tile, int64_t rows, int64_t n,
                              const Place *taps, const void *w, int64_t row_step) {
  ptrdiff_t size = NAME(record_size)(tile, 0), step = (ptrdiff_t)row_step;
  REAL *record = records;
  for (int64_t t = 0; t < n; t++, record += size) {
    const REAL *from = (const REAL *)w + (ptrdiff_t)taps[t].to;
    if (rows == TILE_ROWS) {
      UNROLLED for (int i = 0; i < TILE_ROWS; i++) STORE(record + i * LANES, SPLAT(from[i * step]));
    } else {
      for (ptrdiff_t i = 0; i < tile; i++)
        STORE(record + i * LANES, SPLAT(i < rows ? from[i * step] : 0));
    }
    NAME(put_offset)(record, size, taps[t].offset);
  }
}

/* Makes a record of each group of positions, with zeros in missing lanes. */
PLAIN static void NAME(gather)(void *records, int64_t tile, int64_t rows, bool masked, int64_t n,
                               const Place *groups, const void *y, int64_t row_step) {
  ptrdiff_t size = NAME(record_size)(tile, masked), step = (ptrdiff_t)row_step;
  REAL *record = records;
  for (int64_t g = 0; g < n; g++, record += size) {
    const REAL *from = (const REAL *)y + groups[g].to;
    if (rows == TILE_ROWS && groups[g].count == LANES) {
      UNROLLED for (int i = 0; i < TILE_ROWS; i++) STORE(record + i * LANES, LOAD(from + i * step));
    } else {
      for (int64_t i = 0; i < tile * LANES; i++)
        record[i] = i / LANES < rows && i % LANES < groups[g].count
                        ? from[i / LANES * row_step + i % LANES]
                        : 0;
    }
    if (masked) {
      VEC mask = {0};
      memset(&mask, -1, (size_t)groups[g].count * sizeof(REAL));
      STORE(record + tile * LANES, mask);
    }
    NAME(put_offset)(record, size, groups[g].offset);
  }
}

#endif

INLINE void NAME(write_vector)(REAL *at, VEC sum, bool first, REAL bias) {
  STORE(at, sum + (first ? SPLAT(bias) : LOAD(at)));
}

SMALL static void NAME(write)(const void *sums, int64_t rows, int64_t n, const Place *groups,
                              const Target *t) {
  const REAL *sum = sums;
  ptrdiff_t places = rows == 1 ? LINE_PLACES : TILE_PLACES, step = (ptrdiff_t)t->row_step,
            lane_step = (ptrdiff_t)t->lane_step;
  for (ptrdiff_t i = 0; i < rows; i++, sum += places * LANES) {
    REAL b = t->first && t->bias ? ((const REAL *)(const void *)t->bias)[i] : 0;
    for (ptrdiff_t v = 0; v < n; v++) {
      REAL *at = (REAL *)(void *)t->to + groups[v].to + i * step;
      ptrdiff_t count = groups[v].count;
      if (lane_step == 1 && count == LANES)
        NAME(write_vector)(at, LOAD(sum + v * LANES), t->first, b);
      else
        for (ptrdiff_t l = 0; l < count; l++)
          at[l * lane_step] = sum[v * LANES + l] + (t->first ? b : at[l * lane_step]);
    }
  }
}

#ifdef LINES
/* Sums and writes a whole tile. Only the target is held across the sum. */
static __attribute__((noinline)) void NAME(write_tile)(ptrdiff_t n, const REAL *records,
                                                       const char *box, const Place *groups,
                                                       const Target *t) {
  VEC sum[SUM_VECTORS] = {{0}};
  NAME(add_records)(TILE_ROWS, TILE_PLACES, 0, n, records, box, groups, sum);
  ptrdiff_t step = (ptrdiff_t)t->row_step;
  REAL *left = (REAL *)(void *)t->to + groups[0].to, *right = (REAL *)(void *)t->to + groups[1].to;
  const REAL *bias = (const REAL *)(const void *)t->bias;
  if (!t->first) {
    UNROLLED for (int i = 0; i < TILE_ROWS; i++) sum[i * 2] += LOAD(left + i * step),
        sum[i * 2 + 1] += LOAD(right + i * step);
  } else if (bias) {
    UNROLLED for (int i = 0; i < TILE_ROWS; i++) sum[i * 2] += SPLAT(bias[i]),
        sum[i * 2 + 1] += SPLAT(bias[i]);
  }
  UNROLLED for (int i = 0; i < TILE_ROWS; i++, left += step, right += step) {
    STORE(left, sum[i * 2]);
    STORE(right, sum[i * 2 + 1]);
  }
}

/* Sums and writes a whole line of one row. */
static __attribute__((noinline)) void NAME(write_line)(ptrdiff_t n, const REAL *records,
                                                       const char *box, const Place *groups,
                                                       const Target *t) {
  VEC sum[LINE_PLACES] = {{0}};
  NAME(add_records)(1, LINE_PLACES, 0, n, records, box, groups, sum);
  const REAL bias = t->bias ? *(const REAL *)(const void *)t->bias : 0;
  UNROLLED for (int v = 0; v < LINE_PLACES; v++)
      NAME(write_vector)((REAL *)(void *)t->to + groups[v].to, sum[v], t->first, bias);
}

/* Writes tiles or lines as long as they are whole; returns the number of their groups. */
static int64_t NAME(write_whole)(int64_t tile, ptrdiff_t n, const void *records, const char *box,
                                 const Place *groups, int64_t n_groups, const Target *t) {
  int64_t g = 0, places = places_of(tile), whole = 0;
  for (;; g += places) {
    while (whole < n_groups && whole < g + places && groups[whole].count == LANES) whole++;
    if (whole < g + places) return g;
    if (tile == 1) NAME(write_line)(n, records, box, groups + g, t);
    else NAME(write_tile)(n, records, box, groups + g, t);
  }
}
#endif

/* Adds up the lanes of sums, into the weight's gradient. */
PLAIN static void NAME(add)(const void *sums, int64_t rows, int64_t n, const Place *taps, void *to,
                            int64_t row_step) {
  for (ptrdiff_t v = 0; v < n; v++) {
    const REAL *sum = (const REAL *)sums + v * LANES;
    REAL *at = (REAL *)to + taps[v].to;
#ifdef LINES
    if (rows == TILE_ROWS) {
      VEC square[LANES];
      UNROLLED for (int i = 0; i < LANES; i++) square[i] = LOAD(sum + i * TILE_PLACES * LANES);
      TRANSPOSE(square);
      square[0] = (square[0] + square[2]) + (square[1] + square[3]);
      UNROLLED for (int i = 0; i < LANES; i++) at[i * (ptrdiff_t)row_step] += square[0][i];
      continue;
    }
#endif
    for (ptrdiff_t i = 0; i < rows; i++, sum += TILE_PLACES * LANES, at += (ptrdiff_t)row_step)
      *at += LANES == 4 ? (sum[0] + sum[2]) + (sum[1] + sum[LANES - 1]) : sum[0] + sum[1];
  }
}

#ifndef WHOLE
static void NAME(product)(int64_t m, int64_t n, int64_t k, const void *a, int64_t a_rs,
                          int64_t a_cs, const void *b, int64_t b_rs, int64_t b_cs, bool add,
                          void *c, int64_t c_rs, void *scratch) {
  NAME(gemm)(m, n, k, 1, a, a_rs, a_cs, b, b_rs, b_cs, add, c, c_rs, 1, scratch);
}

SMALL static void NAME(fill)(void *to, const void *values, int64_t rows, int64_t length) {
  for (int64_t i = 0; i < rows * length; i++)
    ((REAL *)to)[i] = values ? ((const REAL *)values)[i / length] : 0;
}

/* Copies positions [first, end) of a line of patches from the cells from `met` on; `back` adds them
 * there. */
INLINE void NAME(patch_line)(REAL *line, ptrdiff_t n, ptrdiff_t first, ptrdiff_t end, REAL *met,
                             ptrdiff_t step, bool back) {
  ptrdiff_t i = first;
  if (!back) {
    for (ptrdiff_t k = 0; k < first; k++) line[k] = 0;
    for (ptrdiff_t k = end; k < n; k++) line[k] = 0;
  }
#ifdef LINES
  for (; step == 1 && i + LANES <= end; i += LANES, met += LANES) {
    if (back) STORE(met, LOAD(met) + LOAD(line + i));
    else STORE(line + i, LOAD(met));
  }
#endif
  for (; i < end; i++, met += step) {
    if (back) *met += line[i];
    else line[i] = *met;
  }
}

/* Makes the patches (patch_size, positions) of an image or, with `back`, adds their elements to
 * where they came from. */
PLAIN static void NAME(patches)(const Conv *c, void *image, void *patches, bool back) {
  int64_t s = c->stride[2], n = c->out[2], first[3], end[3], spots = volume(c->kernel);
  REAL *line = patches;
  for (int64_t r = 0; r < patch_size(c) && !poll_stops(2 * volume(c->out)); r++) {
    int64_t k[3] = {r / (c->kernel[1] * c->kernel[2]) % c->kernel[0],
                    r / c->kernel[2] % c->kernel[1], r % c->kernel[2]},
            at[3];
    for (int d = 0; d < 3; d++) {
      reach(c, d, k[d], first + d, end + d);
      at[d] = k[d] * c->dilation[d] - c->padding[d];
    }
    int64_t origin = ((r / spots * c->in[0] + at[0]) * c->in[1] + at[1]) * c->in[2] + at[2] +
                     first[2] * s;
    for (int64_t z = 0; z < c->out[0]; z++)
      for (int64_t y = 0; y < c->out[1]; y++, line += n) {
        bool inside = z >= first[0] && z < end[0] && y >= first[1] && y < end[1];
        ptrdiff_t from = (ptrdiff_t)(inside ? first[2] : n),
                  past = (ptrdiff_t)(inside ? end[2] : n);
        REAL *met = (REAL *)image +
                    (inside ? origin + (z * c->stride[0] * c->in[1] + y * c->stride[1]) * c->in[2]
                            : 0);
        NAME(patch_line)(line, (ptrdiff_t)n, from, past, met, (ptrdiff_t)s, back);
      }
  }
}
#endif

static const Loops NAME(loops) = {
    .bytes = sizeof(REAL),
    .lanes = LANES,
    .write = NAME(write),
    .add = NAME(add),
    .lay_lines = CAT(lay_lines, MOVES),
    .splat = CAT(splat, MOVES),
    .gather = CAT(gather, MOVES),
#ifdef WHOLE
    .multiply = {{NAME(tile)}},
#else
    .product = NAME(product),
    .fill = NAME(fill),
    .patches = NAME(patches),
#ifdef LINES
    .write_whole = NAME(write_whole),
    .multiply = {{NAME(tile), NAME(line)}, {NAME(masked_tile), NAME(masked_line)}},
#else
    .multiply = {{NAME(tile)}, {NAME(masked_tile)}},
#endif
#endif
};

#undef LOAD
#undef STORE
#undef SPLAT
#undef TRANSPOSE

#endif
