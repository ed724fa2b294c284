/* The door of every op: what a host calls and what C calls, in another op or in a gradient, enters
 * its function here, and whoever watches is told.
 *
 * A function of an op says so first, OP_ENTERED("mm", a, b), or VIEW_ENTERED where it minds no
 * lazy tensors: with nobody watching that is one branch. A row's call and the function it runs are one entry to a watcher: the row comes first. */
#ifndef PG_DOOR_H
#define PG_DOOR_H

#include "call/call.h"

/* An argument as C has it: `at` is where it stands, for as long as the watcher looks. */
typedef struct {
  Tag tag; /* TAG_OTHER: of a type that no host knows */
  const void *at;
} Argument;

typedef struct {
  /* Gives what `leave` is told. */
  int32_t (*enter)(const char *op, int n, const Argument *v);
  void (*leave)(int32_t entry);
} Watcher;
extern const Watcher *watcher; /* of the calls of this crossing; NULL: nobody */
/* The next entry is that of the function which is entered already. */
extern bool entered_again;

/* Who was told of an entry, to be told that it is left even if others watch by then, or nobody. */
typedef struct {
  const Watcher *by; /* NULL: nobody */
  int32_t entry;
} DoorEntry;

static inline void door_left(const DoorEntry *e) {
  if (__builtin_expect(e->by != NULL, 0)) e->by->leave(e->entry);
}

/* In a function of op's, before all else; with up to nine arguments. */
#define VIEW_ENTERED(op, ...)                                                   \
  __attribute__((cleanup(door_left), unused)) DoorEntry entry_ = {watcher, -1}; \
  if (__builtin_expect(entry_.by != NULL, 0))                                   \
  entry_.entry = entry_.by->enter(op, N_ARGUMENTS(__VA_ARGS__),                 \
                                  (Argument[]){ARGUMENTS(__VA_ARGS__)})
/* The same for an op that reads elements: a lazy tensor (FLAGS_LAZY) becomes one that is none and
 * stands for it, in the argument itself. */
#define OP_ENTERED(op, ...)                                                      \
  if (__builtin_expect(lazy_tensors != 0, 0))                                    \
    settle_lazy(N_ARGUMENTS(__VA_ARGS__), (const Place[]){PLACES(__VA_ARGS__)}); \
  VIEW_ENTERED(op, __VA_ARGS__)
/* Where an argument is that may be lazy. */
typedef struct {
  Tensor **one; /* NULL: no tensor */
  Tensors *list;
} Place;
extern void (*settle_lazy)(int n, const Place *places);
#define AT_ARGUMENT(x) \
  {_Generic((x), Tensor *: &(x), default: NULL), _Generic((x), Tensors: &(x), default: NULL)}
#define PLACES(...)                                                                         \
  NTH_ARGUMENT(__VA_ARGS__, PLACE9, PLACE8, PLACE7, PLACE6, PLACE5, PLACE4, PLACE3, PLACE2, \
               PLACE1, )(__VA_ARGS__)
#define PLACE1(a) AT_ARGUMENT(a)
#define PLACE2(a, ...) \
  AT_ARGUMENT(a)       \
  , PLACE1(__VA_ARGS__)
#define PLACE3(a, ...) \
  AT_ARGUMENT(a)       \
  , PLACE2(__VA_ARGS__)
#define PLACE4(a, ...) \
  AT_ARGUMENT(a)       \
  , PLACE3(__VA_ARGS__)
#define PLACE5(a, ...) \
  AT_ARGUMENT(a)       \
  , PLACE4(__VA_ARGS__)
#define PLACE6(a, ...) \
  AT_ARGUMENT(a)       \
  , PLACE5(__VA_ARGS__)
#define PLACE7(a, ...) \
  AT_ARGUMENT(a)       \
  , PLACE6(__VA_ARGS__)
#define PLACE8(a, ...) \
  AT_ARGUMENT(a)       \
  , PLACE7(__VA_ARGS__)
#define PLACE9(a, ...) \
  AT_ARGUMENT(a)       \
  , PLACE8(__VA_ARGS__)

#define ARGUMENT(x)                 \
  {                                 \
    _Generic((x),                   \
        Tensor *: TAG_TENSOR,       \
        const Tensor *: TAG_TENSOR, \
        int64_t: TAG_INT,           \
        bool: TAG_BOOL,             \
        double: TAG_FLOAT,          \
        Ints: TAG_INTS,             \
        Floats: TAG_FLOATS,         \
        Tensors: TAG_TENSORS,       \
        const char *: TAG_STR,      \
        default: TAG_OTHER),        \
        (__typeof__(x)[1]) {        \
      x                             \
    }                               \
  }
#define ARGUMENTS(...) \
  NTH_ARGUMENT(__VA_ARGS__, ARG9, ARG8, ARG7, ARG6, ARG5, ARG4, ARG3, ARG2, ARG1, )(__VA_ARGS__)
#define N_ARGUMENTS(...) NTH_ARGUMENT(__VA_ARGS__, 9, 8, 7, 6, 5, 4, 3, 2, 1, )
#define NTH_ARGUMENT(a, b, c, d, e, f, g, h, i, name, ...) name
#define ARG1(a) ARGUMENT(a)
#define ARG2(a, ...) ARGUMENT(a), ARG1(__VA_ARGS__)
#define ARG3(a, ...) ARGUMENT(a), ARG2(__VA_ARGS__)
#define ARG4(a, ...) ARGUMENT(a), ARG3(__VA_ARGS__)
#define ARG5(a, ...) ARGUMENT(a), ARG4(__VA_ARGS__)
#define ARG6(a, ...) ARGUMENT(a), ARG5(__VA_ARGS__)
#define ARG7(a, ...) ARGUMENT(a), ARG6(__VA_ARGS__)
#define ARG8(a, ...) ARGUMENT(a), ARG7(__VA_ARGS__)
#define ARG9(a, ...) ARGUMENT(a), ARG8(__VA_ARGS__)

#endif
