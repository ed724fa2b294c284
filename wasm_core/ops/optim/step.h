/* A step of an optimizer: what one parameter needs, for all parameters of a call in turn.
 *
 * A row's lists are the parameters, their gradients (none: the parameters' own), the lists of state,
 * and last the counters of steps. Formulas are composed of ops, which a host that answers ops sees
 * one by one. */
#ifndef PG_STEP_H
#define PG_STEP_H

#include "ops/optim/in_place.h"
#include "ops/optim/lists.h"

enum { MAX_STATES = 3 };
/* Properties of an optimizer. */
enum {
  STEP_TAKES_SPARSE = 1, /* gradients may be sparse */
  STEP_ONLY_SPARSE = 2,  /* gradients must be sparse */
  STEP_REAL = 4,         /* parameters are real */
  STEP_UNCOUNTED = 8,    /* there are no counters */
  STEP_STATE_VARIES = 16 /* a parameter may lack some states */
};

typedef struct {
  Tensor *p, *g;             /* the parameter and its gradient; complex ones as pairs of numbers */
  Tensor *state[MAX_STATES]; /* in the order of the row's lists; NULL: the list is empty */
  double t;                  /* the number of this step, from 1 */
  Lists lists;
  Tensors counters;
  int place[MAX_STATES]; /* of each state's list in `lists`; 0: the list is empty */
  int k;
  int32_t mark;
} Step;

/* `optimizer` is the name for messages. Nothing is recorded from here to the end of the crossing. */
Step step_begin(Call *c, const char *optimizer, unsigned properties);
/* Goes on to the next parameter; false: there is none, or an error. */
bool step_next(Step *s);
/* The gradient to descend along: negated to maximize, plus the weight decay. */
Tensor *step_direction(const Step *s, double weight_decay, bool maximize);
/* The same, except that a decoupled decay is applied to the parameter itself. */
Tensor *step_decayed_direction(const Step *s, double lr, double weight_decay, bool maximize,
                               bool decoupled);
/* m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2. */
void step_moments(Tensor *m, Tensor *v, Tensor *g, double beta1, double beta2);
/* v = keep v + (1 - keep) g^2 */
void step_average_squares(Tensor *v, Tensor *g, double keep);
/* Reads a state that is one number. */
double step_number(const Tensor *state);
/* Sets a state that is one number, which is rounded to float: a loaded state may be of another
 * type. */
void step_set_number(Tensor *state, double value);

#endif
