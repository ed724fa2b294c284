/* Renders a tensor as PyTorch's repr does. One walk over the elements that will be shown settles
 * the number format and the column width; a second walk writes. Both walks recurse once a
 * dimension and skip the same middles, so the width is right by construction. All text goes
 * through a sink that counts everything and keeps what fits, so measuring is writing to an empty
 * sink. Digits come from snprintf, which is exact in musl and in glibc alike; a NaN prints the
 * same whatever its bits. */
#include "print.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The largest line, in characters, that options may ask for: beyond it nothing would wrap, and
 * below it every sum and quotient of widths is exact in a double. */
#define LINEWIDTH_MAX 1e15

/* The most digits after the point: one number's length must stay well within an int, which is
 * what snprintf counts in. A double has no nonzero digit after the 1074th. */
#define PRECISION_MAX 1000000

const PrintOptions print_profiles[PRINT_PROFILE_COUNT] = {
  [PRINT_PROFILE_DEFAULT] = {4, -1, 1000.0, 80.0, 3},
  [PRINT_PROFILE_SHORT] = {2, -1, 1000.0, 80.0, 2},
  [PRINT_PROFILE_FULL] = {4, -1, (double)INFINITY, 80.0, 3},
};

/* ---- Kinds: how the bytes of an element are read ------------------------------------------- */

typedef enum { CODE_BOOL, CODE_UNSIGNED, CODE_SIGNED, CODE_HALF, CODE_BRAIN, CODE_IEEE } Code;

typedef struct {
  const char *name;
  Code code;
  uint8_t part_bytes; /* of one part: a complex element has two, real and imaginary */
  uint8_t n_parts;
} ElementKind;

static const ElementKind kinds[PRINT_KIND_COUNT] = {
  [PRINT_KIND_BOOL] = {"torch.bool", CODE_BOOL, 1, 1},
  [PRINT_KIND_UINT8] = {"torch.uint8", CODE_UNSIGNED, 1, 1},
  [PRINT_KIND_UINT16] = {"torch.uint16", CODE_UNSIGNED, 2, 1},
  [PRINT_KIND_UINT32] = {"torch.uint32", CODE_UNSIGNED, 4, 1},
  [PRINT_KIND_UINT64] = {"torch.uint64", CODE_UNSIGNED, 8, 1},
  [PRINT_KIND_INT8] = {"torch.int8", CODE_SIGNED, 1, 1},
  [PRINT_KIND_INT16] = {"torch.int16", CODE_SIGNED, 2, 1},
  [PRINT_KIND_INT32] = {"torch.int32", CODE_SIGNED, 4, 1},
  [PRINT_KIND_INT64] = {"torch.int64", CODE_SIGNED, 8, 1},
  [PRINT_KIND_FLOAT16] = {"torch.float16", CODE_HALF, 2, 1},
  [PRINT_KIND_BFLOAT16] = {"torch.bfloat16", CODE_BRAIN, 2, 1},
  [PRINT_KIND_FLOAT32] = {"torch.float32", CODE_IEEE, 4, 1},
  [PRINT_KIND_FLOAT64] = {"torch.float64", CODE_IEEE, 8, 1},
  [PRINT_KIND_COMPLEX32] = {"torch.complex32", CODE_HALF, 2, 2},
  [PRINT_KIND_COMPLEX64] = {"torch.complex64", CODE_IEEE, 4, 2},
  [PRINT_KIND_COMPLEX128] = {"torch.complex128", CODE_IEEE, 8, 2},
};

static bool is_kind(PrintKind kind) { return (unsigned)kind < PRINT_KIND_COUNT; }

const char *print_kind_name(PrintKind kind) { return is_kind(kind) ? kinds[kind].name : NULL; }

/* The bytes of one part, zero-extended. */
static uint64_t read_bits(const ElementKind *kind, const char *at) {
  uint64_t bits = 0;
  memcpy(&bits, at, kind->part_bytes);
  return bits;
}

