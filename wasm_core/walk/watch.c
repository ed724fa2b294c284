/* Reports of walks to the host's watcher; see watch.h. */
#include "walk/watch.h"

#include "ground/memory.h"
#include "tape/host.h"

int32_t host_watcher;

static void tell_watcher(int what, int n, const int64_t *words) {
  int n_out;
  host_words(HOST_WALK | what << 8, host_watcher, n, words, 0, NULL, &n_out);
}

void watch_walk_begins(const GraphWalk *w) {
  enum { NUMBERS = 6 };
  int n = NUMBERS + 2 * w->n_roots + w->n_inputs;
  int64_t *words = failed() ? NULL : scratch_array(n, sizeof *words), *at = words + NUMBERS;
  if (!words) return;
  const int64_t numbers[NUMBERS] = {w->n_roots,      w->n_inputs,   w->retain_graph,
                                    w->create_graph, w->accumulate, w->n_rows};
  for (int i = 0; i < NUMBERS; i++) words[i] = numbers[i];
  for (int i = 0; i < w->n_roots; i++) host_hand_out(1, &w->roots[i].tensor, at++);
  for (int i = 0; i < w->n_roots; i++)
    host_hand_out(1, &(Tensor *){w->grads ? w->grads[i] : NULL}, at++);
  for (int i = 0; i < w->n_inputs; i++) host_hand_out(1, &w->inputs[i].tensor, at++);
  tell_watcher(WALK_BEGINS, n, words);
}

void watch_walk_found(int n, Tensor *const *found) {
  int64_t *words = failed() ? NULL : scratch_array(n + 1, sizeof *words);
  if (!words) return;
  host_hand_out(n, found, words);
  tell_watcher(WALK_FOUND, n, words);
}

/* Also called after a failure, whose error stays set. */
void watch_walk_ends(bool thrown) {
  Status was = status_now;
  status_clear();
  tell_watcher(WALK_ENDS, 1, &(int64_t){thrown});
  if (was) status_now = was;
}
