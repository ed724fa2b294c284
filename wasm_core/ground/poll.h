/* Polls: a long loop counts its work, and every few milliseconds of it asks the host whether to go
 * on. The host runs the handlers of signals there, and compares limits; if it raises, the error is
 * set, and the loop returns with its result unfinished. */
#ifndef PG_POLL_H
#define PG_POLL_H

#include <stdbool.h>
#include <stdint.h>

extern int64_t poll_left;       /* the work until the next poll; a unit is about a nanosecond */
extern int64_t poll_element;    /* the work of an element in the running op */
extern int64_t poll_stretch;    /* the elements that a loop handles between two looks */
extern int64_t poll_longest;    /* poll_stretch for elements of work 1 */
extern int32_t polls_running;   /* the depth of nested polls */
extern bool (*poll_host)(void); /* false: the host raised; set by the boundary */

/* Sets the work of an element to 2^k. */
static inline void poll_weigh(int k) {
  enum { SHORTEST = 64 }; /* whole vectors, and blocks of random numbers */
  poll_element = (int64_t)1 << k;
  poll_stretch = poll_longest >> k > SHORTEST ? poll_longest >> k : SHORTEST;
}
bool poll_now(void);
/* Counts work that is to be done; true with the error set if it is not to be done. */
static inline bool poll_stops(int64_t work) {
  return __builtin_expect((poll_left -= work) < 0, 0) && poll_now();
}
static inline bool poll_stops_elements(int64_t n) { return poll_stops(n * poll_element); }
/* For round i of a loop whose rounds are short: looks once in 256 rounds. */
static inline bool poll_stops_round(int64_t i, int64_t work) {
  return (i & 255) == 0 && poll_stops(work << 8);
}
/* Sets the work between two polls, and returns it as it was; for tests. A little work makes the
 * stretches of loops short too. */
int64_t poll_set_every(int64_t work);

#endif
