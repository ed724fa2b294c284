/* Tensors: strided views over reference-counted storages.
 *
 * Ownership. A Tensor made by any function here or in op.h belongs to the temporary pool: it is
 * released when the crossing (or backward node) that made it ends, unless tensor_retain was called.
 * Arguments are borrowed. So code composed of ops neither retains nor releases.
 *
 * Bytes are copy-on-write (bytes.h). Aliases share a Storage; snapshots share its Bytes, or a part
 * of them. A writer first calls tensor_write_begin, which gives the storage other bytes or moves
 * aside the parts that the write would change, and gets the memory's address afterwards, because
 * memory may move. While the host shares the memory (`exports`: an array over it exists, or a
 * program got its address), a snapshot is a real copy, or shares the storage's latest copy if the
 * elements are unchanged. */
#ifndef PG_TENSOR_H
#define PG_TENSOR_H

#include "ground/dtype.h"
#include "ground/status.h"
#include "tensor/bytes.h"

enum { MAX_DIM = 64 };

typedef struct Node Node;
typedef struct Tensor Tensor;
typedef struct Dual Dual; /* a tangent, see forward.h */

typedef struct Storage Storage;

struct Storage {
  int32_t refs;
  int32_t exports; /* the number of arrays and pins, and PINNED */
  int32_t pins;    /* addresses that the host has; they keep the Storage, not its bytes */
  Bytes *bytes;
  Bytes *copy;    /* while exported: the elements at the last snapshot, owned; or NULL */
  int32_t mapped; /* the host's id of the file mapped over the bytes, which stay until the host has
                   * taken it away; or 0 */
  bool retyped;   /* seen by view(dtype): a NaN may be bits of other elements */
};

enum { PINNED = 1 << 30 }; /* the address was given away for good; hosts use the number too */

/* Shared by a tensor, its views and detach(); not by `.data`. */
typedef struct {
  int32_t refs;
  uint32_t value;
  struct Trail *trail; /* anomaly mode: traces of the increments, else NULL */
} Version;
void version_release(Version *v);

typedef enum {
  VIEW_PLAIN,        /* modifying it in place rebases the base's history */
  VIEW_NO_GRAD,      /* made under no_grad */
  VIEW_MULTI_OUTPUT, /* from split, unbind, ... */
  VIEW_IN_CUSTOM,    /* made inside a custom Function */
  VIEW_INFERENCE
} ViewOrigin;

/* Callbacks of the host, by id; a linked list in registration order. */
typedef struct Hook {
  struct Hook *next;
  int32_t id;
  uint8_t kind;
} Hook;

/* Layouts: strided, or sparse with the places of the stored elements. X(NAME, the name for hosts
 * and messages, the name in legacy types) */
#define TENSOR_LAYOUTS(X)              \
  X(STRIDED, strided, Strided)         \
  X(SPARSE_COO, sparse_coo, Sparse)    \
  X(SPARSE_CSR, sparse_csr, SparseCsr) \
  X(SPARSE_CSC, sparse_csc, SparseCsc) \
  X(SPARSE_BSR, sparse_bsr, SparseBsr) \
  X(SPARSE_BSC, sparse_bsc, SparseBsc)
typedef enum {
#define X(NAME, name, shown) LAYOUT_##NAME,
  TENSOR_LAYOUTS(X)
#undef X
} Layout;

/* The stored elements of a tensor of FORM_SPARSE. COO: `indices` has a column and `values` a row
 * for each; the rows have the dimensions after sparse_dim. The others compress rows or columns: the
 * elements of row (column) k are indices[k] to indices[k + 1], and `plain` has their columns
 * (rows). BSR and BSC store blocks instead of elements. */
typedef struct {
  Tensor *values, *indices, *plain; /* owned; plain is NULL for COO */
  uint8_t layout, sparse_dim;
  bool coalesced; /* COO: the columns are sorted and unique */
} Sparse;

