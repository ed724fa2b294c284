/* The door of every op: what a host calls and what C calls, in another op or in a gradient, enters
 * its function here, and whoever watches is told.
 *
 * A function of an op says so first, OP_ENTERED(t_mm, "mm", a, b), or VIEW_ENTERED where it minds no
 * lazy tensors: with nobody watching that is one branch. A row's call and the function it runs are
 * one entry to a watcher: the row comes first. A watcher may answer in the op's place: the function
 * returns then, and is called anew by the door if its node is needed as well (ops/dispatch.c). */
#ifndef PG_DOOR_H
#define PG_DOOR_H

#include "call/call.h"

/* An argument as C has it: `at` is where it stands, for as long as the watcher looks. */
typedef struct {
  int32_t tag; /* TAG_OTHER: of a type that no host knows */
  const void *at;
} Argument;
/* Beside the tags of hosts, what C alone has: an int, an enumeration, sizes whose number stands
 * before them, places for results, and numbers that scale. */
enum { TAG_C_INT = 32, TAG_C_ENUM, TAG_C_WORDS, TAG_C_PLACES, TAG_C_FACTOR };

typedef struct {
  /* Gives what `leave` is told, or ENTRY_ANSWERED. */
  int32_t (*enter)(const char *op, int n, const Argument *v);
  void (*leave)(int32_t entry);
} Watcher;
enum { ENTRY_ANSWERED = -2 };
extern const Watcher *watcher; /* of the calls of this crossing; NULL: nobody */
/* Who is told of what nobody answers, and whether somebody may answer, who is the watcher then. */
extern const Watcher *listener;
extern bool watcher_answers;
static inline void listen(const Watcher *who) {
  listener = who;
  if (!watcher_answers) watcher = who;
}
/* The next entry is that of the function which is entered already. */
extern bool entered_again;

/* Who was told of an entry, to be told that it is left even if others watch by then, or nobody. */
typedef struct {
  const Watcher *by; /* NULL: nobody, and nothing to undo */
  int32_t entry;
  int32_t form; /* what form_made was outside */
} DoorEntry;

/* What an op makes, as form_made, of the tensors it is given one by one: the form of an absent one,
 * which is final (true), 0 if all have elements, and what is made around it without any. */
bool sets_form(int32_t *form, const Tensor *t);
/* Tells the watcher, and lets fresh tensors be as the arguments say. */
void door_enter(DoorEntry *e, const char *op, int n, const Argument *v);
void door_leave(const DoorEntry *e);
static inline void door_left(const DoorEntry *e) {
  if (__builtin_expect(e->by != NULL, 0)) door_leave(e);
}

/* In a function of op's, before all else; with up to nine arguments, which are the function's.
 * ANY_ENTERED where it minds no sparse tensors either, which the others refuse. */
#define ANY_ENTERED(function, op, ...) ANY_ENTERED_AS(function(__VA_ARGS__), op, __VA_ARGS__)
#define VIEW_ENTERED(function, op, ...) VIEW_ENTERED_AS(function(__VA_ARGS__), op, __VA_ARGS__)
#define OP_ENTERED(function, op, ...) OP_ENTERED_AS(function(__VA_ARGS__), op, __VA_ARGS__)
/* The same where the function has others too: `call` is a call of it like this one. */
#define ANY_ENTERED_AS(call, op, ...)                                                 \
  __attribute__((cleanup(door_left), unused)) DoorEntry entry_;                       \
  entry_.by = watcher; /* the rest is set where somebody is told */                   \
  if (__builtin_expect(((uintptr_t)entry_.by | (uint32_t)unusual_tensors) != 0, 0)) { \
    door_enter(&entry_, op, N_ARGUMENTS(__VA_ARGS__),                                 \
               (Argument[]){EACH_ARGUMENT(ARGUMENT, COMMA, __VA_ARGS__)});            \
    if (entry_.entry == ENTRY_ANSWERED) return ANSWERED(call);                        \
  }
#define VIEW_ENTERED_AS(call, op, ...)           \
  ANY_ENTERED_AS(call, op, __VA_ARGS__)          \
  if (__builtin_expect(unusual_tensors != 0, 0)) \
  refuse_sparse(op, N_ARGUMENTS(__VA_ARGS__),    \
                (Argument[]){EACH_ARGUMENT(ARGUMENT, COMMA, __VA_ARGS__)})
