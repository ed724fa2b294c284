/* The divisor of variances in rows of torch.masked. */
#ifndef PG_MASKED_H
#define PG_MASKED_H

#include "call/call.h"

/* NULL if not given. */
typedef struct {
  const bool *unbiased;
  const double *correction;
} Freedom;

#endif
