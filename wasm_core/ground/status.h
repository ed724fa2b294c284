/* Failure, without jumps: an error is set once and sticks until the crossing ends.
 *
 * While an error is set every op returns NULL at once and changes nothing, so code composed of ops
 * needs no checks between them. `api.c` reports the error to the host and clears it. */
#ifndef PG_STATUS_H
#define PG_STATUS_H

#include <stdbool.h>
#include <stdint.h>

/* X(ENUM, code, name of the host's exception) */
#define STATUS_ROWS(X)                                                  \
  X(ERR_RUNTIME, 1, "RuntimeError")                                     \
  X(ERR_TYPE, 2, "TypeError")                                           \
  X(ERR_VALUE, 3, "ValueError")                                         \
  X(ERR_INDEX, 4, "IndexError")                                         \
  X(ERR_NOT_IMPLEMENTED, 5, "NotImplementedError")                      \
  X(ERR_MEMORY, 6, "OutOfMemoryError")                                  \
  X(ERR_HOST, 7, "host") /* the host raised, and keeps the exception */ \
  X(ERR_ATTRIBUTE, 8, "AttributeError")                                 \
  X(ERR_KEY, 9, "KeyError")                                             \
  X(ERR_OVERFLOW, 10, "OverflowError")                                  \
  X(ERR_ASSERTION, 11, "AssertionError")                                \
  X(ERR_LINALG, 12, "LinAlgError")                                      \
  X(ERR_ZERO_DIVISION, 13, "ZeroDivisionError")                         \
  X(ERR_RECURSION, 14, "RecursionError")

typedef enum {
  OK = 0,
#define ROW(name, code, text) name = code,
  STATUS_ROWS(ROW)
#undef ROW
} Status;

enum { MESSAGE_CAP = 4096 };

typedef long long Shown; /* an int64_t as %lld takes it */

extern Status status_now; /* OK while nothing failed */

static inline bool failed(void) { return __builtin_expect(status_now != OK, 0); }

/* Sets the error unless one is set already; always returns NULL, for `return fail(...)`. */
void *fail(Status s, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *status_message(void);
const char *status_name(Status s); /* NULL past the table */
void status_clear(void);

/* Warnings are queued for the host, which raises them after the crossing. */
extern bool warn_always;      /* repeats warnings that are otherwise given once a process */
bool warn_first(bool *given); /* whether such a warning is due; sets *given */
void warn_user(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Warns at this place once a process. */
#define WARN_ONCE(...)                                \
  do {                                                \
    static bool warned_;                              \
    if (warn_first(&warned_)) warn_user(__VA_ARGS__); \
  } while (0)
const char *warn_take(void); /* the oldest one, or NULL */
int warn_waiting(void);

#endif
