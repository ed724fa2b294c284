/* The text of a tensor, character for character what PyTorch's repr gives: number formats, column
 * widths, summaries, line breaks and the suffixes (size, dtype, grad_fn, requires_grad, tangent).
 * Knows nothing of the engine: the caller describes a tensor as a strided block of elements and
 * hands over the buffer. Allocates nothing; stack use grows with the rank alone. */
#ifndef PG_PRINT_H
#define PG_PRINT_H

#include <stdbool.h>
#include <stdint.h>

/* What an element in memory is; every kind is little-endian and needs no alignment. */
typedef enum {
  PRINT_KIND_BOOL,
  PRINT_KIND_UINT8,
  PRINT_KIND_UINT16,
  PRINT_KIND_UINT32,
  PRINT_KIND_UINT64,
  PRINT_KIND_INT8,
  PRINT_KIND_INT16,
  PRINT_KIND_INT32,
  PRINT_KIND_INT64,
  PRINT_KIND_FLOAT16,
  PRINT_KIND_BFLOAT16,
  PRINT_KIND_FLOAT32,
  PRINT_KIND_FLOAT64,
  PRINT_KIND_COMPLEX32,
  PRINT_KIND_COMPLEX64,
  PRINT_KIND_COMPLEX128,
  PRINT_KIND_COUNT
} PrintKind;

/* What torch.set_printoptions controls. threshold and linewidth are doubles since PyTorch takes
 * any number there (threshold infinity is the profile "full"). */
typedef struct {
  int32_t precision;  /* digits after the point, 0 to a million */
  int32_t sci_mode;   /* -1 decides by the values, 0 never, 1 always */
  double threshold;   /* more elements than this are summarised */
  double linewidth;   /* in characters; finite */
  int64_t edgeitems;  /* kept at each end of a summarised dimension, at least 0 */
} PrintOptions;

typedef enum {
  PRINT_PROFILE_DEFAULT,
  PRINT_PROFILE_SHORT,
  PRINT_PROFILE_FULL,
  PRINT_PROFILE_COUNT
} PrintProfile;

/* The options each profile of torch.set_printoptions stands for, by PrintProfile. */
extern const PrintOptions print_profiles[PRINT_PROFILE_COUNT];

/* A tensor as the printer sees it; every pointer is borrowed. */
typedef struct {
  const void *data;       /* the element at index 0, 0, ...; unread if the tensor is empty */
  const int64_t *sizes;   /* ndim of them */
  const int64_t *strides; /* ndim of them, in elements, of any sign */
  const char *class_name; /* stands before the parenthesis; NULL is "tensor" */
  const char *grad_fn;    /* its class name, such as "MulBackward0", or NULL */
  const char *tangent;    /* the text of a forward-mode tangent, or NULL */
  int32_t ndim;
  PrintKind kind;
  PrintKind default_kind; /* torch.get_default_dtype() */
  bool requires_grad;
} PrintTensor;

/* What the functions below return when an option or a kind is out of range. */
#define PRINT_BAD_ARGUMENT ((int64_t)-1)

/* Writes repr(tensor), as UTF-8 if the given names are, into out[0 .. cap) with a final NUL, cut
 * short if it does not fit; out may be NULL if cap is 0 or less. Returns the length of the whole,
 * in bytes without the NUL, or PRINT_BAD_ARGUMENT, which leaves out untouched. */
int64_t print_tensor(const PrintTensor *tensor, const PrintOptions *options, char *out,
                     int64_t cap);

/* Writes Python's f"{value:.<precision>f}", or with 'e' for `form` its exponent twin, under the
 * same rules for out and cap. */
int64_t print_float(double value, char form, int32_t precision, char *out, int64_t cap);

/* PyTorch's name of a kind, such as "torch.float64"; NULL out of range. */
const char *print_kind_name(PrintKind kind);

#endif
