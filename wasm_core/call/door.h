/* The door of every op: each call of an op, by a host, by another op or by a gradient, enters the
 * op's function here and is reported to the watcher.
 *
 * An op's function begins with OP_ENTERED(t_mm, "mm", a, b), or VIEW_ENTERED if it takes lazy
 * tensors: one branch without a watcher. For a watcher, a row's call and the function that it runs
 * are one entry: the row comes first. A watcher may answer for the op: the function then returns,
 * and the door calls it again if its node is needed too (ops/dispatch.c). */
#ifndef PG_DOOR_H
#define PG_DOOR_H

#include "call/call.h"

/* An argument of a C function; `at` points to it during `enter`. */
typedef struct {
  int32_t tag; /* TAG_OTHER: a type unknown to hosts */
  const void *at;
} Argument;
/* Tags of types that only C has: an int, an enumeration, sizes preceded by their number, places for
 * results, and factors. */
enum { TAG_C_INT = 32, TAG_C_ENUM, TAG_C_WORDS, TAG_C_PLACES, TAG_C_FACTOR };

typedef struct {
  /* Returns the argument for `leave`, or ENTRY_ANSWERED. */
  int32_t (*enter)(const char *op, int n, const Argument *v);
  void (*leave)(int32_t entry);
} Watcher;
enum { ENTRY_ANSWERED = -2 };
extern const Watcher *watcher; /* for the calls of this crossing; NULL: none */
/* listener: the watcher of calls that are not answered. watcher_answers: `watcher` is another one,
 * which may answer. */
extern const Watcher *listener;
extern bool watcher_answers;
static inline void listen(const Watcher *who) {
  listener = who;
  if (!watcher_answers) watcher = who;
}
/* The next entry repeats the one of the running function. */
extern bool entered_again;

/* Functions that build the result of an answered call. If runs_body, the op's own body runs first,
 * for its node or because the host has not answered. `tensor` returns a tensor result; `number`
 * returns other results and fills result places. */
typedef struct {
  bool (*runs_body)(void);
  Tensor *(*tensor)(Tensor *body);
  intptr_t (*number)(intptr_t body);
} Answers;
extern const Answers *door_answers; /* set together with a watcher that answers */

/* An entry and the watcher that saw it, which also sees the leaving even if `watcher` has
 * changed. */
typedef struct {
  const Watcher *by; /* NULL: no watcher, nothing to undo */
  int32_t entry;
  int32_t form;           /* form_made before the entry */
  const Answers *answers; /* NULL: the op's body runs */
} DoorEntry;

/* Updates form_made for an op by one of its tensor arguments: an absent tensor sets its form and
 * returns true, as it is decisive; another tensor sets 0. NULL and host numbers change nothing. */
bool door_sets_form(int32_t *form, const Tensor *t);
/* Tells the watcher, and sets form_made by the arguments. */
void door_enter(DoorEntry *e, const char *op, int n, const Argument *v);
/* What an op does if an argument is sparse, in place of its own body; its result. */
typedef intptr_t SparseBody(const char *op, int n, const Argument *v);
/* NULL: the op refuses sparse arguments. See ops/sparse/bodies.def. */
extern SparseBody *(*door_sparse_body)(const char *op);
/* door_enter for ops whose own body takes strided tensors alone. Runs the op's SparseBody if an
 * argument is sparse; without one, fails with PyTorch's error. */
void door_enter_strided(DoorEntry *e, const char *op, int n, const Argument *v);
void door_leave(const DoorEntry *e);
static inline void door_left(const DoorEntry *e) {
  if (__builtin_expect(e->by != NULL, 0)) door_leave(e);
}

/* Macros that begin an op's function; `...` are its arguments, at most twelve. The bodies behind
 * OP_ENTERED and VIEW_ENTERED never see a sparse tensor, those behind ANY_ENTERED may. */
