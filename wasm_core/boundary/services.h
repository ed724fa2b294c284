/* All headers that the expressions of rows need, and the boundary's own services
 * (tensor_services.c). */
#ifndef PG_BOUNDARY_SERVICES_H
#define PG_BOUNDARY_SERVICES_H

#include "boundary/host.h"
#include "call/call.h"
#include "ground/memory.h"
#include "ground/paths.h"
#include "ops/autocast.h"
#include "ops/create/create.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linalg/lu_cholesky.h"
#include "ops/linalg/matrices.h"
#include "ops/run.h"
#include "ops/view/copy.h"
#include "ops/view/diagonal.h"
#include "ops/view/shape.h"
#include "ops/view/view.h"
#include "report/tensor_text.h"
#include "tape/anomaly.h"
#include "tape/host.h"
#include "tape/profile.h"
#include "transforms/vmap.h"
#include "walk/custom.h"
#include "walk/services.h"
#include "walk/watch.h"

void table_begin(void); /* sets op_rows (table.c) */

void op_type(Call *c);
void op_is_contiguous(Call *c);
void op_set_default_dtype(DType d);
Tensor *op_export(Tensor *t);
Tensor *op_elements(Tensor *t); /* contiguous, without history, for a host that copies them */

#endif
