/* Batched tensors; see batched.h. */
#include "tape/batched.h"

#include "ground/status.h"
#include "ground/text.h"

Tensor *batched_tensor(Tensor *value, uint32_t bits) {
  int n = level_count(bits);
  if (failed() || !value || !bits) return value;
  Tensor *t = tensor_alias(value, value->ndim - n, value->sizes + n, value->strides + n,
                           value->offset);
  Meta *m = t ? tensor_meta(t) : NULL;
  if (!m) return NULL;
  tensor_retain(value);
  m->value = value;
  m->levels = bits;
  t->flags |= FLAG_BATCHED;
  vmap_concerns++;
  return t;
}

/* The offset behind the last element; the offset itself if there is none. */
static int64_t end_of(int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset) {
  int64_t end = offset + 1;
  for (int i = 0; i < ndim; i++) {
    if (!sizes[i]) return offset;
    end += (sizes[i] - 1) * strides[i];
  }
  return end;
}

bool batched_check_in_slice(const Tensor *value, int n, int ndim, const int64_t *sizes,
                            const int64_t *strides, int64_t offset) {
  int64_t from = value->offset,
          to = end_of(value->ndim - n, value->sizes + n, value->strides + n, from);
  int64_t end = end_of(ndim, sizes, strides, offset);
  if (end == offset || (from <= offset && end <= to)) return true;
  const char *wanted = textf("result = tensor.as_strided(%s, %s, %lld) can access memory outside "
                             "of `tensor`.",
                             sizes_text(ndim, sizes), sizes_text(ndim, strides), (Shown)offset);
  const char *advice = "This is not supported inside of vmap, please try to rewrite the "
                       "`as_strided` call as a sequence of PyTorch view operations";
  if (to == from)
    fail(ERR_RUNTIME,
         "%s `tensor` has no storage but the passed-in (size, stride, storage_offset) imply a "
         "result with some storage. %s",
         wanted, advice);
  else
    fail(ERR_RUNTIME,
         "%s `result` can access some memory in range [%lld, %lld], but `tensor` can only access "
         "some memory in range [%lld, %lld]. %s",
         wanted, (Shown)offset, (Shown)end, (Shown)from, (Shown)to, advice);
  return false;
}
