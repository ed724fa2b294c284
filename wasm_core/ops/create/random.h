/* Generators and random tensors, for the rows of ops/create/random.def and for ops that draw.
 *
 * `gen` is the id of a generator: 0 is the default one, which always exists; others come and go
 * with the host's objects. The random_ functions fill a tensor without history or version and
 * return it; they check their arguments before the first draw. The t_ functions are ops. */
#ifndef PG_RANDOM_H
#define PG_RANDOM_H

#include "call/call.h"
#include "kernels/rng.h"

/* --- generators --- */
Rng *random_generator(int32_t id);  /* NULL with the error set if there is none of that id */
Rng *random_source(int32_t id);     /* likewise for a draw; an error where vmap allows none */
int32_t random_generator_new(void); /* seeded as PyTorch's; 0 on OOM */
void random_generator_free(int32_t id);
void random_seed(int32_t id, int64_t seed);
int64_t random_initial_seed(int32_t id);
Tensor *random_state(int32_t id); /* uint8 of RNG_STATE_BYTES, PyTorch's layout */
void random_set_state(int32_t id, Tensor *state);

/* --- fills --- */
Tensor *random_uniform(Tensor *x, double from, double to, int32_t gen);
Tensor *random_normal(Tensor *x, double mean, double std, int32_t gen);
Tensor *random_bernoulli(Tensor *x, double p, int32_t gen);

/* --- ops in place: the old values get a zero gradient --- */
Tensor *t_uniform_(Tensor *x, double from, double to, int32_t gen);
Tensor *t_normal_(Tensor *x, double mean, double std, int32_t gen);
Tensor *t_exponential_(Tensor *x, double lambda, int32_t gen);
Tensor *t_cauchy_(Tensor *x, double median, double sigma, int32_t gen);
Tensor *t_log_normal_(Tensor *x, double mean, double std, int32_t gen);
Tensor *t_geometric_(Tensor *x, double p, int32_t gen);
Tensor *t_bernoulli_(Tensor *x, double p, int32_t gen);
Tensor *t_random_(Tensor *x, int32_t gen);
Tensor *t_random_to_(Tensor *x, int64_t high, int32_t gen);
/* high NULL: no end */
Tensor *t_random_from_(Tensor *x, int64_t low, const int64_t *high, int32_t gen);

#endif