#define ANY_ENTERED(function, op, ...) ANY_ENTERED_AS(function(__VA_ARGS__), op, __VA_ARGS__)
#define VIEW_ENTERED(function, op, ...) VIEW_ENTERED_AS(function(__VA_ARGS__), op, __VA_ARGS__)
#define OP_ENTERED(function, op, ...) OP_ENTERED_AS(function(__VA_ARGS__), op, __VA_ARGS__)
/* For functions with more arguments; `call` is a call of the function with the same arguments. */
#define ANY_ENTERED_AS(call, op, ...) ENTERED_BY(door_enter, call, op, __VA_ARGS__)
#define VIEW_ENTERED_AS(call, op, ...) ENTERED_BY(door_enter_strided, call, op, __VA_ARGS__)
/* For ops that read elements: first converts the arguments in their variables. Autocast casts them;
 * a lazy tensor (FLAGS_LAZY) is replaced by a computed stand-in. */
#define OP_ENTERED_AS(call, op, ...)                                              \
  if (__builtin_expect((unusual_tensors | autocast_dtype) != 0, 0))               \
    WITH_PLACES(p_, door_prepare(op, N_ARGUMENTS(__VA_ARGS__), p_), __VA_ARGS__); \
  VIEW_ENTERED_AS(call, op, __VA_ARGS__)
#define ENTERED_BY(enter, call, op, ...)                                              \
  __attribute__((cleanup(door_left), unused)) DoorEntry entry_;                       \
  entry_.by = watcher; /* `enter` sets the rest */                                    \
  if (__builtin_expect(((uintptr_t)entry_.by | (uint32_t)unusual_tensors) != 0, 0)) { \
    enter(&entry_, op, N_ARGUMENTS(__VA_ARGS__),                                      \
          (Argument[]){EACH_ARGUMENT(ARGUMENT, COMMA, __VA_ARGS__)});                 \
    if (entry_.answers) return ANSWERED(call);                                        \
  }

#define GIVES(call, type) __builtin_types_compatible_p(__typeof__(call), type)
#define OF_TYPE(call, type, otherwise) __builtin_choose_expr(GIVES(call, type), call, otherwise)
#define ANSWERED(call)                                                          \
  ({                                                                            \
    Tensor *body_ = NULL;                                                       \
    intptr_t number_ = 0;                                                       \
    if (entry_.answers->runs_body()) {                                          \
      body_ = OF_TYPE(call, Tensor *, NULL);                                    \
      number_ = OF_TYPE(call, bool, 0);                                         \
      OF_TYPE(call, void, (void)0);                                             \
    }                                                                           \
    __builtin_choose_expr(GIVES(call, Tensor *), entry_.answers->tensor(body_), \
                          (__typeof__(call))entry_.answers->number(number_));   \
  })

/* The tensors of an argument, for code that may replace them. */
typedef struct {
  Tensor *one; /* NULL: no tensor */
  Tensors list;
  const Call *call; /* a host's call whose tensors the function reads itself */
} Place;
/* Sets PyTorch's error for an op that does not take t's layout. */
void *door_refuse_layout(const char *op, const Tensor *t);
bool door_prepare(const char *op, int n, Place *places);
/* False with PyTorch's error for an op that needs the elements of an absent tensor. */
bool door_needs_elements(const char *op);
/* The first row of that name; NULL: none. */
const Row *row_of_op(const char *op);
/* Functions of door_prepare in upper layers, since they run ops. The stand-ins that settle lazy
 * tensors last until the next entry is left. */
extern bool (*autocast_arguments)(const char *op, int n, Place *places);
extern bool (*door_settle_lazy)(int n, Place *places);
/* autocast_dtype: the type that autocast computes in, DT_F16 or DT_BF16; 0: off. autocast_keeps:
 * casts of parameters are cached. */
extern int32_t autocast_dtype;
extern bool autocast_keeps;
/* Evaluates `act`, a bool, on copies of the arguments in `places`, and writes them back. The copies
 * let functions keep their arguments in registers. */
#define WITH_PLACES(places, act, ...)                                                 \
  ({                                                                                  \
    Place places[] = {EACH_ARGUMENT(PLACE_OF, COMMA, __VA_ARGS__)}, *place_ = places; \
    bool given_ = (act);                                                              \
    EACH_ARGUMENT(FROM_PLACE, COMMA, __VA_ARGS__);                                    \
    given_;                                                                           \
  })
#define NO_LIST \
  (Tensors) { 0, NULL }
