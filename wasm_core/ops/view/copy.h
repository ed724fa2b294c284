/* Shared by copies and other families: memory formats, overlap, plain writes. */
#ifndef PG_COPY_H
#define PG_COPY_H

#include <stddef.h>

#include "tensor/iter.h"

typedef enum {
  FORMAT_CONTIGUOUS,
  FORMAT_PRESERVE,
  FORMAT_CHANNELS_LAST,
  FORMAT_CHANNELS_LAST_3D
} MemoryFormat;

/* "torch.channels_last" and so on; `absent` for NULL, TypeError for anything else. */
MemoryFormat copy_format_named(const char *name, MemoryFormat absent);
/* Strides of a tensor of this format; false with PyTorch's error for a rank that it does not
 * have. */
bool copy_format_strides(int ndim, const int64_t *sizes, MemoryFormat format, int64_t *strides);
Tensor *tensor_empty_format(int ndim, const int64_t *sizes, DType dtype, MemoryFormat format);
Tensor *tensor_empty_like_format(const Tensor *like, DType dtype, MemoryFormat format);
bool tensor_has_format(const Tensor *t, MemoryFormat format);

/* Always a copy. form: that of the result, 0 or one of FORM_ABSENT. */
Tensor *t_to_device(Tensor *x, DType dtype, int32_t form, MemoryFormat format);
Tensor *t_clone_format(Tensor *x, MemoryFormat format);
Tensor *t_zero_(Tensor *x);

/* A copy of x in memory of its own, with nothing lazy. No history. */
Tensor *tensor_computed(Tensor *x);
void copy_truths(char *to, const char *from, size_t n); /* of bools, as 0 and 1 */
/* The elements of t, computed if lazy, in memory that nobody writes to meanwhile: a copy while an
 * array of the host shows them. Code that reads elements twice, first to check or count them, reads
 * these. No history. */
Tensor *tensor_settled(Tensor *t);
/* How two tensors overlap in one storage. PARTIAL is certain, PERHAPS could not be excluded. */
typedef enum { OVERLAP_NONE, OVERLAP_FULL, OVERLAP_PARTIAL, OVERLAP_PERHAPS } Overlap;
Overlap tensor_overlap(const Tensor *a, const Tensor *b);
/* False, with PyTorch's error, if elements of t surely share memory: then t cannot be written. */
bool copy_check_overlap(const Tensor *t);
/* False, with PyTorch's error, if dst surely overlaps src; `may_be_same`: it may be src itself. */
bool copy_check_apart(const Tensor *dst, const Tensor *src, bool may_be_same);
/* Sets every element of x to the (cast) value of a 0-dim tensor: no history, no version. */
bool tensor_fill_data(Tensor *x, Tensor *value);
/* The loop (iter.h) that moves elements of one type to another: p[0] from p[1]. */
Loop *cast_loop(DType to, DType from);

#endif
