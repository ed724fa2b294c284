/* Tensors, storages, bytes and the temporary pool; see tensor.h. */
#include "tensor/tensor.h"

#include <stdio.h>
#include <string.h>

#include "ground/memory.h"

/* ------------------------------------------------------------------ sizes */

/* Counts elements with checks. `message` is the error for overflow, with %s for the sizes. */
static NOINLINE int64_t count_with_care(int ndim, const int64_t *sizes, const char *message) {
  int64_t n = 1; /* elements of one row */
  bool zero = false, overflow = false;
  for (int i = 0; i < ndim; i++) {
    if (sizes[i] < 0) {
      fail(ERR_RUNTIME, "Trying to create tensor with negative dimension %lld: %s", (Shown)sizes[i],
           sizes_text(ndim, sizes));
      return -1;
    }
    if (sizes[i] == 0) zero = true;
    else if (i == 0) continue;
    else overflow = overflow || __builtin_mul_overflow(n, sizes[i], &n);
  }
  if (zero && !overflow) return 0;
  if (!zero && ndim) overflow = overflow || __builtin_mul_overflow(n, sizes[0], &n);
  if (!overflow) return n;
  if (zero) fail(ERR_RUNTIME, "Stride calculation overflowed");
  else fail(ERR_RUNTIME, message, sizes_text(ndim, sizes));
  return -1;
}

/* Fast for nonzero sizes and small products; the 128-bit overflow check is slow on wasm32. */
static int64_t count(int ndim, const int64_t *sizes, const char *message) {
  uint64_t n = 1;
  for (int i = 0; i < ndim; i++) {
    n *= (uint64_t)sizes[i];
    if (__builtin_expect(((uint64_t)sizes[i] | (n - 1)) >> 31 != 0, 0))
      return count_with_care(ndim, sizes, message);
  }
  return (int64_t)n;
}

int64_t sizes_numel(int ndim, const int64_t *sizes) {
  return count(ndim, sizes, "numel: integer multiplication overflow");
}

static int64_t storage_numel(int ndim, const int64_t *sizes) {
  return count(ndim, sizes, "Storage size calculation overflowed with sizes=%s");
}

void sizes_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides) {
  int64_t step = 1;
  for (int i = ndim - 1; i >= 0; i--) {
    strides[i] = step;
    step *= sizes[i] > 1 ? sizes[i] : 1;
  }
}

bool sizes_equal(int na, const int64_t *a, int nb, const int64_t *b) {
  if (na != nb) return false;
  for (int i = 0; i < na; i++)
    if (a[i] != b[i]) return false;
  return true;
}

bool sizes_broadcast(int *nd, int64_t *out, int nb, const int64_t *b) {
  if (nb == 0 || sizes_equal(*nd, out, nb, b)) return true;
  int n = *nd > nb ? *nd : nb;
  for (int i = 1; i <= n; i++) { /* from the last dimension */
    int64_t x = i <= *nd ? out[*nd - i] : 1, y = i <= nb ? b[nb - i] : 1;
    if (x != y && x != 1 && y != 1) {
      fail(ERR_RUNTIME,
           "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton "
           "dimension %d",
           (Shown)x, (Shown)y, n - i);
      return false;
    }
  }
  int64_t result[MAX_DIM];
  for (int i = 1; i <= n; i++) {
    int64_t x = i <= *nd ? out[*nd - i] : 1, y = i <= nb ? b[nb - i] : 1;
    result[n - i] = x == 1 ? y : x;
  }
  memcpy(out, result, (size_t)n * sizeof *out);
  *nd = n;
  return true;
}

bool sizes_expandable(int from_n, const int64_t *from, int to_n, const int64_t *to) {
  if (from_n > to_n) return false;
  for (int i = 1; i <= from_n; i++)
    if (from[from_n - i] != to[to_n - i] && from[from_n - i] != 1) return false;
  return true;
}

int64_t dim_wrap(int64_t dim, int ndim) {
  int64_t n = ndim > 0 ? ndim : 1;
  if (dim >= -n && dim < n) return dim < 0 ? dim + n : dim;
  fail(ERR_INDEX, "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
       (Shown)-n, (Shown)(n - 1), (Shown)dim);
  return -1;
}

int64_t tensor_size(const Tensor *t, int64_t dim) {
  if (t->ndim && (dim = dim_wrap(dim, t->ndim)) >= 0) return t->sizes[dim];
  fail(ERR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (Shown)dim);
  return -1;
}