#define TENSOR_OF(x) _Generic((x), Tensor *: (x), default: NULL)
#define LIST_OF(x) _Generic((x), Tensors: (x), default: NO_LIST)
#define CALL_OF(x) _Generic((x), Call *: (x), const Call *: (x), default: NULL)
#define TO_TENSOR(x) *_Generic((x), Tensor *: &(x), default: &(Tensor *){NULL})
#define TO_LIST(x) *_Generic((x), Tensors: &(x), default: &NO_LIST)
#define PLACE_OF(x) {TENSOR_OF(x), LIST_OF(x), CALL_OF(x)}
#define FROM_PLACE(x) TO_TENSOR(x) = place_->one, TO_LIST(x) = place_++->list

#define ARGUMENT(x)                   \
  {                                   \
    _Generic((x),                     \
        Tensor *: TAG_TENSOR,         \
        const Tensor *: TAG_TENSOR,   \
        int64_t: TAG_INT,             \
        bool: TAG_BOOL,               \
        double: TAG_FLOAT,            \
        Ints: TAG_INTS,               \
        Floats: TAG_FLOATS,           \
        Bools: TAG_BOOLS,             \
        Tensors: TAG_TENSORS,         \
        const char *: TAG_STR,        \
        int: TAG_C_INT,               \
        unsigned: TAG_C_ENUM,         \
        const int64_t *: TAG_C_WORDS, \
        Tensor **: TAG_C_PLACES,      \
        Factor: TAG_C_FACTOR,         \
        default: TAG_OTHER),          \
        (__typeof__(x)[1]) {          \
      x                               \
    }                                 \
  }

/* M(x) for each argument x, separated by SEP(). */
#define EACH_ARGUMENT(M, SEP, ...)                                                             \
  NTH_ARGUMENT(__VA_ARGS__, EACH_ARGUMENT12, EACH_ARGUMENT11, EACH_ARGUMENT10, EACH_ARGUMENT9, \
               EACH_ARGUMENT8, EACH_ARGUMENT7, EACH_ARGUMENT6, EACH_ARGUMENT5, EACH_ARGUMENT4, \
               EACH_ARGUMENT3, EACH_ARGUMENT2, EACH_ARGUMENT1, )                               \
  (M, SEP, __VA_ARGS__)
#define N_ARGUMENTS(...) NTH_ARGUMENT(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, )
#define NTH_ARGUMENT(a, b, c, d, e, f, g, h, i, j, k, l, name, ...) name
#define COMMA() ,
#define EACH_ARGUMENT1(M, SEP, a) M(a)
#define EACH_ARGUMENT2(M, SEP, a, ...) M(a) SEP() EACH_ARGUMENT1(M, SEP, __VA_ARGS__)
#define EACH_ARGUMENT3(M, SEP, a, ...) M(a) SEP() EACH_ARGUMENT2(M, SEP, __VA_ARGS__)
#define EACH_ARGUMENT4(M, SEP, a, ...) M(a) SEP() EACH_ARGUMENT3(M, SEP, __VA_ARGS__)
#define EACH_ARGUMENT5(M, SEP, a, ...) M(a) SEP() EACH_ARGUMENT4(M, SEP, __VA_ARGS__)
#define EACH_ARGUMENT6(M, SEP, a, ...) M(a) SEP() EACH_ARGUMENT5(M, SEP, __VA_ARGS__)
#define EACH_ARGUMENT7(M, SEP, a, ...) M(a) SEP() EACH_ARGUMENT6(M, SEP, __VA_ARGS__)
#define EACH_ARGUMENT8(M, SEP, a, ...) M(a) SEP() EACH_ARGUMENT7(M, SEP, __VA_ARGS__)
#define EACH_ARGUMENT9(M, SEP, a, ...) M(a) SEP() EACH_ARGUMENT8(M, SEP, __VA_ARGS__)
#define EACH_ARGUMENT10(M, SEP, a, ...) M(a) SEP() EACH_ARGUMENT9(M, SEP, __VA_ARGS__)
#define EACH_ARGUMENT11(M, SEP, a, ...) M(a) SEP() EACH_ARGUMENT10(M, SEP, __VA_ARGS__)
#define EACH_ARGUMENT12(M, SEP, a, ...) M(a) SEP() EACH_ARGUMENT11(M, SEP, __VA_ARGS__)
enum { MOST_ARGUMENTS = 12 };

#endif