/* Sign-extends without shifting negative numbers: flips the sign bit, then takes off its weight. */
static int64_t read_signed(const ElementKind *kind, const char *at) {
  const uint64_t sign = (uint64_t)1 << (8 * kind->part_bytes - 1);
  return (int64_t)((read_bits(kind, at) ^ sign) - sign);
}

static double float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return (double)value;
}

static double half_from_bits(uint32_t bits) {
  const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  double size;
  if (exponent == 31) {
    size = fraction != 0 ? (double)NAN : (double)INFINITY;
  } else if (exponent == 0) {
    size = ldexp((double)fraction, -24);
  } else {
    size = ldexp((double)(fraction + 1024), (int)exponent - 25);
  }
  return bits >> 15 != 0 ? -size : size;
}

/* One part of a floating kind, converted to double, which is always exact. */
static double read_float(const ElementKind *kind, const char *at) {
  const uint64_t bits = read_bits(kind, at);
  double value;
  switch (kind->code) {
  case CODE_HALF:
    return half_from_bits((uint32_t)bits);
  case CODE_BRAIN:
    return float_from_bits((uint32_t)bits << 16);
  default:
    if (kind->part_bytes == 4) return float_from_bits((uint32_t)bits);
    memcpy(&value, &bits, sizeof value);
    return value;
  }
}

static bool is_floating(const ElementKind *kind) { return kind->code >= CODE_HALF; }

/* ---- The sink: bounded output that counts what it cannot keep ------------------------------- */

typedef struct {
  char *out;
  int64_t cap;
  int64_t len;    /* bytes so far, kept or not */
  int64_t column; /* characters since the last line break */
} Sink;

static int64_t sink_room(const Sink *sink) {
  return sink->len < sink->cap ? sink->cap - sink->len : 0;
}