const char *sizes_text(int ndim, const int64_t *sizes) {
  static char buffers[4][MAX_DIM * 21 + 3];
  static int turn;
  char *out = buffers[turn++ & 3];
  size_t cap = sizeof buffers[0], at = 0;
  out[at++] = '[';
  for (int i = 0; i < ndim; i++)
    at += (size_t)snprintf(out + at, cap - at, i ? ", %lld" : "%lld", (Shown)sizes[i]);
  snprintf(out + at, cap - at, "]");
  return out;
}

const char *shape_text(const Tensor *t) { return sizes_text(t->ndim, t->sizes); }

/* ---------------------------------------------------------------- storages */

int32_t form_made, form_default;
HiddenReads hidden_reads;
LettingGo letting_go;

void tensor_unusual_read(const Tensor *t) {
  if (t->flags & FLAGS_LAZY && !(t->storage->bytes->form & FORM_ABSENT))
    fail(ERR_RUNTIME, "pygrad: an op read the bytes of a lazy conjugate or negative");
  if (!(t->storage->bytes->form & FORM_HOSTED)) return;
  if (hidden_reads != READS_REFUSED) hidden_reads = READS_FOUND;
  else
    fail(ERR_NOT_IMPLEMENTED,
         "pygrad: the memory of a tensor whose class has __torch_dispatch__ holds no elements");
}

/* A storage that takes over the reference to b. */
static Storage *storage_new(Bytes *b) {
  if (!b) return NULL;
  Storage *s = mem_alloc(sizeof *s);
  if (!s) {
    bytes_release(b);
    return NULL;
  }
  *s = (Storage){.refs = 1, .bytes = b};
  return s;
}

static void drop_copy(Storage *s) {
  bytes_release(s->copy);
  s->copy = NULL;
}

/* Frees the bytes of a storage without references, and the storage unless the host has its
 * address. */
static void storage_end(Storage *s) {
  bytes_release(s->bytes);
  s->bytes = NULL;
  if (!s->pins) mem_free(s, sizeof *s);
}

static void storage_release(Storage *s) {
  if (!s || --s->refs > 0) return;
  drop_copy(s);
  if (s->mapped) letting_go.of_object(s->mapped);
  else storage_end(s);
}

void storage_unmap(Storage *s) { storage_end(s); }

/* Moves the storage to a block of its own, a copy or uninitialised. */
static bool storage_move(Storage *s, bool copy) {
  Bytes *fresh = copy ? bytes_clone(s->bytes) : bytes_new(s->bytes->n_bytes);
  if (!fresh) return false;
  fresh->form = s->bytes->form;
  bytes_release(s->bytes);
  s->bytes = fresh;
  return true;
}

/* The addresses of t's elements. The smallest stride that leaves a gap is the period of the reach,
 * if the larger strides are multiples of it. */
static Reach reach_of(const Tensor *t) {
  const int64_t width = dtype_bytes(tensor_dtype(t));
  uintptr_t from = (uintptr_t)tensor_memory(t);
  if (tensor_is_contiguous(t))
    return (Reach){from, from + (uintptr_t)(t->numel * width), t->numel * width, 0};
  int64_t strides[MAX_DIM], sizes[MAX_DIM], stretch = width, period = 0, end = width;
  int n = 0;
  for (int i = 0; i < t->ndim; i++) {
    if (t->sizes[i] < 2 || !t->strides[i]) continue;
    int k = n++;
    for (; k && strides[k - 1] > t->strides[i] * width; k--)
      strides[k] = strides[k - 1], sizes[k] = sizes[k - 1];
    strides[k] = t->strides[i] * width;
    sizes[k] = t->sizes[i];
  }
  for (int k = 0; k < n; k++) {
    bool multiples = strides[k] > stretch;
    for (int j = k + 1; j < n; j++) multiples = multiples && strides[j] % strides[k] == 0;
    if (!period && multiples) period = strides[k];
    if (!period) stretch += (sizes[k] - 1) * strides[k];
    end += (sizes[k] - 1) * strides[k];
  }
  return (Reach){from, from + (uintptr_t)end, stretch, period};
}

/* Makes a reach of the storage's bytes writable by moving the parts of snapshots. `whole`: all
 * bytes are overwritten; if snapshots have most of them, the storage moves instead. */
static NOINLINE bool make_way(Storage *s, Reach r, bool whole) {
  Bytes *b = s->bytes;
  if (b->form & FORM_ABSENT || bytes_sole(b)) return true;
  if (bytes_are_part(b) || bytes_shared(b)) return storage_move(s, !whole);
  if (whole && bytes_in_way(b, &r) > b->n_bytes / 2) return storage_move(s, false);
  return bytes_make_way(b, &r);
}

