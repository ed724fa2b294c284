/* The engine's interface to hosts. The host owns the memory (imported); the binary's other imports
 * are declared here.
 *
 * A call. The host writes the frame (pg_frame) and calls pg_call, which binds the arguments to
 * the first fitting row of the op's name, runs it, and returns
 *   > 0   the handle of the resulting tensor (the host owns a reference), plus PG_PENDING if there
 *         are warnings or dropped callbacks to collect,
 *   0     the result is described in the frame (also with PG_PENDING),
 *   PG_TOO_LONG   the call was not made, because it would take long: the host repeats it in the
 *         mode PG_LONG and lets its other threads run,
 *   < 0   minus a Status; the message is at `message`.
 * pg_call2 makes a call of at most two positional arguments, passed as parameters instead of in the
 * frame. Its return value tells more, so that the host recognises the common case by one
 * comparison.
 *
 * A handle is the address of a tensor's header, whose fields a host may read (pg_layout). Between
 * calls it may write two of them: increment the reference count, the header's first word, to own
 * another reference; and set the gradient in a tensor's meta to zero, to take over the reference to
 * the gradient. */
#ifndef PG_H
#define PG_H

#include <stdint.h>

#if defined(__EMSCRIPTEN__)
#define PG_EXPORT(name) __attribute__((export_name(#name), used))
#define PG_IMPORT(name) __attribute__((import_module("env"), import_name(#name)))
#else
#define PG_EXPORT(name)
#define PG_IMPORT(name)
#endif

enum {
  PG_ABI = 3,
  PG_MAX_ARGS = 16,
  PG_MAX_RELEASE = 62,
  PG_DATA_BYTES = 1 << 16,
  PG_INPLACE = 1, /* mode bits */
  PG_METHOD = 2,
  PG_PREPARED = 4,            /* pg_call2 only */
  PG_LONG = 8,                /* other threads of the host run meanwhile: see most_effort */
  PG_MODE_GRAD = 1,           /* bits of `modes`: calls are recorded */
  PG_MODE_INFERENCE = 2,      /* inference mode: calls are not recorded */
  PG_MODE_ANY_LAYOUT = 4,     /* gradients keep the layout they arrive in */
  PG_MODE_ONE_THREAD = 8,     /* kept for the host, ignored by the engine */
  PG_MODE_NO_FORWARD = 16,    /* no tangents are computed */
  PG_MODE_AUTOCAST = 32,      /* autocast (ops/autocast.h) to bfloat16 */
  PG_MODE_FLOAT16 = 64,       /* or to float16 */
  PG_MODE_CAST_ANEW = 128,    /* casts of parameters are not cached */
  PG_MODE_META = 256,         /* factories without a device make meta tensors */
  PG_MODE_DISPATCH = 512,     /* the host may answer every op */
  PG_MODE_VIEW_REPLAY = 1024, /* views are rebuilt by their own nodes */
  /* the number of the first bit for the thread's levels of vmap: level 1 */
  PG_MODE_LEVELS = 11
};
/* Marks on results, in bits above addresses, which have 32 bits in the binary and up to 56 in
 * native builds (only for tests). */
#if UINTPTR_MAX > UINT32_MAX
#define PG_MARK(k) ((int64_t)1 << (56 + (k)))
#else
#define PG_MARK(k) ((int64_t)1 << (32 + (k)))
#endif
#define PG_PENDING PG_MARK(0)
#define PG_DESCRIBED PG_MARK(1)
#define PG_VIEW PG_MARK(2)
#define PG_SELF PG_MARK(3)
#define PG_FAILED PG_MARK(4)
#define PG_TOO_LONG PG_MARK(5)
#define PG_HEAD ((int64_t)1 << 62)