/* A byte 10xxxxxx continues a UTF-8 character, so it takes no column of its own. */
static void sink_bytes(Sink *sink, const char *text, int64_t n) {
  const int64_t room = sink_room(sink), kept = n < room ? n : room;
  if (kept > 0) memcpy(sink->out + sink->len, text, (size_t)kept);
  sink->len += n;
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

/* The terminator takes the place of the last byte when the text fills the buffer. */
static void sink_close(Sink *sink) {
  if (sink->cap > 0) sink->out[sink->len < sink->cap ? sink->len : sink->cap - 1] = '\0';
}

/* ---- Numbers ------------------------------------------------------------------------------- */

/* The format all shown values of one part share: the real or the imaginary column. */
typedef struct {
  const ElementKind *kind;
  int64_t width;      /* of the widest finite nonzero value; PyTorch leaves the others out */
  int32_t precision;
  bool sci;           /* exponents */
  bool whole;         /* every value is an integer, so only the point is written */
  double smallest[2]; /* magnitudes of the finite nonzero values: positive ones, negative ones */
  double largest[2];  /* 0 if there is none of that sign */
} Part;

/* printf's text of a double, with Python's spelling of what is not finite: no "-nan". */
static int64_t float_text(char *out, size_t cap, const char *format, int32_t precision,
                          double value) {
  if (isnan(value)) return snprintf(out, cap, "nan");
  if (isinf(value)) return snprintf(out, cap, value < 0 ? "-inf" : "inf");
  switch (format[0]) {
  case 'e':
    return snprintf(out, cap, "%.*e", (int)precision, value);
  case 'f':
    return snprintf(out, cap, "%.*f", (int)precision, value);
  default:
    return snprintf(out, cap, "%.0f.", value);
  }
}

static int64_t float_part_text(char *out, size_t cap, const Part *part, double value) {
  const char *format = part->sci ? "e" : part->whole ? "." : "f";
  return float_text(out, cap, format, part->precision, value);
}

/* The text of the part at `at`, unpadded, under snprintf's rules. */
static int64_t part_text(char *out, size_t cap, const Part *part, const char *at) {
  const ElementKind *kind = part->kind;
  switch (kind->code) {
  case CODE_BOOL:
    return snprintf(out, cap, read_bits(kind, at) != 0 ? "True" : "False");
  case CODE_UNSIGNED:
    return snprintf(out, cap, "%llu", (unsigned long long)read_bits(kind, at));
  case CODE_SIGNED:
    return snprintf(out, cap, "%lld", (long long)read_signed(kind, at));
  default:
    return float_part_text(out, cap, part, read_float(kind, at));
  }
}

static void part_open(Part *part, const ElementKind *kind, int32_t precision) {
    *part = (Part){.kind = kind, .width = 1, .precision = precision, .whole = true};
}

/* Takes one shown value into account. Integers settle their width here; floats only leave what
 * part_close needs. */
static void part_observe(Part *part, const char *at) {
  if (!is_floating(part->kind)) {
    const int64_t n = part_text(NULL, 0, part, at);
    if (n > part->width) part->width = n;
    return;
  }
  const double value = read_float(part->kind, at), size = fabs(value);
  const int sign = value < 0;
  if (!isfinite(value) || size == 0) return;
  if (part->largest[sign] == 0 || size < part->smallest[sign]) part->smallest[sign] = size;
  if (size > part->largest[sign]) part->largest[sign] = size;
  if (size != floor(size)) part->whole = false;
}

/* PyTorch's rule for exponents. `low` and `high` bound the magnitudes of the nonzero values. */
static bool wants_exponents(int32_t sci_mode, double low, double high) {
  if (sci_mode >= 0) return sci_mode > 0;
  return high / low > 1000.0 || high > 1.0e8 || low < 1.0e-4;
}

/* Settles the format of a floating part. The length of a printed number grows with its magnitude,
 * or with exponents at either end, so the extremes of each sign hold the widest value. */
static void part_close(Part *part, int32_t sci_mode) {
  double low = (double)INFINITY, high = 0;
  for (int sign = 0; sign < 2; sign++) {
    if (part->largest[sign] == 0) continue;
    low = fmin(low, part->smallest[sign]);
    high = fmax(high, part->largest[sign]);
  }
  if (high == 0) return;
  part->sci = wants_exponents(sci_mode, low, high);
  for (int sign = 0; sign < 2; sign++) {
    if (part->largest[sign] == 0) continue;
    const int64_t near = float_part_text(NULL, 0, part, part->smallest[sign]) + sign;
    const int64_t far = float_part_text(NULL, 0, part, part->largest[sign]) + sign;
    if (near > part->width) part->width = near;
    if (far > part->width) part->width = far;
  }
}

/* ---- Elements: the walk both passes share --------------------------------------------------- */

typedef struct {
  const PrintTensor *tensor;
  const PrintOptions *options;
  const ElementKind *kind;
  Part parts[2];
  Sink sink;
  bool summarize;
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

/* Where the walk of a dimension begins; a dimension cut to nothing is over at once. */
static int64_t index_first(const Job *job, int32_t dim) {
  return is_cut(job, dim) && job->options->edgeitems == 0 ? job->tensor->sizes[dim] : 0;
}

static const char *element_at(const Job *job, int64_t offset) {
  const int64_t bytes = offset * job->kind->part_bytes * job->kind->n_parts;
  return (const char *)job->tensor->data + (ptrdiff_t)bytes;
}

/* First walk: shows every element that will be printed to its parts. Recurses once a dimension. */
static void survey(Job *job, int32_t dim, int64_t offset) {
  if (dim == job->tensor->ndim) {
    const char *at = element_at(job, offset);
    for (int i = 0; i < job->kind->n_parts; i++) {
      part_observe(&job->parts[i], at + i * job->kind->part_bytes);
    }
    return;
  }
  const int64_t size = job->tensor->sizes[dim], stride = job->tensor->strides[dim];
  for (int64_t i = index_first(job, dim); i < size; i = index_after(job, dim, i)) {
    survey(job, dim + 1, offset + i * stride);
  }
}

/* A short text is made once on the stack; a long one (a huge number without exponents, a large
 * precision) is made again in its place. */
static void put_number(Sink *sink, const Part *part, const char *at, bool is_imaginary) {
  char text[48];
  const int64_t n = part_text(text, sizeof text, part, at);
  if (is_imaginary) {
    /* Python writes the imaginary part unpadded, and its sign always. */
    if (text[0] != '-') sink_bytes(sink, "+", 1);
  } else {
    sink_spaces(sink, part->width - n);
  }
  if (n < (int64_t)sizeof text) {
    sink_bytes(sink, text, n);
    return;
  }
  const int64_t room = sink_room(sink);
  if (room > 0) part_text(sink->out + sink->len, (size_t)(room <= n ? room : n + 1), part, at);
  sink->len += n;
  sink->column += n;
}

static void put_element(Job *job, int64_t offset) {
  const char *at = element_at(job, offset);
  put_number(&job->sink, &job->parts[0], at, false);
  if (job->kind->n_parts < 2) return;
  put_number(&job->sink, &job->parts[1], at + job->kind->part_bytes, true);
  sink_bytes(&job->sink, "j", 1);
}

/* How many elements of a vector go on one line, at least one. */
static int64_t elements_per_line(const Job *job, int64_t indent) {
  int64_t length = job->parts[0].width + 2;
  if (job->kind->n_parts == 2) length += job->parts[1].width + 1;
  const double n = floor((job->options->linewidth - (double)indent) / (double)length);
  return n > 1 ? (int64_t)n : 1;
}

/* What stands before item `nth` of a vector: the ellipsis counts as an item. */
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
    if (is_cut(job, dim) && i == size - edge) {
      put_separator(job, nth++, per_line, indent);
      sink_bytes(&job->sink, " ...", 4);
    }
    put_separator(job, nth++, per_line, indent);
    put_element(job, offset + i * stride);
  }
}