bool tensor_write_begin(Tensor *t, bool whole) {
  if (failed() || !t) return false;
  if (__builtin_expect(t->storage->bytes->refs == 1, 1)) return true;
  return make_way(t->storage, reach_of(t), whole && tensor_covers_storage(t));
}

bool tensor_steal_bytes(Tensor *dst, Tensor *src) {
  if (dst->dtype != src->dtype || (dst->flags ^ src->flags) & FLAGS_LAZY || dst->storage->exports ||
      src->storage->exports || dst->form != src->form)
    return false;
  if (src->storage->refs != 1 || !tensor_covers_storage(dst) || !tensor_covers_storage(src))
    return false;
  if (!tensor_is_contiguous(dst) || !tensor_is_contiguous(src)) return false;
  Bytes *old = dst->storage->bytes;
  dst->storage->bytes = src->storage->bytes;
  src->storage->bytes = old;
  return true;
}

/* ------------------------------------------------------------ the pool */

static Tensor **pool;
static int32_t pool_n, pool_cap;

Tensor *pool_push(Tensor *t) {
  if (!t) return NULL;
  if (pool_n == pool_cap) {
    int32_t cap = pool_cap ? 2 * pool_cap : 256;
    Tensor **grown = mem_permanent((size_t)cap * sizeof *grown);
    if (!grown) {
      tensor_release(t);
      return NULL;
    }
    if (pool_n) memcpy(grown, pool, (size_t)pool_n * sizeof *grown);
    pool = grown; /* the old array is leaked: at most as large as this one */
    pool_cap = cap;
  }
  pool[pool_n++] = t;
  return t;
}

int32_t pool_mark(void) { return pool_n; }

void pool_release(int32_t mark, Tensor *keep) {
  if (keep) tensor_retain(keep);
  while (pool_n > mark) tensor_release(pool[--pool_n]);
  if (keep) pool_push(keep);
}

void pool_keep(int32_t mark, int n, Tensor *const *kept) {
  if (failed()) return;
  for (int i = 0; i < n; i++) tensor_retain(kept[i]);
  pool_release(mark, NULL);
  for (int i = 0; i < n; i++) pool_push(kept[i]);
}

/* ------------------------------------------------------------ tensors */

static int64_t live_tensors;
int64_t tensor_live_count(void) { return live_tensors; }
int32_t vmap_concerns, unusual_tensors, hosted_tensors;
bool inference_mode;
void (*version_written)(Version *v);

static size_t block_bytes(int cap) { return sizeof(Tensor) + (size_t)cap * 2 * sizeof(int64_t); }

/* A tensor over s (takes over the reference) in the pool, with the geometry unset. */
static Tensor *tensor_bare(int ndim, DType dtype, Storage *s) {
  if (!s) return NULL;
  Tensor *t = mem_alloc(block_bytes(ndim));
  if (!t) {
    storage_release(s);
    return NULL;
  }
  *t = (Tensor){.refs = 1,
                .magic = TENSOR_MAGIC,
                .dtype = (uint8_t)dtype,
                .ndim = (uint8_t)ndim,
                .cap = (uint8_t)ndim,
                .block_cap = (uint8_t)ndim,
                .storage = s};
  t->sizes = t->dims;
  t->strides = t->dims + ndim;
  if (inference_mode) t->flags |= FLAG_INFERENCE;
  if (__builtin_expect(s->bytes->form, 0)) tensor_set_form(t, s->bytes->form);
  live_tensors++;
  return pool_push(t);
}

static bool is_hosted(const Tensor *t) { return t->form & FORM_HOSTED; }
static bool is_unusual(const Tensor *t) { return t->flags & FLAGS_LAZY || t->form; }

void tensor_set_lazy(Tensor *v, int flags) {
  if (!v) return;
  unusual_tensors -= is_unusual(v);
  v->flags = (uint8_t)((v->flags & ~FLAGS_LAZY) | flags);
  unusual_tensors += is_unusual(v);
}

void tensor_set_form(Tensor *v, int form) {
  if (!v) return;
  unusual_tensors -= is_unusual(v);
  hosted_tensors -= is_hosted(v);
  v->form = (uint8_t)form;
  unusual_tensors += is_unusual(v);
  hosted_tensors += is_hosted(v);
}