/* Before these: what the function gives instead where an argument is a sparse tensor. */
#define SPARSE_GIVES(result, ...)                                            \
  if (__builtin_expect(unusual_tensors != 0, 0) &&                           \
      any_sparse(N_ARGUMENTS(__VA_ARGS__),                                   \
                 (Argument[]){EACH_ARGUMENT(ARGUMENT, COMMA, __VA_ARGS__)})) \
  return result
/* The same for an op that reads elements: its arguments become, in the variables, what it computes
 * with. Autocast casts them, and a lazy tensor (FLAGS_LAZY) becomes one that is none and stands for
 * it. */
#define OP_ENTERED_AS(call, op, ...)                                                   \
  if (__builtin_expect((unusual_tensors | autocast_dtype) != 0, 0))                    \
    WITH_PLACES(p_, prepare_arguments(op, N_ARGUMENTS(__VA_ARGS__), p_), __VA_ARGS__); \
  ANY_ENTERED_AS(call, op, __VA_ARGS__)

/* What a function returns that was answered: the answer, which may need what the function itself
 * gives. Results that were to be filled are filled by `number`, which gives those that are no
 * tensors. */
typedef struct {
  bool (*runs_body)(void);
  Tensor *(*tensor)(Tensor *body);
  intptr_t (*number)(intptr_t body);
} Answers;
extern const Answers *door_answers; /* set by who sets a watcher that answers */
#define GIVES(call, type) __builtin_types_compatible_p(__typeof__(call), type)
#define OF_TYPE(call, type, otherwise) __builtin_choose_expr(GIVES(call, type), call, otherwise)
#define ANSWERED(call)                                                        \
  ({                                                                          \
    Tensor *body_ = NULL;                                                     \
    intptr_t number_ = 0;                                                     \
    if (door_answers->runs_body()) {                                          \
      body_ = OF_TYPE(call, Tensor *, NULL);                                  \
      number_ = OF_TYPE(call, bool, 0);                                       \
      OF_TYPE(call, void, (void)0);                                           \
    }                                                                         \
    __builtin_choose_expr(GIVES(call, Tensor *), door_answers->tensor(body_), \
                          (__typeof__(call))door_answers->number(number_));   \
  })

/* The tensors of an argument, as code has them that may put others in their place. */
typedef struct {
  Tensor *one; /* NULL: no tensor */
  Tensors list;
  const Call *call; /* those of a host's call that the function reads itself */
} Place;
bool any_sparse(int n, const Argument *v);
/* False, with PyTorch's words, if one is. */
bool refuse_sparse(const char *op, int n, const Argument *v);
/* PyTorch's words for an op of such a tensor. */
void *refuse_layout(const char *op, const Tensor *t);
bool prepare_arguments(const char *op, int n, Place *places);
/* PyTorch's error, and false, where an op has to know what is in an absent tensor. */
bool needs_elements(const char *op);
/* The row of that name, the first of several; NULL: there is none. */
const Row *row_of_op(const char *op);
/* What it does, which are ops themselves. */
extern bool (*autocast_arguments)(const char *op, int n, Place *places);
extern bool (*settle_lazy)(int n, Place *places); /* until the entry that is to come is left */
/* The type that autocast computes in: DT_F16 or DT_BF16; 0: it is off. And whether it keeps its
 * casts of parameters, to give them again. */
extern int32_t autocast_dtype;
extern bool autocast_keeps;
/* What `act`, a bool, is of the places of the arguments, which are then what it left there. They
 * are copied there and back, so that functions have their arguments in registers. */
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

/* M of each of the arguments, with SEP() between them. */
#define EACH_ARGUMENT(M, SEP, ...)                                                               \
  NTH_ARGUMENT(__VA_ARGS__, EACH_ARGUMENT9, EACH_ARGUMENT8, EACH_ARGUMENT7, EACH_ARGUMENT6,      \
               EACH_ARGUMENT5, EACH_ARGUMENT4, EACH_ARGUMENT3, EACH_ARGUMENT2, EACH_ARGUMENT1, ) \
  (M, SEP, __VA_ARGS__)
#define N_ARGUMENTS(...) NTH_ARGUMENT(__VA_ARGS__, 9, 8, 7, 6, 5, 4, 3, 2, 1, )
#define NTH_ARGUMENT(a, b, c, d, e, f, g, h, i, name, ...) name
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

#endif
