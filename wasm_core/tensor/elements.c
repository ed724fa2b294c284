/* Reads and writes of single elements of any type, and checks of numbers that fit a type. */
#include <math.h>

#include "kernels/complex.h"
#include "tensor/tensor.h"

/* Access to an element of C type T; the macros below are chosen by the name of a row's kind. */
#define AT(T) (*(T *)(void *)at)
#define FROM(T) ELEMENT((const T *)(const void *)at)

void element_store_f(char *at, DType d, double v) {
  switch (d) {
#define ROW(code, name, ctype, short_name, text, kind, legacy) STORE_##kind(name, ctype)
#define STORE_KIND_INT(name, ctype) \
  case name: AT(ctype) = (ctype)int_from_double(v); break;
#define STORE_KIND_FLOAT(name, ctype) \
  case name: AT(ctype) = (ctype)v; break;
#define STORE_KIND_BOOL(name, ctype) \
  case name: AT(ctype) = v != 0; break;
#define STORE_KIND_HALF(name, ctype)
#define STORE_KIND_COMPLEX(name, ctype) \
  case name: element_store_c(at, d, complex_of(v, 0)); break;
#define STORE_KIND_COMPLEX_HALF STORE_KIND_COMPLEX
    DTYPE_ROWS(ROW)
#undef ROW
    case DT_F16: AT(Half) = half_of_float((float)v); break;
    case DT_BF16: AT(BHalf) = bhalf_of_float((float)v); break;
    default: break;
  }
}

void element_store_i(char *at, DType d, int64_t v) {
  switch (d) {
#define ROW(code, name, ctype, short_name, text, kind, legacy) STORE_I_##kind(name, ctype)
#define STORE_I_KIND_INT(name, ctype) \
  case name: AT(ctype) = (ctype)v; break;
#define STORE_I_KIND_BOOL STORE_I_KIND_INT
#define STORE_I_KIND_FLOAT STORE_I_KIND_INT
#define STORE_I_KIND_HALF(name, ctype) \
  case name: element_store_f(at, d, (double)(float)v); break;
#define STORE_I_KIND_COMPLEX(name, ctype) \
  case name: element_store_f(at, d, (double)v); break;
#define STORE_I_KIND_COMPLEX_HALF STORE_I_KIND_COMPLEX
    DTYPE_ROWS(ROW)
#undef ROW
    default: break;
  }
}

void element_store_c(char *at, DType d, complex_f64 v) {
  switch (d) {
    case DT_C32:
      AT(ComplexHalf) = (ComplexHalf){half_of_float((float)real_part(v)),
                                      half_of_float((float)imaginary_part(v))};
      break;
    case DT_C64: AT(complex_f32) = (complex_f32)v; break;
    case DT_C128: AT(complex_f64) = v; break;
    default: element_store_f(at, d, real_part(v)); break;
  }
}

double element_load_f(const char *at, DType d) {
  switch (d) {
#define ROW(code, name, ctype, short_name, text, kind, legacy) LOAD_F_##kind(name, ctype)
#define LOAD_F_KIND_INT(name, ctype) \
  case name: return (double)FROM(ctype);
#define LOAD_F_KIND_BOOL LOAD_F_KIND_INT
#define LOAD_F_KIND_FLOAT LOAD_F_KIND_INT
#define LOAD_F_KIND_HALF(name, ctype)
#define LOAD_F_KIND_COMPLEX(name, ctype) \
  case name: return real_part(element_load_c(at, d));
#define LOAD_F_KIND_COMPLEX_HALF LOAD_F_KIND_COMPLEX
    DTYPE_ROWS(ROW)
#undef ROW
    case DT_F16: return (double)float_of_half(FROM(Half));
    case DT_BF16: return (double)float_of_bhalf(FROM(BHalf));
    default: return 0;
  }
}

int64_t element_load_i(const char *at, DType d) {
  switch (d) {
#define ROW(code, name, ctype, short_name, text, kind, legacy) LOAD_##kind(name, ctype)
#define LOAD_KIND_INT(name, ctype) \
  case name: return (int64_t)FROM(ctype);
#define LOAD_KIND_BOOL LOAD_KIND_INT
#define LOAD_KIND_FLOAT(name, ctype) \
  case name: return int_from_double(element_load_f(at, d));
#define LOAD_KIND_HALF LOAD_KIND_FLOAT
#define LOAD_KIND_COMPLEX LOAD_KIND_FLOAT
#define LOAD_KIND_COMPLEX_HALF LOAD_KIND_FLOAT
    DTYPE_ROWS(ROW)
#undef ROW
    default: return 0;
  }
}

complex_f64 element_load_c(const char *at, DType d) {
  switch (d) {
    case DT_C32:
      return complex_of((double)float_of_half(FROM(ComplexHalf).re),
                        (double)float_of_half(FROM(ComplexHalf).im));
    case DT_C64: return (complex_f64)FROM(complex_f32);
    case DT_C128: return FROM(complex_f64);
    default: return complex_of(element_load_f(at, d), 0);
  }
}

bool tensor_readable(const Tensor *t) {
  return !tensor_absent(t) || fail(ERR_RUNTIME, "Tensor.item() cannot be called on meta tensors");
}