void tensor_swap_storages(Tensor *a, Tensor *b) {
  Storage *of_a = a->storage;
  a->storage = b->storage;
  b->storage = of_a;
  tensor_set_form(a, (a->form & ~FORM_ABSENT) | a->storage->bytes->form);
  tensor_set_form(b, (b->form & ~FORM_ABSENT) | of_a->bytes->form);
}

void tensor_retain(Tensor *t) {
  if (t) t->refs++;
}

void version_release(Version *v) {
  if (!v || --v->refs > 0) return;
  if (v->trail) letting_go.of_trail(v);
  mem_free(v, sizeof *v);
}

static void hooks_release(Hook *h) {
  while (h) {
    Hook *next = h->next;
    letting_go.of_object(h->id);
    mem_free(h, sizeof *h);
    h = next;
  }
}

static bool rank_fits(int ndim) {
  if (ndim <= MAX_DIM) return true;
  fail(ERR_RUNTIME, "tensors have at most %d dimensions, but got %d", MAX_DIM, ndim);
  return false;
}

static void parts_release(Sparse *s) {
  tensor_release(s->values);
  tensor_release(s->indices);
  tensor_release(s->plain);
  mem_free(s, sizeof *s);
}

Tensor *(*computed_part)(Tensor *lazy);

static bool compute_part(Tensor **part) {
  if (!*part || !((*part)->flags & FLAGS_LAZY)) return true;
  return (*part = computed_part(*part)) != NULL;
}

bool tensor_set_parts(Tensor *x, Sparse parts) {
  if (failed() || !x || !parts.values || !parts.indices) return false;
  if (!compute_part(&parts.values) || !compute_part(&parts.indices) || !compute_part(&parts.plain))
    return false;
  Meta *m = tensor_meta(x);
  Sparse *s = m ? mem_alloc(sizeof *s) : NULL;
  if (!s) return false;
  *s = parts;
  tensor_retain(s->values);
  tensor_retain(s->indices);
  tensor_retain(s->plain);
  if (m->sparse) parts_release(m->sparse);
  m->sparse = s;
  tensor_set_form(x, x->form | FORM_SPARSE);
  return true;
}

bool tensor_take_parts(Tensor *x, const Tensor *v) {
  return !is_sparse(v) || tensor_set_parts(x, *v->meta->sparse);
}

Tensor *tensor_sparse(int ndim, const int64_t *sizes, Sparse parts) {
  static const int64_t no_strides[MAX_DIM];
  Tensor *x = failed() || !parts.values ? NULL : tensor_none_of(tensor_dtype(parts.values));
  return rank_fits(ndim) && x && tensor_set_geometry(x, ndim, sizes, no_strides, 0) &&
                 tensor_set_parts(x, parts)
             ? x
             : NULL;
}

static Tensor *dead_tensors;
static bool burying;

/* Frees a tensor without references. Tensors that it owned go to the caller's list instead of the
 * stack, because tensors and nodes own each other in long chains. */
static void bury(Tensor *t) {
  Meta *m = t->meta;
  Node *fn = t->grad_fn;
  if (__builtin_expect(is_unusual(t), 0)) { /* and so counted */
    tensor_set_form(t, 0);
    tensor_set_lazy(t, 0);
  }
  if (m && m->retains_grad) letting_go.of_retained(t);
  if (m && m->dual) letting_go.of_dual(t);
  if (t->noted) letting_go.of_object(t->noted);
  version_release(t->version);
  storage_release(t->storage);
  if (t->sizes != t->dims) mem_free(t->sizes, (size_t)t->cap * 2 * sizeof(int64_t));
  t->magic = 0;
  live_tensors--;
  mem_free(t, block_bytes(t->block_cap));
  if (m) {
    vmap_concerns -= m->value != NULL;
    hooks_release(m->hooks);
    hooks_release(m->post_hooks);
    tensor_release(m->grad);
    tensor_release(m->base);
    tensor_release(m->value);
    tensor_release(m->stands_for);
    if (m->sparse) parts_release(m->sparse);
  }
  if (fn) letting_go.of_node(fn);
  if (!m) return;
  if (m->owns_accumulator) letting_go.of_node(m->accumulator);
  if (m->made_by) letting_go.of_node(m->made_by);
  mem_free(m, sizeof *m);
}

void tensor_release(Tensor *t) {
  if (!t || --t->refs > 0) return;
  if (burying) {
    t->numel = (int64_t)(uintptr_t)dead_tensors; /* the link of the dead list */
    dead_tensors = t;
    return;
  }
  burying = true;
  bury(t);
  while (dead_tensors) {
    Tensor *d = dead_tensors;
    dead_tensors = (Tensor *)(uintptr_t)d->numel;
    bury(d);
  }
  burying = false;
}

