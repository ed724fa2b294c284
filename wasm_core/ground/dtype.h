/* Element types, one row each, and the rules that combine them.
 *
 * The numbers are PyTorch's ScalarType codes, so that a code means the same in both libraries. A
 * type is a row here plus its loops. Code elsewhere loops over types with the macros below. */
#ifndef PG_DTYPE_H
#define PG_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "ground/half.h"
#include "ground/inline.h"

typedef float _Complex complex_f32;
typedef double _Complex complex_f64;
typedef struct {
  Half re, im;
} ComplexHalf;

/* X(code, ENUM, C type, short name, name, kind, kind name). KIND_HALF and KIND_COMPLEX_HALF equal
 * KIND_FLOAT and KIND_COMPLEX; macros that paste the kind's name tell types without C arithmetic by
 * them. */
#define DTYPE_ROWS(X)                                                            \
  X(0, DT_U8, uint8_t, u8, "uint8", KIND_INT, "Byte")                            \
  X(1, DT_I8, int8_t, i8, "int8", KIND_INT, "Char")                              \
  X(2, DT_I16, int16_t, i16, "int16", KIND_INT, "Short")                         \
  X(3, DT_I32, int32_t, i32, "int32", KIND_INT, "Int")                           \
  X(4, DT_I64, int64_t, i64, "int64", KIND_INT, "Long")                          \
  X(5, DT_F16, Half, f16, "float16", KIND_HALF, "Half")                          \
  X(6, DT_F32, float, f32, "float32", KIND_FLOAT, "Float")                       \
  X(7, DT_F64, double, f64, "float64", KIND_FLOAT, "Double")                     \
  X(8, DT_C32, ComplexHalf, c32, "complex32", KIND_COMPLEX_HALF, "ComplexHalf")  \
  X(9, DT_C64, complex_f32, c64, "complex64", KIND_COMPLEX, "ComplexFloat")      \
  X(10, DT_C128, complex_f64, c128, "complex128", KIND_COMPLEX, "ComplexDouble") \
  X(11, DT_BOOL, bool, b8, "bool", KIND_BOOL, "Bool")                            \
  X(15, DT_BF16, BHalf, bf16, "bfloat16", KIND_HALF, "BFloat16")                 \
  X(27, DT_U16, uint16_t, u16, "uint16", KIND_INT, "UInt16")                     \
  X(28, DT_U32, uint32_t, u32, "uint32", KIND_INT, "UInt32")                     \
  X(29, DT_U64, uint64_t, u64, "uint64", KIND_INT, "UInt64")

typedef enum {
#define ROW(code, name, ctype, short_name, text, kind, legacy) name = code,
  DTYPE_ROWS(ROW)
#undef ROW
      DT_COUNT = 30,
  DT_NONE = 127 /* an optional dtype that was not given */
} DType;

/* Kinds are ordered: the higher one wins in a promotion. */
typedef enum {
  KIND_NONE = 0,
  KIND_BOOL = 1,
  KIND_INT = 2,
  KIND_FLOAT = 3,
  KIND_COMPLEX = 4,
  KIND_HALF = KIND_FLOAT,
  KIND_COMPLEX_HALF = KIND_COMPLEX
} Kind;

typedef struct {
  const char *name;   /* "float32", as in torch.float32 */
  const char *legacy; /* "Float", as in PyTorch's messages */
  uint8_t bytes;
  uint8_t kind;
} DTypeInfo;

extern const DTypeInfo dtype_info[DT_COUNT]; /* a hole has bytes == 0 */

INLINE int64_t dtype_bytes(DType d) { return dtype_info[d].bytes; }
INLINE Kind dtype_kind(DType d) { return (Kind)dtype_info[d].kind; }
INLINE bool dtype_is_float(DType d) { return dtype_info[d].kind == KIND_FLOAT; }
INLINE bool dtype_is_complex(DType d) { return dtype_info[d].kind == KIND_COMPLEX; }
/* Whether tensors of this type may require a gradient: floating or complex. */
INLINE bool dtype_is_inexact(DType d) { return dtype_info[d].kind >= KIND_FLOAT; }
/* Stored in 16 bits, computed in float. */
INLINE bool dtype_is_half(DType d) {
  return d <= DT_BF16 && (1u << DT_F16 | 1u << DT_BF16) >> d & 1;
}
/* uint16, uint32 and uint64, which have storage and little more. */
INLINE bool dtype_is_bare(DType d) { return d >= DT_U16 && d <= DT_U64; }
/* dtype_real: the type of a complex type's parts; other types unchanged. dtype_complex: the complex
 * type with parts of type d; complex types unchanged, DT_NONE if there is none. */
DType dtype_real(DType d);
DType dtype_complex(DType d);
/* The complex type that a floating type promotes to beside complex numbers: dtype_complex(d), but
 * complex64 for bfloat16, since no complex type has bfloat16 parts. DT_NONE for other types. */
DType dtype_to_complex(DType d);

/* The element at p, a const T *. Bools from files, buffers and views may hold bytes other than 0
 * and 1. Every nonzero byte is true, and C must not read such a byte as a bool. */