complex_f64 tensor_get_c(const Tensor *t, int64_t k) {
  if (!tensor_readable(t)) return complex_of(0, 0);
  complex_f64 v = element_load_c(tensor_bytes(t) + k * dtype_bytes(tensor_dtype(t)),
                                 tensor_dtype(t));
  if (t->flags & FLAG_CONJ) v = complex_conj_f64(v);
  if (t->flags & FLAG_NEG) v = -v;
  return v;
}

double tensor_get_f(const Tensor *t, int64_t k) {
  if (!tensor_readable(t)) return 0;
  double v = element_load_f(tensor_bytes(t) + k * dtype_bytes(tensor_dtype(t)), tensor_dtype(t));
  return t->flags & FLAG_NEG ? -v : v;
}

int64_t tensor_get_i(const Tensor *t, int64_t k) {
  if (!tensor_readable(t)) return 0;
  int64_t v = element_load_i(tensor_bytes(t) + k * dtype_bytes(tensor_dtype(t)), tensor_dtype(t));
  return t->flags & FLAG_NEG ? (int64_t)(0 - (uint64_t)v) : v;
}

void tensor_set_f(Tensor *t, int64_t k, double v) {
  if (tensor_absent(t)) return;
  element_store_f(tensor_bytes(t) + k * dtype_bytes(tensor_dtype(t)), tensor_dtype(t),
                  t->flags & FLAG_NEG ? -v : v);
}

void tensor_set_i(Tensor *t, int64_t k, int64_t v) {
  if (tensor_absent(t)) return;
  element_store_i(tensor_bytes(t) + k * dtype_bytes(tensor_dtype(t)), tensor_dtype(t),
                  t->flags & FLAG_NEG ? (int64_t)(0 - (uint64_t)v) : v);
}

/* ------------------------------------------------------------ numbers that fit */

/* The range of an integer type; PyTorch wraps negative numbers for unsigned types. */
typedef struct {
  double low, high;
} Range;
static const Range ranges[DT_COUNT] = {[DT_U8] = {-UINT8_MAX, UINT8_MAX},
                                       [DT_I8] = {INT8_MIN, INT8_MAX},
                                       [DT_I16] = {INT16_MIN, INT16_MAX},
                                       [DT_I32] = {INT32_MIN, INT32_MAX},
                                       [DT_I64] = {-0x1p63, 0x1p63 - 1024},
                                       [DT_U16] = {-UINT16_MAX, UINT16_MAX},
                                       [DT_U32] = {-(double)UINT32_MAX, UINT32_MAX},
                                       [DT_U64] = {-0x1p63, 0x1p64 - 2048}};
/* The names of the types in PyTorch's sources. */
static const char *const c_names[DT_COUNT] = {[DT_U8] = "uint8_t",
                                              [DT_I8] = "int8_t",
                                              [DT_I16] = "int16_t",
                                              [DT_I32] = "int",
                                              [DT_I64] = "int64_t",
                                              [DT_F32] = "float",
                                              [DT_F64] = "double",
                                              [DT_BOOL] = "bool",
                                              [DT_U16] = "uint16_t",
                                              [DT_U32] = "uint32_t",
                                              [DT_U64] = "uint64_t",
                                              [DT_F16] = "double",
                                              [DT_BF16] = "double",
                                              [DT_C64] = "c10::complex<float>",
                                              [DT_C32] = "c10::complex<c10::Half>"};

static bool too_large(double v, double most) { return fabs(v) > most && !isinf(v); }

/* Half types round too large values to infinity; complex types are judged by their parts. */
static bool fits_f(double v, DType d) {
  if (d == DT_F32 || d == DT_C64) return !too_large(v, 3.40282346638528859812e38);
  if (d == DT_C32) return !too_large(v, 65504);
  if (dtype_kind(d) != KIND_INT) return true;
  return v >= (dtype_is_bare(d) || d == DT_U8 ? 0 : ranges[d].low) && v <= ranges[d].high;
}

static bool fits_i(int64_t v, DType d) {
  if (d == DT_I64 || dtype_kind(d) != KIND_INT) return fits_f((double)v, d) || d == DT_I64;
  return (double)v >= ranges[d].low && (double)v <= ranges[d].high;
}

static bool fits(const Tensor *number, DType d) {
  if (tensor_absent(number)) return true;
  DType from = tensor_dtype(number);
  if (from == DT_BOOL) return true;
  if (dtype_is_complex(from)) {
    complex_f64 v = tensor_get_c(number, 0);
    return fits_f(real_part(v), d) &&
           (dtype_is_complex(d) ? fits_f(imaginary_part(v), d) : imaginary_part(v) == 0);
  }
  return dtype_is_float(from) ? fits_f(tensor_get_f(number, 0), d)
                              : fits_i(tensor_get_i(number, 0), d);
}

static bool overflows(DType d) {
  return fail(ERR_RUNTIME, "value cannot be converted to type %s without overflow", c_names[d]);
}

bool element_number_fits_f(double v, DType d) { return fits_f(v, d) || overflows(d); }
bool element_number_fits(const Tensor *number, DType d) { return fits(number, d) || overflows(d); }