/* Fields that few tensors need: leaves with gradients, views, tensors with hooks. */
typedef struct {
  Tensor *grad;          /* owned */
  Node *accumulator;     /* weak: the node clears it when it dies */
  bool owns_accumulator; /* it is another leaf's accumulator, owned */
  Hook *hooks;           /* on the gradient of this tensor (leaf: pre-hooks of its accumulator) */
  Hook *post_hooks;      /* after accumulation */
  Tensor *base;          /* owned; non-NULL for a differentiable view */
  Dual *dual;            /* owned */
  Tensor *stands_for;    /* the original of a float or computed copy made for one call; owned */
  uint32_t view_version; /* views: the version that grad_fn belongs to */
  uint8_t view_origin;
  uint8_t grad_dtype; /* the dtype of `grad` plus one, DT_NONE + 1: any; 0: the tensor's dtype */
  bool retains_grad;
  /* a batched tensor: the dimension of its argument that vmap maps */
  uint8_t batch_dim;
  Tensor *value;   /* a batched tensor (vmap.h): the tensor with all slices; owned */
  uint32_t levels; /* levels of vmap, a bit each */
  Sparse *sparse;  /* FORM_SPARSE: the parts; owned */
  Node *made_by;   /* a view to rebuild by its own nodes (history.c): the last of them; owned */
} Meta;

/* Tensor.flags. Hosts read the numbers by name: flag_requires_grad. */
#define TENSOR_FLAGS(X)                                                                    \
  X(REQUIRES_GRAD, requires_grad, 1) /* as a leaf, or because grad_fn is set */            \
  X(WRAPPED, wrapped, 2)             /* a host number: has the lowest rank in promotion */ \
  X(INFERENCE, inference, 4)                                                               \
  X(PARAMETER, parameter, 8)                                                               \
  X(CACHED, cached, 16)    /* a cache's reference does not count: caching */               \
  X(CONJ, conj, 32)        /* its elements are the conjugates of the bytes' */             \
  X(NEG, neg, 64)          /* its elements are the negatives of the
                            * bytes' */                        \
  X(BATCHED, batched, 128) /* the highest, so that one comparison finds it */
enum {
#define X(NAME, name, bit) FLAG_##NAME = bit,
  TENSOR_FLAGS(X)
#undef X
};

/* With one of these, the bytes must be conjugated or negated to get the elements: see
 * OP_ENTERED. */
enum { FLAGS_LAZY = FLAG_CONJ | FLAG_NEG };

extern bool caching; /* whether FLAG_CACHED has an effect */

/* Tensor.form: the kind of a tensor without strided elements in memory; 0: it has them. */
#define TENSOR_FORMS(X)                                           \
  X(META, meta, 1)     /* on the device meta, without elements */ \
  X(SPARSE, sparse, 2) /* its elements are in other tensors */    \
  X(HOSTED, hosted, 4) /* the host has its elements */
enum {
#define X(NAME, name, bit) FORM_##NAME = bit,
  TENSOR_FORMS(X)
#undef X
  /* forms without memory: only shape, strides and dtype; no code reads or writes elements */
  FORM_ABSENT = FORM_META
};

struct Tensor {
  int32_t refs;
  uint32_t magic; /* TENSOR_MAGIC while alive */
  uint8_t dtype;
  uint8_t ndim;
  uint8_t flags;
  uint8_t cap;       /* dims that fit at `sizes` */
  uint8_t block_cap; /* dims that fit in the block itself */
  uint8_t form;
  int32_t output_nr;
  Storage *storage;
  Node *grad_fn;    /* owned */
  Version *version; /* NULL: 0 and unshared */
  Meta *meta;
  int64_t *sizes, *strides; /* in elements; in the block, or separate after the rank grew */
  int32_t noted;            /* 0, or the id of the host's object for it, dropped with it */
  int64_t offset;           /* in elements */
  int64_t numel;
  int64_t dims[];
};

#define TENSOR_MAGIC 0x70677431u

