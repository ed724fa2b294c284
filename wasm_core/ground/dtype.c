/* The dtype table and PyTorch's promotion lattice; see dtype.h. */
#include "ground/dtype.h"

#include "ground/status.h"

const DTypeInfo dtype_info[DT_COUNT] = {
#define ROW(code, name, ctype, short_name, text, kind, legacy) \
  [code] = {text, legacy, sizeof(ctype), kind},
    DTYPE_ROWS(ROW)
#undef ROW
};

static DType default_dtype = DT_F32;
DType dtype_default(void) { return default_dtype; }
void dtype_set_default(DType d) { default_dtype = d; }

DType dtype_real(DType d) {
  return d == DT_C32 ? DT_F16 : d == DT_C64 ? DT_F32 : d == DT_C128 ? DT_F64 : d;
}

DType dtype_complex(DType d) {
  if (dtype_is_complex(d)) return d;
  return d == DT_F16 ? DT_C32 : d == DT_F32 ? DT_C64 : d == DT_F64 ? DT_C128 : DT_NONE;
}

DType dtype_to_complex(DType d) { return d == DT_BF16 ? DT_C64 : dtype_complex(d); }

/* uint8 and int8 give int16; other pairs give the wider type, the signed one of uint8 and a signed
 * type. */
static DType promote_ints(DType a, DType b) {
  if (a == DT_U8 || b == DT_U8) {
    DType other = a == DT_U8 ? b : a;
    return other == DT_U8 ? DT_U8 : other == DT_I8 ? DT_I16 : other;
  }
  return dtype_bytes(a) >= dtype_bytes(b) ? a : b;
}

/* Two different half types promote to float32, as neither holds the other. */
static DType promote_floats(DType a, DType b) {
  if (dtype_is_half(a) && dtype_is_half(b)) return a == b ? a : DT_F32;
  return dtype_bytes(a) >= dtype_bytes(b) ? a : b;
}

/* Complex types are as wide as their parts, so the wider of two holds both. */
static DType promote_complex(DType a, DType b) {
  DType of_a = dtype_to_complex(a), of_b = dtype_to_complex(b);
  if (of_a == DT_NONE || of_b == DT_NONE) return dtype_is_complex(a) ? a : b;
  return dtype_bytes(of_a) >= dtype_bytes(of_b) ? of_a : of_b;
}

static DType promote_bare(DType a, DType b) {
  if (dtype_is_float(a) || dtype_is_float(b)) return dtype_is_float(a) ? a : b;
  fail(
      ERR_RUNTIME,
      "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote %s and %s",
      dtype_info[a].legacy, dtype_info[b].legacy);
  return dtype_is_bare(a) ? a : b;
}

DType dtype_promote(DType a, DType b) {
  if (a == b) return a;
  if (dtype_is_bare(a) || dtype_is_bare(b)) return promote_bare(a, b);
  if (dtype_is_complex(a) || dtype_is_complex(b)) return promote_complex(a, b);
  if (dtype_kind(a) != dtype_kind(b)) return dtype_kind(a) > dtype_kind(b) ? a : b;
  return dtype_kind(a) == KIND_INT ? promote_ints(a, b) : promote_floats(a, b);
}

bool dtype_can_cast(DType from, DType to) { return dtype_kind(from) <= dtype_kind(to); }

const char *dtype_c_name(DType d) {
  static const char *const names[DT_COUNT] = {[DT_U8] = "unsigned char",
                                              [DT_I8] = "signed char",
                                              [DT_I16] = "short int",
                                              [DT_I32] = "int",
                                              [DT_I64] = "long int",
                                              [DT_F32] = "float",
                                              [DT_F64] = "double",
                                              [DT_BOOL] = "bool",
                                              [DT_F16] = "c10::Half",
                                              [DT_BF16] = "c10::BFloat16",
                                              [DT_C32] = "c10::complex<c10::Half>",
                                              [DT_C64] = "c10::complex<float>",
                                              [DT_C128] = "c10::complex<double>",
                                              [DT_U16] = "short unsigned int",
                                              [DT_U32] = "unsigned int",
                                              [DT_U64] = "long unsigned int"};
  return names[d];
}

void *dtype_no_kernel(const char *kernel, DType d) {
  return fail(ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, dtype_info[d].legacy);
}

void *dtype_no_kernel_of(const char *op, DType d) {
  return fail(ERR_NOT_IMPLEMENTED, "\"%s_cpu\" not implemented for '%s'", op, dtype_info[d].legacy);
}

bool dtype_check_float_kernel(const char *kernel, DType d) {
  return dtype_is_float(d) || dtype_no_kernel(kernel, d);
}

bool dtype_check_wide_kernel(const char *kernel, DType d) {
  return (dtype_is_float(d) && !dtype_is_half(d)) || dtype_no_kernel(kernel, d);
}
