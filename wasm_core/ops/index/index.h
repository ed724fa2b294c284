/* Moving elements to and from places named by index tensors; shared by the indexing families.
 *
 * Every such op (x[i], gather, index_add, ...) first turns its indices into `at`, an element offset
 * for each place. This checks them, so a bad index is an error before anything is written. Then one
 * of two walks moves the elements. Writes happen in the order of the indices, so duplicates are
 * deterministic. */
#ifndef PG_INDEX_H
#define PG_INDEX_H

#include <stddef.h>

#include "ops/op.h"

/* The items of a subscript: X(NAME, name, words after the kind). Hosts read the kinds by name:
 * item_none. */
#define ITEM_KINDS(X)      \
  X(NONE, none, 0)         \
  X(ELLIPSIS, ellipsis, 0) \
  X(INT, int, 1)           \
  X(SLICE, slice, 3)       \
  X(TENSOR, tensor, 1)     \
  X(BOOL, bool, 1)
typedef enum {
#define X(NAME, name, words) ITEM_##NAME,
  ITEM_KINDS(X)
#undef X
} ItemKind;

/* Sets the error; false, for `return REFUSE(...)`. */
#define REFUSE(...) ((void)fail(__VA_ARGS__), false)

typedef struct {
  Tensor *at;   /* int64, of the full shape, contiguous where it varies */
  Tensor *view; /* the indexed tensor with the full shape, stride 0 where `at` decides */
} Places;

typedef enum { PUT_SET, PUT_ADD, PUT_MUL, PUT_MAX, PUT_MIN } Put;

/* The first index out of bounds that a walk over an index tensor met, if any. */
typedef struct {
  int64_t value;
  bool found;
} OutOfBounds;

/* at += stride * index, element by element; `at` has a shape that index broadcasts to. With `wrap`
 * negative indices count from the end. int64 and int32 only. */
void places_add(Tensor *at, Tensor *index, int64_t size, int64_t stride, bool wrap,
                OutOfBounds *bad);
/* The places x[.., index[i], ..]: whole slices along dim (index is a vector or a number), or single
 * elements (index has x's rank). at == NULL: bad->found, or another error is set. */
Places places_slices(Tensor *x, int64_t dim, Tensor *index, bool wrap, OutOfBounds *bad);
Places places_elements(Tensor *x, int64_t dim, Tensor *index, OutOfBounds *bad);

/* out (of the full shape) = the elements at the places. */
bool places_read(Places p, Tensor *out);
/* out (contiguous) = x[index] for whole rows, without places; bad->found for an index out of
 * bounds. False, and nothing done, if x's rows or the index are not contiguous. */
bool places_read_rows(const Tensor *x, const Tensor *index, Tensor *out, OutOfBounds *bad);
/* out (contiguous, of index's shape) = the elements of x named along dim by an index of x's rank,
 * without places; bad->found for an index out of bounds. False, and nothing done, unless the index
 * is int64 and x's elements have four or eight bytes. */
bool places_read_elements(Tensor *x, int64_t dim, Tensor *index, Tensor *out, OutOfBounds *bad);
/* Elements at the places (op)= value, which broadcasts to the full shape and has the same dtype. x
 * is the tensor of the places. False with the error set if it cannot be written. */
bool places_write(Tensor *x, Places p, Put put, Tensor *value);

/* x without history, with its layout kept, or contiguous; always a copy. */
Tensor *index_clone(Tensor *x);
Tensor *index_clone_contiguous(Tensor *x);
/* A wrapped number as a plain 0-dim tensor of dtype d; PyTorch's error if it does not fit. */
Tensor *index_number(Tensor *number, DType d);
/* Whether the dtype can index: int64 or int32. */
static inline bool index_dtype(const Tensor *t) { return t->dtype == DT_I64 || t->dtype == DT_I32; }
/* Whether t is a mask: bool, or uint8 as of old. */
static inline bool is_mask(const Tensor *t) { return t->dtype == DT_BOOL || t->dtype == DT_U8; }

/* Zeros of the sizes that node n has as a list from number k on. */
Tensor *index_zeros(Node *n, int k, DType d);
/* Zeros of the type of `like`, as an op that the host may answer. */
Tensor *t_new_zeros(Tensor *like, Ints sizes);
/* A 0-dim zero of g's dtype. */
static inline Tensor *index_zero(const Tensor *g) {
  return failed() || !g ? NULL : tensor_number(0, tensor_dtype(g));
}

/* The true elements of `mask` (contiguous bool): their number, and the offsets of the first n under
 * `strides`, in order. */
int64_t index_mask_count(const Tensor *mask);
void index_mask_offsets(const Tensor *mask, const int64_t *strides, int64_t n, int64_t *out);
/* mask as contiguous bool, perhaps itself. A copy if the host can write to its memory at any time:
 * the count must still hold when the elements are collected. */
Tensor *index_mask_plain(Tensor *mask);

#endif