static inline DType tensor_dtype(const Tensor *t) { return (DType)t->dtype; }
/* State of reads of FORM_HOSTED elements. READS_REFUSED: a read is an error at once. READS_NOTED: a
 * read sets READS_FOUND, and the op's caller refuses unless the host has the result too. See
 * ops/dispatch.c. */
typedef enum { READS_REFUSED, READS_NOTED, READS_FOUND } HiddenReads;
extern HiddenReads hidden_reads;
/* Handles a read of t's bytes that are no elements: FORM_HOSTED, or lazy, which is an error of an
 * op that skipped the door. */
void tensor_unusual_read(const Tensor *t);
/* The address of the elements, unchecked: for new tensors, or while no tensor is unusual. */
static inline char *tensor_memory(const Tensor *t) {
  return t->storage->bytes->data + t->offset * dtype_bytes(tensor_dtype(t));
}
/* The elements of t, which is not lazy. */
static inline char *tensor_data(const Tensor *t) {
  if (__builtin_expect(t->storage->bytes->form | (t->flags & FLAGS_LAZY), 0))
    tensor_unusual_read(t);
  return tensor_memory(t);
}
/* The bytes of t. The caller conjugates or negates lazy elements itself. */
static inline char *tensor_bytes(const Tensor *t) {
  if (__builtin_expect(t->storage->bytes->form, 0)) tensor_unusual_read(t);
  return tensor_memory(t);
}
/* Whether a handle is a live tensor's. An invalid handle may lie outside memory. */
static inline bool tensor_is(const void *handle) {
#ifdef __wasm__
  uint64_t end = (uint64_t)__builtin_wasm_memory_size(0) << 16;
  if ((uint64_t)(uintptr_t)handle + sizeof(Tensor) > end) return false;
#endif
  return handle && ((const Tensor *)handle)->magic == TENSOR_MAGIC;
}
static inline DType tensor_grad_dtype(const Tensor *t) {
  return (DType)(t->meta && t->meta->grad_dtype ? t->meta->grad_dtype - 1 : t->dtype);
}
static inline bool is_wrapped(const Tensor *t) { return t->flags & FLAG_WRAPPED; }
static inline bool is_cached(const Tensor *t) { return t->flags & FLAG_CACHED && caching; }
static inline bool tensor_absent(const Tensor *t) {
  return __builtin_expect(t->form & FORM_ABSENT, 0);
}
static inline const char *device_name(const Tensor *t) { return tensor_absent(t) ? "meta" : "cpu"; }

/* --- life --- */
void tensor_retain(Tensor *t);
void tensor_release(Tensor *t); /* NULL is fine */
/* The temporary pool. pool_release drops everything above the mark, except `keep` (may be NULL),
 * which moves to the pool below. */
int32_t pool_mark(void);
void pool_release(int32_t mark, Tensor *keep);
void pool_keep(int32_t mark, int n, Tensor *const *kept); /* nothing after a failure */
Tensor *pool_push(Tensor *t); /* gives the caller's reference to the pool */
Meta *tensor_meta(Tensor *t); /* makes it if needed; NULL on OOM */

/* --- making --- */
/* The form of new tensors: FORM_ABSENT, or 0 for tensors with elements. The door sets it for an op
 * from the op's arguments. */
extern int32_t form_made;
extern int32_t form_default; /* for factories called without a device */
/* Evaluates `made` with form_made set to `form`. */
#define WITH_FORM(form, made)        \
  ({                                 \
    int32_t outer_form_ = form_made; \
    form_made = (form);              \
    __typeof__(made) made_ = (made); \
    form_made = outer_form_;         \
    made_;                           \
  })
