/* The public face of the engine: all that a host may use. The memory is the host's (imported);
 * the binary imports nothing else but what is declared here.
 *
 * A call. The host writes the frame (pg_frame) and calls pg_call, which binds the arguments to
 * the first fitting row of the op's name, runs it, and returns
 *   > 0   the handle of the one tensor that came out (the host owns a reference), plus
 *   PG_PENDING if there are
 *         warnings or dropped callbacks to collect,
 *   0     the result is described in the frame (also with PG_PENDING),
 *   PG_TOO_LONG   the call was not made, since it would take long: the host makes it anew, in the
 *         mode PG_LONG, letting its other threads run,
 *   < 0   minus a Status; the message is at `message`.
 * pg_call2 is the same for a call of at most two positional arguments, which come as parameters
 * instead of in the frame; what it returns says a little more, so that the host finds the common
 * case by one comparison.
 *
 * A handle is the address of a tensor's header, whose fields a host may read (pg_layout).
 * Between calls it may write two: the reference count, the header's first word, to own one
 * reference more; and the gradient in a tensor's meta, to zero, which makes the reference to the
 * gradient the host's. */
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
  PG_PREPARED = 4,         /* of pg_call2 alone */
  PG_LONG = 8,             /* other threads of the host run meanwhile: see most_effort */
  PG_MODE_GRAD = 1,        /* bits of `modes`: calls are recorded, */
  PG_MODE_INFERENCE = 2,   /* but not in inference mode; */
  PG_MODE_ANY_LAYOUT = 4,  /* a gradient is kept in whatever layout it came; */
  PG_MODE_ONE_THREAD = 8,  /* remembered for the host, nothing to the engine; */
  PG_MODE_NO_FORWARD = 16, /* tangents are left out; */
  PG_MODE_AUTOCAST = 32,   /* ops compute in a type of their own (ops/autocast.h), in bfloat16, */
  PG_MODE_FLOAT16 = 64,    /* or in float16; */
  PG_MODE_CAST_ANEW = 128, /* and no cast of a parameter is kept; */
  PG_MODE_META = 256,      /* factories that are told no device make tensors of meta; */
  PG_MODE_DISPATCH = 512,  /* the host is asked of every op; */
  PG_MODE_VIEW_REPLAY = 1024, /* views are recorded anew as they were made. */
  /* the first of the bits that say which levels of vmap the thread is in: level 1 */
  PG_MODE_LEVELS = 11
};
/* Marks on results, above all addresses: those of the binary have 32 bits, those of a native build,
 * which has no hosts but tests, up to 56. */
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
  /* the first of n_release handles that the host lets go of; the others: release */
  int64_t first_release;
  int64_t slots[PG_MAX_ARGS];    /* int, double bits, handle, or address | count << 32 of a list */
  int32_t keywords[PG_MAX_ARGS]; /* pg_intern ids, one a keyword argument */
  int64_t release[PG_MAX_RELEASE];
  int32_t result_tag, result_count;
  int64_t result;               /* by tag: int, double bits, address of a list or text */
  const char *message;          /* of the last failure */
  int64_t host_in, host_out;    /* of a callback: where its arguments stand and its results go */
  int32_t host_n_out, host_cap; /* how many results there are, and may be */
  int32_t modes;  /* of the calling thread, PG_MODE_ bits: the host writes it between calls */
  int32_t work;   /* of the last backward: elements of its gradients, and some for each node */
  int32_t thread; /* a number of the calling thread's own, 0 the first; written like its modes */
  /* the parameters of pg_host once more, for hosts that read memory faster, */
  int32_t host_kind, host_id, host_n;
  int32_t host_first; /* and the first handle */
  /* callbacks that may run within each other, as many as the host's stack holds: the host writes
   * it once */
  int32_t most_nested;
  int32_t n_warnings; /* that pg_warning has to give, as of the end of the last call */
  /* ids of callbacks that are needed no more, and where: the host takes them and writes 0 */
  int32_t n_dropped;
  const int32_t *dropped;
  int32_t dual_levels; /* of forward mode, that are entered: 0 or 1 */
  /* The effort (call/effort.h) above which a call without the mode PG_LONG does nothing but return
   * PG_TOO_LONG. The host writes it once; 0 bounds nothing. */
  int32_t most_effort;
  _Alignas(16) char data[PG_DATA_BYTES]; /* lists and texts of arguments */
} PgFrame;

PgFrame *pg_frame(void);
int64_t pg_call(void);
/* pg_call for JavaScript, where an int64_t is a BigInt: Firefox 153 now and then runs a call twice
 * whose result is one. */
double pg_call_double(void);
/* head: row | arguments << 32 | their two tags << 40 | mode << 48 | PG_HEAD. `dead` is a handle
 * to release first, or 0; those in the frame's list are released too. With the mode PG_PREPARED,
 * `a` is the address of a frame, up to its keywords, that says all else; it has this mode too,
 * stays as it is during the call, and may serve many. Returns the handle of a fresh tensor that
 * is no view, or
 *   PG_SELF   for the first argument, without a reference;
 *   PG_DESCRIBED | what pg_call would have returned, when that is 0 or has PG_PENDING;
 *   PG_VIEW | handle  for a fresh differentiable view;
 *   PG_FAILED | the Status of a failure;
 *   PG_TOO_LONG  as pg_call does; `head` is in the frame's result then.
 * All but the first are at least PG_PENDING. A host that passes parameters and result in one place
 * finds `head` there after a trap, which is none of these. */
int64_t pg_call2(int64_t head, int64_t dead, int64_t a, int64_t b);
/* Row i as "word|word schema", with the words of call/row.h, or NULL past the end. */
const char *pg_describe(int32_t i);
/* The id of the name (of a keyword) that stands at the start of the frame's data. */
int32_t pg_intern(void);
/* Value k of the layout of a tensor and the frame, the first of them PG_ABI, -1 past the end;
 * and the names of all, in order, with a space between. */
int32_t pg_layout(int32_t k);
const char *pg_layout_names(void);
/* Memory that stays the host's: for lists and texts of calls that are longer than the frame's
 * data. NULL: there is no more. */
void *pg_room(uint32_t n_bytes);
/* The name of a Status, or NULL. */
const char *pg_status_name(int32_t status);
/* The oldest pending warning, or NULL. */
const char *pg_warning(void);
/* Live tensors and nodes; for tests. Releases nothing. */
int64_t pg_live_count(void);
/* Releases what is in the frame's list: tensors, nodes, and (the handle plus one) exports,
 * (a storage's plus two) pins. */
void pg_release(void);

/* The one import: run the host's callback `id` on the n handles at frame.host_in. Results, at
 * most frame.host_cap, go to frame.host_out, their number to frame.host_n_out. Returns -1 if the
 * callback raised, or -1 is that number. */
PG_IMPORT(pg_host)
int32_t pg_host(int32_t kind, int32_t id, int32_t n);

#endif
