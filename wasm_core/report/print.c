/* Renders a tensor as PyTorch's repr does. One walk over the elements to be shown determines the
 * number format and the column width; a second walk writes. Both walks recurse once a dimension and
 * skip the same middles, so the width fits. Digits come from snprintf, which is exact in musl and
 * glibc; all NaNs print alike. */
#include "report/print.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ground/poll.h"
#include "tape/graph.h"

/* The limit of linewidth, in characters: no text is longer, and below it sums and quotients of
 * widths are exact in a double. */
#define LINEWIDTH_MAX 1e15

/* The limit of digits after the point: the length of a number must fit an int, which snprintf
 * returns. A double has no nonzero digit after the 1074th. */
#define PRECISION_MAX 1000000

/* ---- The sink: text that knows its column -------------------------------------------------- */

typedef struct {
  Text *text;
  int64_t column; /* characters since the last line break */
} Sink;

/* A byte 10xxxxxx continues a UTF-8 character, so it takes no column of its own. */
static void sink_bytes(Sink *sink, const char *text, int64_t n) {
  text_add(sink->text, text, (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    if (text[i] == '\n') {
      sink->column = 0;
    } else if (((unsigned char)text[i] & 0xC0) != 0x80) {
      sink->column++;
    }
  }
}

static void sink_text(Sink *sink, const char *text) {
  sink_bytes(sink, text, (int64_t)strlen(text));
}

static void sink_spaces(Sink *sink, int64_t n) {
  for (; n > 0; n--) sink_bytes(sink, " ", 1);
}

/* ---- Numbers ------------------------------------------------------------------------------- */

/* The format that all shown values share. */
typedef struct {
  DType dtype;
  int32_t precision;
  int64_t width;      /* of the widest finite nonzero value; PyTorch ignores the others */
  bool sci;           /* exponents */
  bool whole;         /* every value is an integer, so only the point is written */
  double smallest[2]; /* magnitudes of the finite nonzero values: positive ones, negative ones */
  double largest[2];  /* 0 if there is none of that sign */
} Format;

/* printf's text of a double, with Python's spelling of infinities and NaN: no "-nan". */
static int64_t float_text(char *out, size_t cap, const Format *format, double value) {
  if (isnan(value)) return snprintf(out, cap, "nan");
  if (isinf(value)) return snprintf(out, cap, value < 0 ? "-inf" : "inf");
  if (format->sci) return snprintf(out, cap, "%.*e", (int)format->precision, value);
  if (format->whole) return snprintf(out, cap, "%.0f.", value);
  return snprintf(out, cap, "%.*f", (int)format->precision, value);
}

/* A real number, or a part of a complex one. */
typedef union {
  double f;
  int64_t i;
} Printed;

/* Writes a number, unpadded, as snprintf does. */
static int64_t number_shown(char *out, size_t cap, const Format *format, Printed value) {
  const DType dtype = format->dtype;
  if (dtype_is_float(dtype)) return float_text(out, cap, format, value.f);
  if (dtype == DT_BOOL) return snprintf(out, cap, value.i ? "True" : "False");
  return snprintf(out, cap, dtype == DT_U64 ? "%llu" : "%lld", (Shown)value.i);
}

static void widen(Format *format, int64_t width) {
  if (width > format->width) format->width = width;
}

/* Updates the format by one value to be shown: the width for integers, the extremes that settle
 * needs for floats. */
static void observe(Format *format, Printed shown) {
  if (!dtype_is_float(format->dtype)) {
    widen(format, number_shown(NULL, 0, format, shown));
    return;
  }
  const double value = shown.f, size = fabs(value);
  const int sign = value < 0;
  if (!isfinite(value) || size == 0) return;
  if (format->largest[sign] == 0 || size < format->smallest[sign]) format->smallest[sign] = size;
  if (size > format->largest[sign]) format->largest[sign] = size;
  if (size != floor(size)) format->whole = false;
}

/* PyTorch's rule for exponents. `low` and `high` bound the magnitudes of the nonzero values. */
static bool wants_exponents(int32_t sci_mode, double low, double high) {
  if (sci_mode >= 0) return sci_mode > 0;
  return high / low > 1000.0 || high > 1.0e8 || low < 1.0e-4;
}

/* Determines the format of floats. The length of a printed number grows with its magnitude, or with
 * an exponent toward both ends, so the widest value is among the extremes of each sign. */
static void settle(Format *format, int32_t sci_mode) {
  double low = (double)INFINITY, high = 0;
  for (int sign = 0; sign < 2; sign++) {
    if (format->largest[sign] == 0) continue;
    low = fmin(low, format->smallest[sign]);
    high = fmax(high, format->largest[sign]);
  }
  if (high == 0) return;
  format->sci = wants_exponents(sci_mode, low, high);
  for (int sign = 0; sign < 2; sign++) {
    if (format->largest[sign] == 0) continue;
    widen(format, float_text(NULL, 0, format, format->smallest[sign]) + sign);
    widen(format, float_text(NULL, 0, format, format->largest[sign]) + sign);
  }
}

/* ---- Elements: the walk both passes share --------------------------------------------------- */

typedef struct {
  const Tensor *tensor;
  const PrintNames *names;
  const PrintOptions *options;
  Format format, imaginary; /* `imaginary` for complex numbers */
  Sink sink;
  bool summarize, complex;
} Job;

static bool is_cut(const Job *job, int32_t dim) {
  const int64_t edge = job->options->edgeitems;
  return job->summarize && job->tensor->sizes[dim] - edge > edge;
}

/* The index shown after `index`: over the middle of a cut dimension it jumps to the far edge. */
static int64_t index_after(const Job *job, int32_t dim, int64_t index) {
  const int64_t edge = job->options->edgeitems;
  const bool jumps = is_cut(job, dim) && index + 1 == edge;
  return jumps ? job->tensor->sizes[dim] - edge : index + 1;
}

/* The first index shown in a dimension; the size if edgeitems is 0 and the dimension is cut. */
static int64_t index_first(const Job *job, int32_t dim) {
  return is_cut(job, dim) && job->options->edgeitems == 0 ? job->tensor->sizes[dim] : 0;
}

/* An element, or the real part of a complex one. */
static Printed element_at(const Job *job, int64_t offset) {
  const Tensor *t = job->tensor;
  return dtype_is_float(job->format.dtype) ? (Printed){.f = tensor_get_f(t, offset)}
                                           : (Printed){.i = tensor_get_i(t, offset)};
}
static Printed imaginary_at(const Job *job, int64_t offset) {
  return (Printed){.f = __imag__ tensor_get_c(job->tensor, offset)};
}

/* First walk: passes every element to be printed to `observe`. Recurses once a dimension. */
static void survey(Job *job, int32_t dim, int64_t offset) {
  if (dim == job->tensor->ndim) {
    if (poll_stops(128)) return;
    observe(&job->format, element_at(job, offset));
    if (job->complex) observe(&job->imaginary, imaginary_at(job, offset));
    return;
  }
  const int64_t size = job->tensor->sizes[dim], stride = job->tensor->strides[dim];
  for (int64_t i = index_first(job, dim); i < size; i = index_after(job, dim, i)) {
    survey(job, dim + 1, offset + i * stride);
  }
}

/* Writes a number: a short text from the stack; a long one (a huge number without exponent, a large
 * precision) is formatted again in place. */
static void put_number(Sink *sink, const Format *format, Printed value, bool padded) {
  char text[48];
  const int64_t n = number_shown(text, sizeof text, format, value);
  if (padded) sink_spaces(sink, format->width - n);
  if (n < (int64_t)sizeof text) {
    sink_bytes(sink, text, n);
    return;
  }
  if (!text_has_room(sink->text, (size_t)n + 1)) return;
  number_shown(sink->text->at + sink->text->length, (size_t)n + 1, format, value);
  sink->text->length += (size_t)n;
  sink->column += n;
}

static void put_element(Job *job, int64_t offset) {
  put_number(&job->sink, &job->format, element_at(job, offset), true);
  if (!job->complex) return;
  const Printed imaginary = imaginary_at(job, offset);
  if (isnan(imaginary.f) || !signbit(imaginary.f)) sink_bytes(&job->sink, "+", 1);
  put_number(&job->sink, &job->imaginary, imaginary, false);
  sink_bytes(&job->sink, "j", 1);
}

/* The number of elements of a vector on one line, at least one. */
static int64_t elements_per_line(const Job *job, int64_t indent) {
  const int64_t width = job->format.width + (job->complex ? job->imaginary.width + 1 : 0);
  const double n = floor((job->options->linewidth - (double)indent) / (double)(width + 2));
  return n > 1 ? (int64_t)n : 1;
}

/* Writes the separator before item `nth` of a vector; the ellipsis counts as an item. */
static void put_separator(Job *job, int64_t nth, int64_t per_line, int64_t indent) {
  if (nth == 0) return;
  if (nth % per_line != 0) {
    sink_bytes(&job->sink, ", ", 2);
    return;
  }
  sink_bytes(&job->sink, ",\n", 2);
  sink_spaces(&job->sink, indent + 1);
}

static void put_vector(Job *job, int32_t dim, int64_t offset, int64_t indent) {
  const int64_t size = job->tensor->sizes[dim], stride = job->tensor->strides[dim];
  const int64_t per_line = elements_per_line(job, indent), edge = job->options->edgeitems;
  int64_t nth = 0;
  for (int64_t i = index_first(job, dim); i < size; i = index_after(job, dim, i)) {
    if (poll_stops(256)) return;
    if (is_cut(job, dim) && i == size - edge) {
      put_separator(job, nth++, per_line, indent);
      sink_bytes(&job->sink, " ...", 4);
    }
    put_separator(job, nth++, per_line, indent);
    put_element(job, offset + i * stride);
  }
}

static void put_block(Job *job, int32_t dim, int64_t offset, int64_t indent);

/* Separates sub-blocks by as many line breaks as they have dimensions. */
static void put_slice_break(Job *job, int32_t dim, int64_t indent) {
  sink_bytes(&job->sink, ",", 1);
  for (int32_t d = dim + 1; d < job->tensor->ndim; d++) sink_bytes(&job->sink, "\n", 1);
  sink_spaces(&job->sink, indent + 1);
}

static void put_slices(Job *job, int32_t dim, int64_t offset, int64_t indent) {
  const int64_t size = job->tensor->sizes[dim], stride = job->tensor->strides[dim];
  const int64_t edge = job->options->edgeitems;
  for (int64_t i = index_first(job, dim); i < size; i = index_after(job, dim, i)) {
    if (i > 0) put_slice_break(job, dim, indent);
    if (is_cut(job, dim) && i == size - edge) {
      sink_bytes(&job->sink, "...", 3);
      put_slice_break(job, dim, indent);
    }
    put_block(job, dim + 1, offset + i * stride, indent + 1);
  }
}

/* Second walk: writes the block of dimensions `dim` and up. Recurses once a dimension. */
static void put_block(Job *job, int32_t dim, int64_t offset, int64_t indent) {
  if (dim == job->tensor->ndim) {
    put_element(job, offset);
    return;
  }
  sink_bytes(&job->sink, "[", 1);
  if (is_cut(job, dim) && job->options->edgeitems == 0) {
    sink_bytes(&job->sink, "...", 3);
  } else if (dim + 1 == job->tensor->ndim) {
    put_vector(job, dim, offset, indent);
  } else {
    put_slices(job, dim, offset, indent);
  }
  sink_bytes(&job->sink, "]", 1);
}

static void put_values(Job *job, int64_t indent) {
  if (tensor_absent(job->tensor)) {
    sink_bytes(&job->sink, "...", 3);
    return;
  }
  if (job->tensor->numel == 0) {
    sink_bytes(&job->sink, "[]", 2);
    return;
  }
  job->summarize = (double)job->tensor->numel > job->options->threshold;
  job->format = (Format){.dtype = dtype_real(tensor_dtype(job->tensor)),
                         .precision = job->options->precision,
                         .width = 1,
                         .whole = true};
  job->imaginary = job->format;
  job->complex = dtype_is_complex(tensor_dtype(job->tensor));
  survey(job, 0, 0);
  settle(&job->format, job->options->sci_mode);
  settle(&job->imaginary, job->options->sci_mode);
  put_block(job, 0, 0, indent);
}

/* ---- Suffixes ------------------------------------------------------------------------------- */

typedef enum {
  SUFFIX_DEVICE,
  SUFFIX_SIZE,
  SUFFIX_NNZ,
  SUFFIX_DTYPE,
  SUFFIX_LAYOUT,
  SUFFIX_GRAD,
  SUFFIX_TANGENT,
  SUFFIX_COUNT
} Suffix;

/* The size is shown for an empty tensor unless "[]" implies it, without edge items, and for absent
 * and sparse tensors. */
static bool shows_size(const Job *job) {
  const Tensor *t = job->tensor;
  if (tensor_absent(t) || is_sparse(t)) return true;
  return t->numel == 0 ? t->ndim != 1 : job->options->edgeitems == 0;
}

/* Literals imply the default floating dtype, complex128 beside float64 and complex64 beside all
 * others (float16 too), int64 and bool, which are not shown; an empty tensor has no literals. */
static bool shows_dtype(const Job *job) {
  const Tensor *t = job->tensor;
  const DType dtype = tensor_dtype(t);
  const DType complex = dtype_default() == DT_F64 ? DT_C128 : DT_C64;
  return dtype != dtype_default() && ((t->numel == 0 && !is_sparse(t)) || tensor_absent(t) ||
                                      (dtype != complex && dtype != DT_I64 && dtype != DT_BOOL));
}

static bool shows_suffix(const Job *job, Suffix suffix) {
  switch (suffix) {
    case SUFFIX_DEVICE: return tensor_absent(job->tensor);
    case SUFFIX_SIZE: return shows_size(job);
    case SUFFIX_NNZ:
    case SUFFIX_LAYOUT: return is_sparse(job->tensor);
    case SUFFIX_DTYPE: return shows_dtype(job);
    case SUFFIX_GRAD: return job->names->grad_fn != NULL || tensor_requires_grad(job->tensor);
    default: return job->names->tangent != NULL;
  }
}

/* The shape as a Python tuple. */
static void put_size(Sink *sink, const Tensor *tensor) {
  char digits[24];
  sink_text(sink, "size=(");
  for (int32_t d = 0; d < tensor->ndim; d++) {
    snprintf(digits, sizeof digits, "%lld", (Shown)tensor->sizes[d]);
    if (d > 0) sink_text(sink, ", ");
    sink_text(sink, digits);
  }
  sink_text(sink, tensor->ndim == 1 ? ",)" : ")");
}

static void put_grad(Sink *sink, const char *grad_fn) {
  if (grad_fn == NULL) {
    sink_text(sink, "requires_grad=True");
    return;
  }
  sink_text(sink, "grad_fn=<");
  sink_text(sink, grad_fn);
  sink_text(sink, ">");
}

static const char *const layout_names[] = {
#define X(NAME, name, shown) #name,
    TENSOR_LAYOUTS(X)
#undef X
};

/* The number of stored elements, in each matrix of a batch. */
static void put_count(Sink *sink, const Tensor *t) {
  const Sparse *s = t->meta->sparse;
  char digits[32];
  int batch = s->plain ? s->plain->ndim - 1 : 0;
  snprintf(digits, sizeof digits, "nnz=%lld", (Shown)s->values->sizes[batch]);
  sink_text(sink, digits);
}

static void put_suffix(Sink *sink, const Job *job, Suffix suffix) {
  switch (suffix) {
    case SUFFIX_DEVICE: sink_text(sink, "device='meta'"); break;
    case SUFFIX_SIZE: put_size(sink, job->tensor); break;
    case SUFFIX_DTYPE:
      sink_text(sink, "dtype=torch.");
      sink_text(sink, dtype_info[job->tensor->dtype].name);
      break;
    case SUFFIX_NNZ: put_count(sink, job->tensor); break;
    case SUFFIX_LAYOUT:
      sink_text(sink, "layout=torch.");
      sink_text(sink, layout_names[tensor_layout(job->tensor)]);
      break;
    case SUFFIX_GRAD: put_grad(sink, job->names->grad_fn); break;
    default:
      sink_text(sink, "tangent=");
      sink_text(sink, job->names->tangent);
      break;
  }
}

/* The characters of some text, line breaks included. */
static int64_t n_characters(const char *text) {
  int64_t n = 0;
  for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
  return n;
}

/* The length that PyTorch counts: a tangent's characters count as one line, so the column is of no
 * use for it. */
static int64_t suffix_length(const Job *job, Suffix suffix) {
  if (suffix == SUFFIX_TANGENT) {
    return (int64_t)strlen("tangent=") + n_characters(job->names->tangent);
  }
  Text text = {0};
  Sink apart = {&text, 0};
  put_suffix(&apart, job, suffix);
  return apart.column;
}

/* Puts each suffix on the line if it fits. As in PyTorch, a separator counts two characters, and
 * the line of the values two more. */
static void put_suffixes(Job *job, int64_t indent) {
  int64_t used = job->sink.column + 2;
  bool breaks = tensor_layout(job->tensor) == LAYOUT_SPARSE_COO; /* at the first suffix */
  for (Suffix suffix = SUFFIX_DEVICE; suffix < SUFFIX_COUNT; suffix++) {
    if (!shows_suffix(job, suffix)) continue;
    const int64_t length = suffix_length(job, suffix);
    if (breaks || (double)(used + length + 2) > job->options->linewidth) {
      breaks = false;
      sink_bytes(&job->sink, ",\n", 2);
      sink_spaces(&job->sink, indent);
      used = indent + length;
    } else {
      sink_bytes(&job->sink, ", ", 2);
      used += length + 2;
    }
    put_suffix(&job->sink, job, suffix);
  }
}

/* ---- The whole ------------------------------------------------------------------------------ */

static bool is_possible(const PrintOptions *options) {
  return options->precision >= 0 && options->precision <= PRECISION_MAX &&
         options->edgeitems >= 0 && isfinite(options->linewidth);
}

static void put_part(Job *job, const char *name, const Tensor *part, const char *after) {
  const Tensor *whole = job->tensor;
  sink_text(&job->sink, name);
  sink_text(&job->sink, "=tensor(");
  job->tensor = part;
  put_values(job, job->sink.column);
  job->tensor = whole;
  if (part->numel == 0) {
    sink_text(&job->sink, ", ");
    put_size(&job->sink, part);
  }
  sink_text(&job->sink, after);
}

/* Writes the parts of a sparse tensor. */
static void put_parts(Job *job, int64_t indent) {
  const Sparse *s = job->tensor->meta->sparse;
  bool columns = s->layout == LAYOUT_SPARSE_CSC || s->layout == LAYOUT_SPARSE_BSC;
  put_part(job,
           !s->plain ? "indices"
           : columns ? "ccol_indices"
                     : "crow_indices",
           s->indices, "),\n");
  sink_spaces(&job->sink, indent);
  if (s->plain) {
    put_part(job, columns ? "row_indices" : "col_indices", s->plain, "),\n");
    sink_spaces(&job->sink, indent);
  }
  put_part(job, "values", s->values, ")");
}

bool print_tensor(Text *text, const Tensor *tensor, const PrintNames *names,
                  const PrintOptions *options) {
  if (!is_possible(options)) return false;
  PrintOptions bounded = *options;
  bounded.linewidth = fmin(bounded.linewidth, LINEWIDTH_MAX);
  Job job = {.tensor = tensor, .names = names, .options = &bounded, .sink = {text, 0}};
  sink_text(&job.sink, names->kind ? names->kind : "tensor");
  sink_text(&job.sink, "(");
  const int64_t indent = job.sink.column;
  if (names->contents) sink_text(&job.sink, names->contents);
  else if (is_sparse(tensor)) put_parts(&job, indent);
  else put_values(&job, indent);
  put_suffixes(&job, indent);
  sink_bytes(&job.sink, ")", 1);
  return true;
}