/* Uninitialised and contiguous. */
Tensor *tensor_empty(int ndim, const int64_t *sizes, DType dtype);
Tensor *tensor_empty_strided(int ndim, const int64_t *sizes, const int64_t *strides, DType dtype);
/* Uninitialised, with the dense layout of `like` where it is non-overlapping and dense. */
Tensor *tensor_empty_like(const Tensor *like, DType dtype);
Tensor *tensor_none_of(DType dtype); /* a vector without elements */
Tensor *tensor_zeros(int ndim, const int64_t *sizes, DType dtype);
Tensor *tensor_full(int ndim, const int64_t *sizes, DType dtype, double value);
/* 0-dim numbers. The wrapped ones promote as host numbers do, and always have an element. */
Tensor *tensor_number(double value, DType dtype);
Tensor *tensor_wrapped_f(double value);
Tensor *tensor_wrapped_i(int64_t value);
Tensor *tensor_wrapped_b(bool value);
Tensor *tensor_wrapped_c(complex_f64 value);
/* Same storage, other geometry; no history, no base, own version counter unless shared below. */
Tensor *tensor_alias(Tensor *t, int ndim, const int64_t *sizes, const int64_t *strides,
                     int64_t offset);
/* The part of t that starts at `start` along dim, without history. */
Tensor *tensor_part(Tensor *t, int64_t dim, int64_t start, int64_t length);
/* A tensor with t's elements that no later write changes. Its storage begins with them and holds no
 * others. No history. */
Tensor *tensor_snapshot(Tensor *t);

/* --- writing --- */
/* Call before writing elements of t. `whole`: all of them are overwritten, and no alias of t is
 * read in between; a storage that t covers may then get new bytes. False on OOM. */
bool tensor_write_begin(Tensor *t, bool whole);
/* Swaps the bytes of dst and src where that is not observable (same dtype, both contiguous and
 * covering their storage, neither exported, src not aliased). False: nothing done, copy instead. */
bool tensor_steal_bytes(Tensor *dst, Tensor *src);
/* For a writable array of the host: keeps the bytes in place until tensor_unexport. */
bool tensor_export(Tensor *t);
void tensor_unexport(Tensor *t);
/* Keeps the bytes in place for a program that gets their address, until storage_unpin, or for
 * good. */
bool tensor_pin(Tensor *t);
void storage_unpin(Storage *s, bool for_good);
/* A vector of bytes in whole pages of the host's memory, which never move, for a file that the host
 * maps over them. When the storage has no more references, the host gets the id; it takes the file
 * away and calls storage_unmap. */
Tensor *tensor_mapped(int64_t n_bytes, int64_t page, int32_t id);
void storage_unmap(Storage *s);
/* Versions: each in-place write increments the version. */
void tensor_share_version(Tensor *t, Tensor *with);
void tensor_bump_version(Tensor *t);
void tensor_set_version(Tensor *t, uint32_t version);
void tensor_set_cached(Tensor *t, bool cached);
uint32_t tensor_version(const Tensor *t);

/* --- geometry --- */
bool tensor_set_geometry(Tensor *t, int ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t offset);
/* The number of bytes that a geometry needs, 0 without elements; -1 and an error on overflow. */
int64_t storage_need(int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                     DType dtype);
/* Grows the storage, keeping its contents; fails while an array of the host shows the memory. */
bool storage_grow(Storage *s, int64_t n_bytes);
/* Makes t contiguous with these sizes; grows the storage if needed. */
bool tensor_resize(Tensor *t, int ndim, const int64_t *sizes);
bool tensor_is_contiguous(const Tensor *t);
bool tensor_is_dense(const Tensor *t);       /* non-overlapping and dense */
bool tensor_covers_storage(const Tensor *t); /* dense, from offset 0 to the end */
bool tensor_same_shape(const Tensor *a, const Tensor *b);
/* Whether two tensors share memory; a snapshot and its original do until one is written to. */
bool tensor_same_memory(const Tensor *a, const Tensor *b);
bool sizes_equal(int na, const int64_t *a, int nb, const int64_t *b);
/* sets ERR_RUNTIME and returns -1 on overflow or a negative size */
int64_t sizes_numel(int ndim, const int64_t *sizes);
void sizes_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides);
/* Broadcasts b into (nd, out); PyTorch's error if impossible. */
bool sizes_broadcast(int *nd, int64_t *out, int nb, const int64_t *b);
bool sizes_expandable(int from_n, const int64_t *from, int to_n, const int64_t *to);
/* dim in [-n, n) made non-negative; n = max(ndim,1). IndexError and -1 otherwise. */
int64_t dim_wrap(int64_t dim, int ndim);
/* t.size(dim); -1 with the error, always for 0-dim tensors. */
int64_t tensor_size(const Tensor *t, int64_t dim);
/* "[2, 3]" into a rotating static buffer, for messages. */
const char *sizes_text(int ndim, const int64_t *sizes);
const char *shape_text(const Tensor *t);

