/* Tensors: strided views over reference-counted storages.
 *
 * Ownership. A Tensor made by any function here or in op.h belongs to the temporary pool: it is
 * released when the crossing (or backward node) that made it ends, unless somebody called
 * tensor_retain. Arguments are borrowed. So code composed of ops neither retains nor releases.
 *
 * Bytes are copy-on-write (bytes.h). Aliases share a Storage. Snapshots share its Bytes, or a part
 * of them. Whoever writes calls tensor_write_begin first, which moves the storage to other bytes, or
 * aside the parts that the write would change; the address of elements is taken afterwards. While
 * the memory is the host's too (`exports`: of arrays over it, or since a program got its address) a
 * snapshot is a real copy, or shares the storage's latest one if the elements are the same. */
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
  int32_t exports; /* how many arrays and pins, and PINNED */
  int32_t pins;    /* how many addresses the host has of it; they keep the storage, not its bytes */
  Bytes *bytes;
  Bytes *copy; /* owned, while it is exported: the elements as they were when last saved; or NULL */
  bool retyped; /* view(dtype) has shown it: a NaN may be bits of other elements */
};

enum { PINNED = 1 << 30 }; /* its address was given away for good; the host knows the number too */

/* Shared by a tensor, its views and detach(); not by `.data`. */
typedef struct {
  int32_t refs;
  uint32_t value;
  struct Trail *trail; /* anomaly.h: what incremented it; NULL unless that is recorded */
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

/* How elements stand: at strides, or only some of them, beside their places. X(NAME, as hosts call
 * it, as messages do, its legacy types) */
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

/* Of a tensor of FORM_SPARSE: the elements that are not left out. COO: `indices` has a column and
 * `values` a row for each, and dimensions behind sparse_dim are those of the rows. The others
 * compress rows or columns: element k of them is from indices[k] to indices[k + 1], and `plain` has
 * the other index; of BSR and BSC what stands there are blocks. */
typedef struct {
  Tensor *values, *indices, *plain; /* owned; plain NULL of COO */
  uint8_t layout, sparse_dim;
  bool coalesced; /* of COO: the columns are in order, and each is there once */
} Sparse;

/* What only some tensors need: leaves with gradients, views, tensors with hooks. */
typedef struct {
  Tensor *grad;          /* owned */
  Node *accumulator;     /* weak: the node clears it when it dies */
  bool owns_accumulator; /* it is another leaf's, and owned */
  Hook *hooks;           /* on the gradient of this tensor (leaf: pre-hooks of its accumulator) */
  Hook *post_hooks;      /* after accumulation */
  Tensor *base;          /* owned; non-NULL for a differentiable view */
  Dual *dual;            /* owned */
  Tensor *stands_for;    /* of a copy for one call, in float or no longer lazy, of what; owned */
  uint32_t view_version; /* the version at which grad_fn of a view was right */
  uint8_t view_origin;
  uint8_t grad_dtype; /* of `grad`, plus one (so DT_NONE + 1 is any); 0: the tensor's own */
  bool retains_grad;
  /* of a batched tensor: which dimension of its argument vmap was told to map */
  uint8_t batch_dim;
  Tensor *value;   /* of a batched tensor (vmap.h): what it is a slice of; owned */
  uint32_t levels; /* of vmap, a bit each */
  Sparse *sparse;  /* of a tensor of FORM_SPARSE; owned */
  Node *made_by;   /* of a view that is to be recorded anew as it was made (history.c); owned */
} Meta;

/* Tensor.flags. Hosts read the numbers by name: flag_requires_grad. */
#define TENSOR_FLAGS(X)                                                                    \
  X(REQUIRES_GRAD, requires_grad, 1) /* as a leaf, or because grad_fn is set */            \
  X(WRAPPED, wrapped, 2)             /* a host number: has the lowest rank in promotion */ \
  X(INFERENCE, inference, 4)                                                               \
  X(PARAMETER, parameter, 8)                                                               \
  X(CACHED, cached, 16)    /* a cache keeps it, whose reference does not count: caching */ \
  X(CONJ, conj, 32)        /* its elements are the conjugates of the bytes' */             \
  X(NEG, neg, 64)          /* they are the negatives */                                    \
  X(BATCHED, batched, 128) /* the highest, so that one comparison finds it */
enum {
#define X(NAME, name, bit) FLAG_##NAME = bit,
  TENSOR_FLAGS(X)
#undef X
};

/* With one of these, elements are still to be computed of the bytes: see OP_ENTERED. */
enum { FLAGS_LAZY = FLAG_CONJ | FLAG_NEG };

extern bool caching; /* whether FLAG_CACHED says anything */

/* Tensor.form: what a tensor is that has no strided elements in memory; 0: it has them. */
#define TENSOR_FORMS(X)                                              \
  X(META, meta, 1)     /* of the device meta: it has no elements */  \
  X(SPARSE, sparse, 2) /* its elements are those of other tensors */ \
  X(HOSTED, hosted, 4) /* its elements are the host's business */
enum {
#define X(NAME, name, bit) FORM_##NAME = bit,
  TENSOR_FORMS(X)
#undef X
  /* those whose storage is none, which have shapes, strides and types alone: nothing reads or
   * writes elements of theirs */
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
  int64_t *sizes, *strides; /* in elements; in the block, or apart when the rank grew */
  int32_t noted;            /* 0, or the id of what the host has noted on it, which goes with it */
  int64_t offset;           /* in elements */
  int64_t numel;
  int64_t dims[];
};

#define TENSOR_MAGIC 0x70677431u

static inline DType tensor_dtype(const Tensor *t) { return (DType)t->dtype; }
/* Whether the address of hidden elements was asked for: whoever did is to be refused, unless the
 * host has what it makes of them as well. Where nobody notes it, it is an error at once. See
 * ops/dispatch.c. */
typedef enum { READS_REFUSED, READS_NOTED, READS_FOUND } HiddenReads;
extern HiddenReads hidden_reads;
/* The address of t's bytes was asked for, and they are no elements: hidden ones, or lazy ones, which
 * is an error of an op that did not enter by the door. */
void unusual_read(const Tensor *t);
/* Of a fresh tensor, or where no tensor is unusual. */
static inline char *tensor_memory(const Tensor *t) {
  return t->storage->bytes->data + t->offset * dtype_bytes((DType)t->dtype);
}
/* The elements of t, which is not lazy. */
static inline char *tensor_data(const Tensor *t) {
  if (__builtin_expect(t->storage->bytes->form | (t->flags & FLAGS_LAZY), 0)) unusual_read(t);
  return tensor_memory(t);
}
/* The bytes of t. The caller conjugates or negates lazy elements itself. */
static inline char *tensor_bytes(const Tensor *t) {
  if (__builtin_expect(t->storage->bytes->form, 0)) unusual_read(t);
  return tensor_memory(t);
}
/* Whether a handle is that of a live tensor. One that a host made up may lie outside of memory. */
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
void pool_keep(int32_t mark, int n, Tensor *const *kept); /* the same for several, if none failed */
Tensor *pool_push(Tensor *t); /* gives a reference of the caller's to the pool */
Meta *tensor_meta(Tensor *t); /* makes it if needed; NULL on OOM */

/* --- making --- */
/* What fresh tensors are: of FORM_ABSENT, or 0 for those with elements. The door sets it for an op
 * as the op's arguments are. */
extern int32_t form_made;
extern int32_t form_default; /* the same of factories that are told no device */
/* What `made` is with form_made set to `form`. */
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
/* 0-dim numbers. The wrapped ones take part in promotion as host numbers do, and always have their
 * element. */
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
/* The saved form of t: a tensor of its elements that no later write changes. Its storage has no
 * other elements, and begins with them. No history. */
Tensor *tensor_snapshot(Tensor *t);

/* --- writing --- */
/* Call before writing elements of t. `whole`: all of them are overwritten, and not read through an
 * alias of t afterwards; if t covers its storage, that may get new bytes then. False on OOM. */
bool tensor_write_begin(Tensor *t, bool whole);
/* Gives dst the bytes of src when no one can tell (same dtype, both contiguous and covering their
 * storage, dst not exported). False: nothing done, copy instead. */
bool tensor_steal_bytes(Tensor *dst, Tensor *src);
/* For a writable array of the host: its bytes stay in place until the host releases the export. */
bool tensor_export(Tensor *t);
void tensor_unexport(Tensor *t);
/* Keeps the bytes in place for a program that gets the address of elements, until the host ends the
 * pin, or for good. */
bool tensor_pin(Tensor *t);
void storage_unpin(Storage *s, bool for_good);
/* Versions: each write in place counts one. */
void tensor_share_version(Tensor *t, Tensor *with);
void tensor_bump_version(Tensor *t);
void tensor_set_version(Tensor *t, uint32_t version);
void tensor_set_cached(Tensor *t, bool cached);
uint32_t tensor_version(const Tensor *t);

/* --- geometry --- */
bool tensor_set_geometry(Tensor *t, int ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t offset);
/* The bytes that a geometry reaches to, 0 without elements; -1 and an error if they cannot be
 * counted. */
int64_t storage_need(int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                     DType dtype);
/* Makes room, keeping what is there; fails where an array of the host shows the memory. */
bool storage_grow(Storage *s, int64_t n_bytes);
/* Contiguous with these sizes; the storage grows if it must. */
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
/* t.size(dim), and -1 with its error: 0-dim tensors have no sizes. */
int64_t tensor_size(const Tensor *t, int64_t dim);
/* "[2, 3]" into a rotating static buffer, for messages. */
const char *sizes_text(int ndim, const int64_t *sizes);
const char *shape_text(const Tensor *t);

/* --- elements --- */
/* PyTorch's error, and false, for an absent tensor, of which these give 0. */
bool tensor_readable(const Tensor *t);
double tensor_get_f(const Tensor *t, int64_t element_offset); /* from the tensor's first element */
int64_t tensor_get_i(const Tensor *t, int64_t element_offset);
complex_f64 tensor_get_c(const Tensor *t, int64_t element_offset);
void tensor_set_f(Tensor *t, int64_t element_offset, double v);
void tensor_set_i(Tensor *t, int64_t element_offset, int64_t v);
void element_store_f(char *at, DType d, double v);
void element_store_i(char *at, DType d, int64_t v);
void element_store_c(char *at, DType d, complex_f64 v);
double element_load_f(const char *at, DType d); /* of a complex number the real part */
int64_t element_load_i(const char *at, DType d);
complex_f64 element_load_c(const char *at, DType d);

/* Whether a host number can be given to a tensor of this type; PyTorch's error if not. */
bool number_fits(const Tensor *number, DType d);
bool number_fits_f(double v, DType d);

int64_t tensor_live_count(void);
extern bool inference_mode; /* what tensors are made in: it makes inference tensors */
/* Told of every increment; NULL: nobody wants to know. */
extern void (*version_written)(Version *v);

/* What the tape and the host have at a tensor is theirs: how it is let go when the tensor dies.
 * Each is set before the first of its kind is made. */
typedef struct {
  void (*of_node)(Node *n);
  void (*of_object)(int32_t id);  /* of the host */
  void (*of_retained)(Tensor *t); /* a hook at its node that fills .grad */
  void (*of_dual)(Tensor *t);
  void (*of_trail)(Version *v);
} LettingGo;
extern LettingGo letting_go;

/* Levels of vmap that are entered and batched tensors that are alive: while 0, no call needs a
 * look. */
extern int32_t vmap_concerns;
/* Tensors alive with one of FLAGS_LAZY or of a form: while 0, nobody needs to look for them. */
extern int32_t unusual_tensors;
/* Tensors alive of FORM_HOSTED. */
extern int32_t hosted_tensors;
/* Gives v, which nobody has seen, those of FLAGS_LAZY. */
void tensor_set_lazy(Tensor *v, int flags);
/* Makes v one of these forms, bits of FORM_. */
void tensor_set_form(Tensor *v, int form);
/* Without a change of their geometry. */
void tensor_swap_storages(Tensor *a, Tensor *b);

/* --- sparse tensors --- */
static inline bool is_sparse(const Tensor *t) { return t && t->form & FORM_SPARSE; }
static inline Layout tensor_layout(const Tensor *t) {
  return is_sparse(t) ? (Layout)t->meta->sparse->layout : LAYOUT_STRIDED;
}
/* A tensor of these sizes without memory, whose elements are in the parts, which it keeps. */
Tensor *tensor_sparse(int ndim, const int64_t *sizes, Sparse parts);
/* Gives x, which is sparse, other parts. None is lazy: in place of such a one it has what
 * computed_part makes of it. */
bool tensor_set_parts(Tensor *x, Sparse parts);
extern Tensor *(*computed_part)(Tensor *lazy);

#endif
