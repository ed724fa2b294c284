/* Polls: a long loop counts its work, and every few milliseconds of it asks the host whether to go
 * on. The host runs the handlers of signals there, and compares limits; if it raises, the error is
 * set, and the loop returns with its result unfinished. */
#ifndef PG_POLL_H
#define PG_POLL_H

#include <stdbool.h>
#include <stdint.h>

extern int64_t poll_left;       /* the work until the next poll; a unit is about a nanosecond */
extern int32_t poll_weight;     /* an element of the running op has work 2^poll_weight */
extern int32_t poll_longest;    /* poll_stretch() for elements of work 1 */
extern int32_t polls_running;   /* the depth of nested polls */
extern bool (*poll_host)(void); /* false: the host raised; set by the boundary */

bool poll_now(void);
/* Counts work that is to be done; true with the error set if it is not to be done. */
static inline bool poll_stops(int64_t work) {
  return __builtin_expect((poll_left -= work) < 0, 0) && poll_now();
}
static inline bool poll_stops_elements(int64_t n) { return poll_stops(n << poll_weight); }
/* The elements that a loop handles between two looks at its work: at least POLL_LEAST, which is
 * whole vectors, and whole blocks of random numbers. */
enum { POLL_LEAST = 64 };
static inline int64_t poll_stretch(void) {
  const int32_t n = poll_longest >> poll_weight;
  return n > POLL_LEAST ? n : POLL_LEAST;
}
/* For round i of a loop whose rounds are short: looks once in 256 rounds. */
static inline bool poll_stops_round(int64_t i, int64_t work) {
  return (i & 255) == 0 && poll_stops(work << 8);
}
/* Around work that must be finished, such as undoing a write: no polls. */
static inline int64_t poll_suspend(void) {
  const int64_t left = poll_left;
  poll_left = INT64_MAX;
  return left;
}
static inline void poll_resume(int64_t left) { poll_left = left; }
/* Sets the work between two polls, and returns it as it was; for tests. A little work makes the
 * stretches of loops short too. */
int64_t poll_set_every(int64_t work);

#endif
