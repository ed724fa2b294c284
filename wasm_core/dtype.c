/* The dtype table and PyTorch's promotion lattice; see dtype.h. */
#include "dtype.h"

const DTypeInfo dtype_info[DT_COUNT] = {
#define ROW(code, name, ctype, short_name, text, kind, legacy) [code] = {text, legacy, sizeof(ctype), kind},
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
