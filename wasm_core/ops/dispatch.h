/* Ops that the host answers: for its modes, and for tensors of FORM_HOSTED, whose elements are the
 * host's business; PyTorch's __torch_dispatch__. See dispatch.c. */
#ifndef PG_DISPATCH_H
#define PG_DISPATCH_H

#include "call/call.h"
#include "call/door.h"
#include "tape/graph.h"

/* The state of a crossing, to be restored after another crossing within it. */
typedef struct {
  const Watcher *listener;
  bool open, asked, of_all; /* ask: now; in this crossing; for every op */
  HiddenReads reads;
} Dispatch;
extern Dispatch dispatch_now;
/* Asks the host from now on: for every op, or for ops on its tensors if there are any. */
void dispatch_listen(bool of_all);
/* dispatch_listen at the start of a crossing. Costs little if the host was not asked before and is
 * not asked now. */
static inline void dispatch_cross(bool of_all) {
  if (__builtin_expect(of_all | dispatch_now.asked | watcher_answers | (hosted_tensors != 0), 0))
    dispatch_listen(of_all);
}
Dispatch dispatch_state(void);
void dispatch_restore(const Dispatch *was);

/* Runs a bound call with questions to the host. */
void dispatch_call(Call *c, void (*run)(Call *c));
int64_t dispatch_count(void);       /* answers so far */
int64_t dispatch_count_plain(void); /* those with a tensor that is not the host's */
/* Ones like t, if t is a tensor for which the host makes them; else NULL. */
Tensor *dispatch_ones_like(Tensor *t);
/* Zeros for a tangent of t, laid out as t, as the host makes them where one of the two is its
 * tensor; NULL: it makes none. */
Tensor *dispatch_zeros_as(Tensor *t, Tensor *tangent);
void dispatch_begin(void); /* once */
/* Hands the elements of t, which a call made, over to the host. `hidden`: those in memory do not
 * count. */
Tensor *op_hosted(Tensor *t, bool hidden);
/* Goes around code that may read hidden elements, and sets the error if it did. */
static inline HiddenReads dispatch_elements_begin(void) {
  const HiddenReads was = hidden_reads;
  hidden_reads = READS_NOTED;
  return was;
}
void dispatch_elements_refused(const char *what);
static inline void dispatch_elements_end(HiddenReads was, const char *what) {
  if (hidden_reads == READS_FOUND) dispatch_elements_refused(what);
  hidden_reads = was;
}

#endif