int64_t storage_need(int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                     DType dtype) {
  int64_t last = offset;
  if (offset < 0)
    return fail(ERR_RUNTIME, "Tensor: invalid storage offset %lld", (Shown)offset), -1;
  for (int i = 0; i < ndim; i++) {
    int64_t reach;
    if (sizes[i] == 0) return 0;
    if ((sizes[i] | strides[i]) < 0) goto overflow;
    if ((sizes[i] | strides[i] | last) >> 30 == 0) { /* as in `count` */
      last += (sizes[i] - 1) * strides[i];
      continue;
    }
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      goto overflow;
  }
  int64_t n;
  if (last >> 31 == 0) return (last + 1) * dtype_bytes(dtype);
  if (last < INT64_MAX && !__builtin_mul_overflow(last + 1, dtype_bytes(dtype), &n)) return n;
overflow:
  fail(ERR_RUNTIME, "Storage size calculation overflowed with sizes=%s and strides=%s",
       sizes_text(ndim, sizes), sizes_text(ndim, strides));
  return -1;
}

static NOINLINE Tensor *too_large(int64_t n_bytes, int ndim, const int64_t *sizes) {
  return fail(ERR_MEMORY,
              "pygrad: can't allocate memory: a tensor of shape %s takes %lld bytes, and an "
              "engine has at most 4 GiB, less where it is limited, of which %lld bytes are in use; "
              "on the device meta it takes none",
              sizes_text(ndim, sizes), (Shown)n_bytes, (Shown)mem_live_bytes());
}

/* A tensor over new bytes, with strides and numel unset; `sizes` must be valid. */
static Tensor *tensor_over(int64_t n_bytes, int ndim, const int64_t *sizes, DType dtype) {
  if (n_bytes < 0) return NULL;
  if (__builtin_expect(n_bytes > UINT32_MAX - 4096, 0) && !form_made)
    return too_large(n_bytes, ndim, sizes);
  Bytes *b = __builtin_expect(form_made, 0) ? bytes_absent(n_bytes, form_made) : bytes_new(n_bytes);
  Tensor *t = tensor_bare(ndim, dtype, storage_new(b));
  if (!t) return NULL;
  for (int i = 0; i < ndim; i++) t->sizes[i] = sizes[i];
  return t;
}

Tensor *tensor_empty_strided(int ndim, const int64_t *sizes, const int64_t *strides, DType dtype) {
  if (failed() || !rank_fits(ndim)) return NULL;
  int64_t numel = sizes_numel(ndim, sizes);
  Tensor *t = numel < 0
                  ? NULL
                  : tensor_over(storage_need(ndim, sizes, strides, 0, dtype), ndim, sizes, dtype);
  if (!t) return NULL;
  for (int i = 0; i < ndim; i++) t->strides[i] = strides[i];
  t->numel = numel;
  return t;
}

Tensor *tensor_empty(int ndim, const int64_t *sizes, DType dtype) {
  int64_t n_bytes;
  if (failed() || !rank_fits(ndim)) return NULL;
  int64_t numel = storage_numel(ndim, sizes);
  if (numel < 0) return NULL;
  if (numel >> 31 == 0) n_bytes = numel * dtype_bytes(dtype);
  else if (__builtin_mul_overflow(numel, dtype_bytes(dtype), &n_bytes))
    return fail(ERR_RUNTIME, "Storage size calculation overflowed with sizes=%s",
                sizes_text(ndim, sizes));
  Tensor *t = tensor_over(n_bytes, ndim, sizes, dtype);
  if (!t) return NULL;
  sizes_contiguous_strides(ndim, sizes, t->strides);
  t->numel = numel;
  return t;
}

Tensor *tensor_empty_like(const Tensor *like, DType dtype) {
  if (failed() || !like) return NULL;
  if (tensor_is_dense(like))
    return tensor_empty_strided(like->ndim, like->sizes, like->strides, dtype);
  /* Not dense: keep the order of the strides, as PyTorch does. Dimensions of stride 0 keep their
   * place; among equal strides the smaller dimension is inner. */
  int order[MAX_DIM], n = like->ndim; /* dimensions from the innermost */
  const int64_t *s = like->strides;
  for (int i = 0; i < n; i++) {
    order[i] = n - 1 - i;
    for (int to = i, at = i - 1; at >= 0; at--) {
      int a = order[at], b = order[to];
      if (s[a] == 0 || s[b] == 0) continue;
      if (s[a] < s[b]) break;
      if (s[a] == s[b] && like->sizes[a] <= like->sizes[b]) continue;
      order[at] = b;
      order[to] = a;
      to = at;
    }
  }
  int64_t strides[MAX_DIM], step = 1;
  for (int i = 0; i < n; i++) {
    strides[order[i]] = step;
    step *= like->sizes[order[i]] > 1 ? like->sizes[order[i]] : 1;
  }
  return tensor_empty_strided(n, like->sizes, strides, dtype);
}