static void put_block(Job *job, int32_t dim, int64_t offset, int64_t indent);

/* Sub-blocks stand apart by as many line breaks as they have dimensions. */
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

/* The product as a double: it cannot overflow, and is exact wherever the threshold may lie. */
static double n_elems(const PrintTensor *tensor) {
  double n = 1;
  for (int32_t d = 0; d < tensor->ndim; d++) n *= (double)tensor->sizes[d];
  return n;
}

static void put_values(Job *job, int64_t indent) {
  const double n = n_elems(job->tensor);
  if (n == 0) {
    sink_bytes(&job->sink, "[]", 2);
    return;
  }
  job->summarize = n > job->options->threshold;
  for (int i = 0; i < 2; i++) part_open(&job->parts[i], job->kind, job->options->precision);
  survey(job, 0, 0);
  for (int i = 0; i < 2; i++) part_close(&job->parts[i], job->options->sci_mode);
  put_block(job, 0, 0, indent);
}

/* ---- Suffixes ------------------------------------------------------------------------------- */

typedef enum { SUFFIX_SIZE, SUFFIX_DTYPE, SUFFIX_GRAD, SUFFIX_TANGENT, SUFFIX_COUNT } Suffix;

/* An empty tensor shows a size that "[]" does not tell, and one without edge items shows all. */
static bool shows_size(const Job *job) {
  const PrintTensor *t = job->tensor;
  return n_elems(t) == 0 ? t->ndim != 1 : job->options->edgeitems == 0;
}

/* Literals imply the default floating kind, its complex twin, int64 and bool, so those are left
 * out; an empty tensor has no literals. */
static bool shows_dtype(const Job *job) {
  const PrintTensor *t = job->tensor;
  if (t->kind == t->default_kind) return false;
  if (n_elems(t) == 0) return true;
  const PrintKind twin = t->default_kind == PRINT_KIND_FLOAT64 ? PRINT_KIND_COMPLEX128
                                                                 : PRINT_KIND_COMPLEX64;
  return t->kind != twin && t->kind != PRINT_KIND_INT64 && t->kind != PRINT_KIND_BOOL;
}

static bool shows_suffix(const Job *job, Suffix suffix) {
  switch (suffix) {
  case SUFFIX_SIZE:
    return shows_size(job);
  case SUFFIX_DTYPE:
    return shows_dtype(job);
  case SUFFIX_GRAD:
    return job->tensor->grad_fn != NULL || job->tensor->requires_grad;
  default:
    return job->tensor->tangent != NULL;
  }
}

