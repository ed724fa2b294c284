/* The three bilinear maps of a convolution, on raw memory: forward (x, w -> y), data (g, w -> x)
 * and weights (x, g -> w), each the gradient of the others.
 *
 * Tensors are contiguous, of one type (float, double, int64), with the sizes that a Conv says. The
 * bits of an element of y follow from its patch and its filter alone, those of x from the elements
 * that meet it; those of w from the shape as well. */
#ifndef PG_CONV_MAPS_H
#define PG_CONV_MAPS_H

#include "ground/dtype.h"

/* The numbers of a node: nothing but int64_t. The names are those of the convolution that maps x to
 * y, also where it runs backwards. One or two spatial dimensions are three whose first ones have
 * size 1. */
typedef struct {
  int64_t nd, groups, transposed, unbatched, samples, in_channels, out_channels;
  int64_t in[3], kernel[3], out[3], stride[3], padding[3], dilation[3];
  int64_t output_padding[3], bias; /* for display: the number of the bias's elements */
} Conv;

static inline int64_t volume(const int64_t v[3]) { return v[0] * v[1] * v[2]; }
static inline int64_t patch_size(const Conv *c) {
  return c->in_channels / c->groups * volume(c->kernel);
}

/* y = w * x + bias; x = w^T * y + bias; w = the correlation of x and y. A bias may be NULL. False
 * with an error if memory runs out. */
bool conv_forward(const Conv *c, DType d, const char *x, const char *w, const char *bias, char *y);
bool conv_data(const Conv *c, DType d, const char *y, const char *w, const char *bias, char *x);
bool conv_weights(const Conv *c, DType d, const char *x, const char *y, char *w);

/* Makes the patches (patch_size, positions) of images of floats or, with `back`, adds their
 * elements to where they came from. */
void conv_patches(const Conv *c, DType d, char *images, char *patches, bool back);

#endif