Tensor *tensor_mapped(int64_t n_bytes, int64_t page, int32_t id) {
  if (failed()) return NULL;
  Storage *s = storage_new(bytes_paged(n_bytes, (int32_t)page));
  Tensor *t = tensor_bare(1, DT_U8, s);
  if (!t) return NULL;
  t->sizes[0] = t->numel = n_bytes;
  t->strides[0] = 1;
  s->exports = 1; /* for good: others write there too */
  s->mapped = id;
  return t;
}

Tensor *tensor_none_of(DType dtype) { return tensor_empty(1, (const int64_t[]){0}, dtype); }

Tensor *tensor_zeros(int ndim, const int64_t *sizes, DType dtype) {
  Tensor *t = tensor_empty(ndim, sizes, dtype);
  if (t && !tensor_absent(t)) mem_clear(tensor_memory(t), (size_t)(t->numel * dtype_bytes(dtype)));
  return t;
}

Tensor *tensor_full(int ndim, const int64_t *sizes, DType dtype, double value) {
  Tensor *t = tensor_empty(ndim, sizes, dtype);
  if (!t || tensor_absent(t)) return t;
  char pattern[16];
  element_store_f(pattern, dtype, value);
  char *at = tensor_memory(t);
  DISPATCH_WIDTH(dtype, {
    T v;
    memcpy(&v, pattern, sizeof v);
    T *out = (T *)(void *)at;
    for (int64_t i = 0; i < t->numel; i++) out[i] = v;
  })
  return t;
}

Tensor *tensor_number(double value, DType dtype) {
  Tensor *t = tensor_empty(0, NULL, dtype);
  if (t && !tensor_absent(t)) element_store_f(tensor_memory(t), dtype, value);
  return t;
}

static Tensor *empty_number(DType dtype) { return WITH_FORM(0, tensor_empty(0, NULL, dtype)); }
static Tensor *real_number(double value, DType dtype) {
  return WITH_FORM(0, tensor_number(value, dtype));
}

static Tensor *mark_wrapped(Tensor *t) {
  if (t) t->flags |= FLAG_WRAPPED;
  return t;
}

Tensor *tensor_wrapped_f(double value) { return mark_wrapped(real_number(value, DT_F64)); }
Tensor *tensor_wrapped_b(bool value) { return mark_wrapped(real_number(value, DT_BOOL)); }
Tensor *tensor_wrapped_i(int64_t value) {
  Tensor *t = empty_number(DT_I64);
  if (t) element_store_i(tensor_memory(t), DT_I64, value);
  return mark_wrapped(t);
}

Tensor *tensor_wrapped_c(complex_f64 value) {
  Tensor *t = empty_number(DT_C128);
  if (t) element_store_c(tensor_memory(t), DT_C128, value);
  return mark_wrapped(t);
}

Tensor *tensor_alias(Tensor *t, int ndim, const int64_t *sizes, const int64_t *strides,
                     int64_t offset) {
  if (failed() || !t) return NULL;
  t->storage->refs++;
  Tensor *v = tensor_bare(ndim, tensor_dtype(t), t->storage);
  int64_t numel = v ? sizes_numel(ndim, sizes) : -1;
  if (numel < 0) return NULL;
  for (int i = 0; i < ndim; i++) {
    v->sizes[i] = sizes[i];
    v->strides[i] = strides[i];
  }
  v->numel = numel;
  v->offset = offset;
  v->flags = t->flags & FLAG_INFERENCE; /* an alias is an inference tensor if t is, in any mode */
  if (t->flags & FLAGS_LAZY) tensor_set_lazy(v, t->flags & FLAGS_LAZY);
  return tensor_take_parts(v, t) ? v : NULL;
}

Tensor *tensor_part(Tensor *y, int64_t dim, int64_t start, int64_t length) {
  int64_t sizes[MAX_DIM];
  if (failed() || !y) return NULL;
  memcpy(sizes, y->sizes, (size_t)y->ndim * sizeof *sizes);
  sizes[dim] = length;
  return tensor_alias(y, y->ndim, sizes, y->strides, y->offset + start * y->strides[dim]);
}

