/* The way to the host of a loop that has worked for some milliseconds; see poll.h. */
#include "ground/poll.h"

#include "ground/status.h"

enum { TEN_MILLISECONDS = 10 << 20, LONGEST = 1 << 15 };

int64_t poll_left = TEN_MILLISECONDS;
static int64_t poll_every = TEN_MILLISECONDS;
int32_t poll_weight, poll_longest = LONGEST, polls_running;
bool (*poll_host)(void);

bool poll_now(void) {
  if (failed()) return true; /* poll_left stays below 0, so the loops around this one stop too */
  const int32_t weight = poll_weight;
  polls_running++;
  poll_left = poll_every;
  if (poll_host && !poll_host()) fail(ERR_HOST, "a poll of the host raised");
  polls_running--;
  poll_left = failed() ? -1 : poll_every;
  poll_weight = weight;
  return failed();
}

int64_t poll_set_every(int64_t work) {
  const int64_t was = poll_every;
  poll_left = poll_every = work;
  poll_longest = work < LONGEST ? 1 : LONGEST;
  return was;
}