/* The shape as a Python tuple. */
static void put_size(Sink *sink, const PrintTensor *tensor) {
  char digits[24];
  sink_text(sink, "size=(");
  for (int32_t d = 0; d < tensor->ndim; d++) {
    snprintf(digits, sizeof digits, "%lld", (long long)tensor->sizes[d]);
    if (d > 0) sink_text(sink, ", ");
    sink_text(sink, digits);
  }
  sink_text(sink, tensor->ndim == 1 ? ",)" : ")");
}

static void put_grad(Sink *sink, const PrintTensor *tensor) {
  if (tensor->grad_fn == NULL) {
    sink_text(sink, "requires_grad=True");
    return;
  }
  sink_text(sink, "grad_fn=<");
  sink_text(sink, tensor->grad_fn);
  sink_text(sink, ">");
}

static void put_suffix(Sink *sink, const Job *job, Suffix suffix) {
  switch (suffix) {
  case SUFFIX_SIZE:
    put_size(sink, job->tensor);
    break;
  case SUFFIX_DTYPE:
    sink_text(sink, "dtype=");
    sink_text(sink, job->kind->name);
    break;
  case SUFFIX_GRAD:
    put_grad(sink, job->tensor);
    break;
  default:
    sink_text(sink, "tangent=");
    sink_text(sink, job->tensor->tangent);
    break;
  }
}

/* The characters of some text, line breaks included. */
static int64_t n_characters(const char *text) {
  int64_t n = 0;
  for (; *text != '\0'; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
  return n;
}

/* PyTorch counts a tangent's characters as if they were one line, so the column will not do. */
static int64_t suffix_length(const Job *job, Suffix suffix) {
  if (suffix == SUFFIX_TANGENT) {
    return (int64_t)strlen("tangent=") + n_characters(job->tensor->tangent);
  }
  Sink empty = {NULL, 0, 0, 0};
  put_suffix(&empty, job, suffix);
  return empty.column;
}

/* Each suffix goes on the line if it fits, counting two characters for its separator and, on the
 * line of the values, two more: PyTorch's own allowance. */
static void put_suffixes(Job *job, int64_t indent) {
  int64_t used = job->sink.column + 2;
  for (Suffix suffix = SUFFIX_SIZE; suffix < SUFFIX_COUNT; suffix++) {
    if (!shows_suffix(job, suffix)) continue;
    const int64_t length = suffix_length(job, suffix);
    if ((double)(used + length + 2) > job->options->linewidth) {
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

static bool is_precision(int32_t precision) {
  return precision >= 0 && precision <= PRECISION_MAX;
}

static bool is_printable(const PrintTensor *tensor, const PrintOptions *options) {
  return tensor->ndim >= 0 && is_kind(tensor->kind) && is_kind(tensor->default_kind) &&
           is_precision(options->precision) && options->edgeitems >= 0 &&
           isfinite(options->linewidth);
}

int64_t print_tensor(const PrintTensor *tensor, const PrintOptions *options, char *out,
                     int64_t cap) {
  if (!is_printable(tensor, options)) return PRINT_BAD_ARGUMENT;
  PrintOptions bounded = *options;
  bounded.linewidth = fmin(bounded.linewidth, LINEWIDTH_MAX);
  Job job = {.tensor = tensor,
               .options = &bounded,
               .kind = &kinds[tensor->kind],
               .sink = {out, cap, 0, 0}};
  sink_text(&job.sink, tensor->class_name != NULL ? tensor->class_name : "tensor");
  sink_bytes(&job.sink, "(", 1);
  const int64_t indent = job.sink.column;
  put_values(&job, indent);
  put_suffixes(&job, indent);
  sink_bytes(&job.sink, ")", 1);
  sink_close(&job.sink);
  return job.sink.len;
}

int64_t print_float(double value, char form, int32_t precision, char *out, int64_t cap) {
  if (!is_precision(precision) || (form != 'e' && form != 'f')) return PRINT_BAD_ARGUMENT;
  const size_t room = cap <= 0 ? 0 : cap < INT32_MAX ? (size_t)cap : INT32_MAX;
  return float_text(out, room, form == 'e' ? "e" : "f", precision, value);
}