/* The latest copy of an exported storage, updated. Bytes are compared because the host does not
 * report its writes. */
static Bytes *up_to_date_copy(Storage *s) {
  Bytes *known = s->copy;
  if (known && known->n_bytes != s->bytes->n_bytes) drop_copy(s);
  else if (known && known->refs == 1) bytes_follow(known, s->bytes);
  else if (known && !bytes_equal(known, s->bytes)) drop_copy(s);
  if (!s->copy) s->copy = bytes_clone(s->bytes);
  return s->copy;
}

/* A reference to bytes for a snapshot of t, starting at t's first element. */
static Bytes *bytes_for(const Tensor *t) {
  Storage *s = t->storage;
  if (tensor_covers_storage(t)) {
    Bytes *b = s->exports ? up_to_date_copy(s) : s->bytes;
    if (b) b->refs++;
    return b;
  }
  Reach r = reach_of(t);
  if (!s->exports) return bytes_part(s->bytes, &r);
  return bytes_of_memory(tensor_memory(t), (int64_t)(r.to - r.from), s->bytes->form);
}

static Tensor *sparse_snapshot(Tensor *t) {
  Sparse s = *t->meta->sparse;
  s.values = tensor_snapshot(s.values);
  s.indices = tensor_snapshot(s.indices);
  s.plain = tensor_snapshot(s.plain);
  return tensor_sparse(t->ndim, t->sizes, s);
}

Tensor *tensor_snapshot(Tensor *t) {
  if (failed() || !t) return NULL;
  if (is_sparse(t)) return sparse_snapshot(t);
  Bytes *b = t->storage->bytes;
  if (b->form & FORM_ABSENT) b->refs++;
  else b = bytes_for(t);
  Tensor *v = tensor_bare(t->ndim, tensor_dtype(t), storage_new(b));
  if (!v) return NULL;
  memcpy(v->sizes, t->sizes, (size_t)t->ndim * sizeof(int64_t));
  memcpy(v->strides, t->strides, (size_t)t->ndim * sizeof(int64_t));
  v->numel = t->numel;
  if (tensor_absent(t)) v->offset = t->offset;
  v->flags = t->flags & FLAG_WRAPPED;
  if (t->flags & FLAGS_LAZY) tensor_set_lazy(v, t->flags & FLAGS_LAZY);
  return v;
}

/* Moves all snapshots' parts aside, because the host does not report its writes. */
bool tensor_export(Tensor *t) {
  if (failed() || !t || !make_way(t->storage, bytes_reach(t->storage->bytes), false)) return false;
  t->storage->exports++;
  return true;
}

static void end_export(Storage *s) {
  if (--s->exports == 0) drop_copy(s);
}

void tensor_unexport(Tensor *t) { end_export(t->storage); }

bool tensor_pin(Tensor *t) {
  if (!tensor_export(t)) return false;
  t->storage->pins++;
  return true;
}

void storage_unpin(Storage *s, bool for_good) {
  s->pins--;
  if (for_good) s->exports |= PINNED;
  end_export(s);
  if (!s->refs && !s->pins && !s->bytes) mem_free(s, sizeof *s);
}

Meta *tensor_meta(Tensor *t) {
  if (!t->meta) t->meta = mem_alloc_zero(sizeof *t->meta);
  return t->meta;
}

/* ------------------------------------------------------------ versions */

static Version *version_of(Tensor *t) {
  if (!t->version) {
    t->version = mem_alloc(sizeof *t->version);
    if (t->version) *t->version = (Version){1, 0, NULL};
  }
  return t->version;
}

void tensor_share_version(Tensor *t, Tensor *with) {
  Version *v = version_of(with);
  if (!v) return;
  v->refs++;
  version_release(t->version);
  t->version = v;
}

void tensor_bump_version(Tensor *t) {
  Version *v = version_of(t);
  if (!v) return;
  v->value++;
  if (version_written) version_written(v);
}

bool caching;

void tensor_set_cached(Tensor *t, bool cached) {
  if (!caching) {
    fail(ERR_RUNTIME, "cached tensors are not enabled: call _set_cached_tensors_enabled first");
    return;
  }
  t->flags = (uint8_t)(cached ? t->flags | FLAG_CACHED : t->flags & ~FLAG_CACHED);
}

void tensor_set_version(Tensor *t, uint32_t version) {
  Version *v = version_of(t);
  if (v) v->value = version;
}

uint32_t tensor_version(const Tensor *t) { return t->version ? t->version->value : 0; }