/* --- elements --- */
/* False with PyTorch's error for an absent tensor, whose elements read as 0. */
bool tensor_readable(const Tensor *t);
double tensor_get_f(const Tensor *t, int64_t element_offset); /* from the tensor's first element */
int64_t tensor_get_i(const Tensor *t, int64_t element_offset);
complex_f64 tensor_get_c(const Tensor *t, int64_t element_offset);
void tensor_set_f(Tensor *t, int64_t element_offset, double v);
void tensor_set_i(Tensor *t, int64_t element_offset, int64_t v);
void element_store_f(char *at, DType d, double v);
void element_store_i(char *at, DType d, int64_t v);
void element_store_c(char *at, DType d, complex_f64 v);
double element_load_f(const char *at, DType d); /* the real part of a complex number */
int64_t element_load_i(const char *at, DType d);
complex_f64 element_load_c(const char *at, DType d);

/* Whether a host number fits this type; PyTorch's error if not. */
bool element_number_fits(const Tensor *number, DType d);
bool element_number_fits_f(double v, DType d);

int64_t tensor_live_count(void);
extern bool inference_mode; /* new tensors are inference tensors */
/* Called at every increment; may be NULL. */
extern void (*version_written)(Version *v);

/* Functions that release the tape's and the host's objects of a dead tensor. Each is set before the
 * first object of its kind is made. */
typedef struct {
  void (*of_node)(Node *n);
  void (*of_object)(int32_t id);  /* the host's object */
  void (*of_retained)(Tensor *t); /* the hook at t's node that fills .grad */
  void (*of_dual)(Tensor *t);
  void (*of_trail)(Version *v);
} LettingGo;
extern LettingGo letting_go;

/* The number of entered vmap levels and live batched tensors: while 0, calls are not checked. */
extern int32_t vmap_concerns;
/* The number of live tensors with FLAGS_LAZY or a form: while 0, no code checks for them. */
extern int32_t unusual_tensors;
/* The number of live tensors of FORM_HOSTED. */
extern int32_t hosted_tensors;
/* Sets FLAGS_LAZY of v, a tensor just made. */
void tensor_set_lazy(Tensor *v, int flags);
/* Sets v's form, bits of FORM_. */
void tensor_set_form(Tensor *v, int form);
/* Swaps the storages but not the geometries. */
void tensor_swap_storages(Tensor *a, Tensor *b);

/* --- sparse tensors --- */
static inline bool is_sparse(const Tensor *t) { return t && t->form & FORM_SPARSE; }
static inline bool tensor_is_strided(const Tensor *t) { return !is_sparse(t); }
static inline Layout tensor_layout(const Tensor *t) {
  return is_sparse(t) ? (Layout)t->meta->sparse->layout : LAYOUT_STRIDED;
}
/* A sparse tensor of these sizes; retains the parts, which hold its elements. */
Tensor *tensor_sparse(int ndim, const int64_t *sizes, Sparse parts);
/* Sets the parts of x. Lazy parts are replaced by the result of computed_part. */
bool tensor_set_parts(Tensor *x, Sparse parts);
/* Sets the parts of x to those of v; a strided v has none. */
bool tensor_take_parts(Tensor *x, const Tensor *v);
extern Tensor *(*computed_part)(Tensor *lazy);

#endif