#define ELEMENT(p) _Generic(*(p), bool: *(const uint8_t *)(const void *)(p) != 0, default: *(p))

/* Converts as x86 does, on every host: NaN and values out of range become INT64_MIN. */
static inline int64_t int_from_double(double v) {
  return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? (int64_t)v : INT64_MIN;
}
/* Converts to uint64 as x86 does: the upper half of the range directly, all else by
 * int_from_double. */
static inline uint64_t unsigned_from_double(double v) {
  return v >= 9223372036854775808.0 && v < 18446744073709551616.0 ? (uint64_t)v
                                                                  : (uint64_t)int_from_double(v);
}

/* The common type of two operands of equal category. Bare types (dtype_is_bare) without one set
 * PyTorch's error and return the first bare type. */
DType dtype_promote(DType a, DType b);
/* Whether a result of type `from` may be written to a tensor of type `to` in place. */
bool dtype_can_cast(DType from, DType to);
/* The C++ name that some of PyTorch's messages show: "long int". */
const char *dtype_c_name(DType d);
/* Sets PyTorch's error for a type that a kernel does not implement; returns NULL. */
void *dtype_no_kernel(const char *kernel, DType d);
void *dtype_no_kernel_of(const char *op, DType d); /* names the kernel <op>_cpu */
/* The entry for d of a table [DT_COUNT] of pointers; NULL with dtype_no_kernel's error if it is
 * empty. */
#define KERNEL_OF(table, d, kernel) ((table)[d] || dtype_no_kernel(kernel, d) ? (table)[d] : NULL)
/* Whether d is a floating type; dtype_no_kernel's error if not. */
bool dtype_check_float_kernel(const char *kernel, DType d);
/* Whether d is float32 or float64; dtype_no_kernel's error if not. */
bool dtype_check_wide_kernel(const char *kernel, DType d);
/* The process-wide default floating type (torch.get_default_dtype). */
DType dtype_default(void);
void dtype_set_default(DType d);

/* Expand a statement once per type with `T` bound to the C type; another type is refused. */
#define DTYPE_CASE(ENUM, CTYPE, ...) \
  case ENUM: {                       \
    typedef CTYPE T;                 \
    __VA_ARGS__;                     \
  } break;
#define FLOAT_CASES(...)                 \
  DTYPE_CASE(DT_F32, float, __VA_ARGS__) \
  DTYPE_CASE(DT_F64, double, __VA_ARGS__)
#define INT_CASES(...)                     \
  DTYPE_CASE(DT_U8, uint8_t, __VA_ARGS__)  \
  DTYPE_CASE(DT_I8, int8_t, __VA_ARGS__)   \
  DTYPE_CASE(DT_I16, int16_t, __VA_ARGS__) \
  DTYPE_CASE(DT_I32, int32_t, __VA_ARGS__) \
  DTYPE_CASE(DT_I64, int64_t, __VA_ARGS__)
#define DISPATCH_FLOAT(d, ...)             \
  switch (d) {                             \
    FLOAT_CASES(__VA_ARGS__)               \
    default: dtype_no_kernel(__func__, d); \
  }
#define DISPATCH_INEXACT(d, ...)                  \
  switch (d) {                                    \
    FLOAT_CASES(__VA_ARGS__)                      \
    DTYPE_CASE(DT_C64, complex_f32, __VA_ARGS__)  \
    DTYPE_CASE(DT_C128, complex_f64, __VA_ARGS__) \
    default: dtype_no_kernel(__func__, d);        \
  }
#define DISPATCH_INT(d, ...)               \
  switch (d) {                             \
    INT_CASES(__VA_ARGS__)                 \
    default: dtype_no_kernel(__func__, d); \
  }
#define DISPATCH_NUMBER(d, ...)            \
  switch (d) {                             \
    INT_CASES(__VA_ARGS__)                 \
    FLOAT_CASES(__VA_ARGS__)               \
    default: dtype_no_kernel(__func__, d); \
  }
#define DISPATCH_ALL(d, ...)               \
  switch (d) {                             \
    INT_CASES(__VA_ARGS__)                 \
    FLOAT_CASES(__VA_ARGS__)               \
    DTYPE_CASE(DT_BOOL, bool, __VA_ARGS__) \
    default: dtype_no_kernel(__func__, d); \
  }
/* DISPATCH_WIDTH expands a statement once per element width, for code that only moves elements.
 * Wide16 is its type of 16 bytes. */
typedef struct {
  uint64_t low, high;
} Wide16;
#define DISPATCH_WIDTH(d, ...)           \
  switch (dtype_bytes(d)) {              \
    DTYPE_CASE(1, uint8_t, __VA_ARGS__)  \
    DTYPE_CASE(2, uint16_t, __VA_ARGS__) \
    DTYPE_CASE(4, uint32_t, __VA_ARGS__) \
    DTYPE_CASE(8, uint64_t, __VA_ARGS__) \
    DTYPE_CASE(16, Wide16, __VA_ARGS__)  \
    default: break;                      \
  }

#endif