/* ------------------------------------------------------------ geometry */

bool tensor_set_geometry(Tensor *t, int ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t offset) {
  int64_t numel = sizes_numel(ndim, sizes);
  if (numel < 0) return false;
  int64_t keep[2 * MAX_DIM]; /* the arguments may point into t */
  memcpy(keep, sizes, (size_t)ndim * sizeof *keep);
  memcpy(keep + MAX_DIM, strides, (size_t)ndim * sizeof *keep);
  if (ndim > t->cap) {
    int64_t *apart = mem_alloc((size_t)ndim * 2 * sizeof *apart);
    if (!apart) return false;
    if (t->sizes != t->dims) mem_free(t->sizes, (size_t)t->cap * 2 * sizeof *apart);
    t->sizes = apart;
    t->cap = (uint8_t)ndim;
  }
  t->strides = t->sizes + t->cap;
  memcpy(t->sizes, keep, (size_t)ndim * sizeof *keep);
  memcpy(t->strides, keep + MAX_DIM, (size_t)ndim * sizeof *keep);
  t->ndim = (uint8_t)ndim;
  t->numel = numel;
  t->offset = offset;
  Node *made_by = t->meta ? t->meta->made_by : NULL;
  if (made_by) { /* the nodes gave the old geometry */
    t->meta->made_by = NULL;
    letting_go.of_node(made_by);
  }
  return true;
}

bool storage_grow(Storage *s, int64_t n_bytes) {
  Bytes *old = s->bytes;
  if (n_bytes <= old->n_bytes) return true;
  if ((s->exports & ~PINNED) != s->pins) {
    fail(ERR_RUNTIME, "Trying to resize storage that is not resizable");
    return false;
  }
  const int32_t absent = old->form & FORM_ABSENT;
  Bytes *fresh = absent ? bytes_absent(n_bytes, absent) : bytes_new(n_bytes);
  if (!fresh) return false;
  if (!absent) memcpy(fresh->data, old->data, (size_t)old->n_bytes);
  fresh->form = old->form;
  bytes_release(old);
  s->bytes = fresh;
  s->exports = s->pins; /* addresses given away for good are invalid now */
  drop_copy(s);
  return true;
}

bool tensor_resize(Tensor *t, int ndim, const int64_t *sizes) {
  int64_t strides[MAX_DIM], numel = storage_numel(ndim, sizes), end;
  if (failed() || numel < 0) return false;
  sizes_contiguous_strides(ndim, sizes, strides);
  if (__builtin_add_overflow(numel, t->offset, &end) ||
      __builtin_mul_overflow(end, dtype_bytes(tensor_dtype(t)), &end)) {
    fail(ERR_RUNTIME, "Storage size calculation overflowed with sizes=%s", sizes_text(ndim, sizes));
    return false;
  }
  if (numel && !storage_grow(t->storage, end)) return false;
  return tensor_set_geometry(t, ndim, sizes, strides, t->offset);
}

bool tensor_is_contiguous(const Tensor *t) {
  int64_t step = 1;
  if (t->numel == 0) return true;
  for (int i = t->ndim - 1; i >= 0; i--) {
    if (t->sizes[i] != 1 && t->strides[i] != step) return false;
    step *= t->sizes[i];
  }
  return true;
}

bool tensor_is_dense(const Tensor *t) {
  if (tensor_is_contiguous(t)) return true;
  /* Dense iff the dimensions, sorted by stride, tile memory without gap: find each in turn. */
  int64_t step = 1;
  int left = 0;
  for (int i = 0; i < t->ndim; i++) left += t->sizes[i] != 1;
  while (left) {
    int found = -1;
    for (int i = 0; i < t->ndim; i++)
      if (t->sizes[i] != 1 && t->strides[i] == step) found = i;
    if (found < 0) return false;
    step *= t->sizes[found];
    left--;
  }
  return true;
}

bool tensor_covers_storage(const Tensor *t) {
  return t->offset == 0 && t->numel * dtype_bytes(tensor_dtype(t)) == t->storage->bytes->n_bytes &&
         tensor_is_dense(t);
}

bool tensor_same_memory(const Tensor *a, const Tensor *b) {
  return bytes_block(a->storage->bytes) == bytes_block(b->storage->bytes);
}

bool tensor_same_shape(const Tensor *a, const Tensor *b) {
  if (a->ndim != b->ndim) return false;
  for (int i = 0; i < a->ndim; i++)
    if (a->sizes[i] != b->sizes[i]) return false;
  return true;
}
