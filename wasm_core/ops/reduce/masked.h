/* How rows of torch.masked read what their variances are divided by. */
#ifndef PG_MASKED_H
#define PG_MASKED_H

#include "call/call.h"

/* Each NULL if not given. */
typedef struct {
  const bool *unbiased;
  const double *correction;
} Freedom;

#endif
