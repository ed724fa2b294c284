/* Ops that the host answers: for modes of its own, and for tensors of FORM_HOSTED, whose elements
 * are its business; PyTorch's __torch_dispatch__. See dispatch.c. */
#ifndef PG_DISPATCH_H
#define PG_DISPATCH_H

#include "call/call.h"
#include "call/door.h"
#include "tape/graph.h"

/* What holds of the calls of a crossing, to be put back after another within it. */
typedef struct {
  const Watcher *listener;
  bool open, asked, of_all; /* the door to the host now, for this crossing, for every op */
  HiddenReads reads;
} Dispatch;
extern Dispatch dispatch_now;
/* From now on the host is asked: of every op, or of those on its tensors if there are any. */
void dispatch_listen(bool of_all);
/* The same at the start of a crossing, where mostly nobody was asked and nobody is. */
static inline void dispatch_cross(bool of_all) {
  if (__builtin_expect(of_all | dispatch_now.asked | watcher_answers | (hosted_tensors != 0), 0))
    dispatch_listen(of_all);
}
Dispatch dispatch_state(void);
void dispatch_restore(const Dispatch *was);

/* Runs a bound call by way of the host. */
void dispatch_call(Call *c, void (*run)(Call *c));
int64_t dispatch_count(void);       /* of the answers so far */
int64_t dispatch_count_plain(void); /* of those with a tensor that is not the host's */
/* A gradient function as the host computes it, of what its node saved: gi filled for g. False: it
 * has no answer, or has raised. */
bool dispatch_gradient(Node *n, Tensor *const *g, Tensor **gi);
/* Ones like t, as the host makes them for its tensors; NULL: it makes none. */
Tensor *dispatch_ones_like(Tensor *t);
void dispatch_begin(void); /* once */
/* t, which a call made: its elements are the host's business from now on, and not those in memory
 * if they are hidden. */
Tensor *op_hosted(Tensor *t, bool hidden);
/* Around what may ask for hidden elements: where it did, the error that names it. */
static inline HiddenReads elements_begin(void) {
  const HiddenReads was = hidden_reads;
  hidden_reads = READS_NOTED;
  return was;
}
void elements_refused(const char *what);
static inline void elements_end(HiddenReads was, const char *what) {
  if (hidden_reads == READS_FOUND) elements_refused(what);
  hidden_reads = was;
}

#endif
