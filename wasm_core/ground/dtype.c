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

/* uint8 with a signed type needs the next wider signed one; all else is the wider of the kind. */
static DType promote_ints(DType a, DType b) {
  if (a == DT_U8 || b == DT_U8) {
    DType other = a == DT_U8 ? b : a;
    return other == DT_U8 ? DT_U8 : other == DT_I8 ? DT_I16 : other;
  }
  return dtype_bytes(a) >= dtype_bytes(b) ? a : b;
}

DType dtype_promote(DType a, DType b) {
  if (a == b) return a;
  if (dtype_kind(a) != dtype_kind(b)) return dtype_kind(a) > dtype_kind(b) ? a : b;
  if (dtype_kind(a) == KIND_INT) return promote_ints(a, b);
  return dtype_bytes(a) >= dtype_bytes(b) ? a : b;
}

bool dtype_can_cast(DType from, DType to) { return dtype_kind(from) <= dtype_kind(to); }

const char *dtype_c_name(DType d) {
  static const char *const names[DT_COUNT] = {[DT_U8] = "unsigned char", [DT_I8] = "signed char",
                                              [DT_I16] = "short int",    [DT_I32] = "int",
                                              [DT_I64] = "long int",     [DT_F32] = "float",
                                              [DT_F64] = "double",       [DT_BOOL] = "bool"};
  return names[d];
}

void *no_kernel(const char *kernel, DType d) {
  return fail(ERR_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", kernel, dtype_info[d].legacy);
}

bool check_float_kernel(const char *kernel, DType d) {
  return dtype_is_float(d) || no_kernel(kernel, d);
}