typedef struct {
  int32_t row; /* the first row of the op's name */
  uint8_t n_positional, n_keyword, mode, n_release;
  uint64_t tags; /* four bits an argument, positional ones first, then keywords (Tag in call.h) */
  /* the first of n_release handles to release; the others are in `release` */
  int64_t first_release;
  int64_t slots[PG_MAX_ARGS];    /* int, double bits, handle, or address | count << 32 of a list */
  int32_t keywords[PG_MAX_ARGS]; /* a pg_intern id for each keyword argument */
  int64_t release[PG_MAX_RELEASE];
  int32_t result_tag, result_count;
  int64_t result;               /* by tag: int, double bits, address of a list or text */
  const char *message;          /* of the last failure */
  int64_t host_in, host_out;    /* a callback's: addresses of its arguments and for its results */
  int32_t host_n_out, host_cap; /* the number of results, and its limit */
  int32_t modes;  /* PG_MODE_ bits of the calling thread, written by the host between calls */
  int32_t work;   /* the last backward's: elements of its gradients, plus some for each node */
  int32_t thread; /* the calling thread's number, from 0; written like `modes` */
  /* copies of pg_host's parameters, for hosts that read memory faster, */
  int32_t host_kind, host_id, host_n;
  int32_t host_first; /* and the first handle */
  /* the number of nested callbacks that the host's stack allows; the host writes it once */
  int32_t most_nested;
  int32_t n_warnings; /* warnings for pg_warning at the end of the last call */
  /* the number of dropped callbacks, and their ids; the host reads them and writes 0 */
  int32_t n_dropped;
  const int32_t *dropped;
  int32_t dual_levels; /* entered levels of forward mode: 0 or 1 */
  /* The effort (call/effort.h) above which a call without the mode PG_LONG only returns
   * PG_TOO_LONG. The host writes it once; 0: no limit. */
  int32_t most_effort;
  _Alignas(16) char data[PG_DATA_BYTES]; /* lists and texts of arguments */
} PgFrame;

PgFrame *pg_frame(void);
int64_t pg_call(void);
/* pg_call for JavaScript, where an int64_t is a BigInt: Firefox 153 sometimes runs a call twice
 * whose result is a BigInt. */
double pg_call_double(void);
/* head: row | arguments << 32 | their two tags << 40 | mode << 48 | PG_HEAD. `dead` is a handle
 * to release first, or 0; the handles in the frame's list are released too. With the mode
 * PG_PREPARED, `a` is the address of a frame, up to its keywords, that holds everything else; it
 * has this mode too, does not change during the call, and may serve many calls. Returns the handle
 * of a new tensor that is no view, or
 *   PG_SELF   for the first argument, without a reference;
 *   PG_DESCRIBED | the result of pg_call, if that is 0 or has PG_PENDING;
 *   PG_VIEW | handle  for a new differentiable view;
 *   PG_FAILED | the Status of a failure;
 *   PG_TOO_LONG  as pg_call does; `head` is in the frame's result then.
 * All but the first are at least PG_PENDING. A host that uses one place for parameters and result
 * finds `head` there after a trap, which equals none of these. */
int64_t pg_call2(int64_t head, int64_t dead, int64_t a, int64_t b);
/* Row i as "word|word schema", with the words of call/row.h, or NULL past the end. */
const char *pg_describe(int32_t i);
/* The id of the (keyword's) name at the start of the frame's data. */
int32_t pg_intern(void);
/* pg_layout: value k of the layout of a tensor and the frame, -1 past the end; value 0 is PG_ABI.
 * pg_layout_names: the names of all values in order, separated by spaces. */
int32_t pg_layout(int32_t k);
const char *pg_layout_names(void);
/* Memory for the host, never freed: for lists and texts of arguments that exceed the frame's data.
 * NULL: out of memory. */
void *pg_room(uint32_t n_bytes);
/* The name of a Status, or NULL. */
const char *pg_status_name(int32_t status);
/* The oldest pending warning, or NULL. */
const char *pg_warning(void);
/* Live tensors and nodes; for tests. Releases nothing. */
int64_t pg_live_count(void);
/* Releases the handles in the frame's list: tensors, nodes, exports (the handle plus one), pins (a
 * storage's address plus two). */
void pg_release(void);

/* The only import besides the memory: runs the host's callback `id` on the n handles at
 * frame.host_in. At most frame.host_cap results go to frame.host_out, their number to
 * frame.host_n_out. If the callback raised, returns -1 or sets that number to -1. */
PG_IMPORT(pg_host)
int32_t pg_host(int32_t kind, int32_t id, int32_t n);

#endif
