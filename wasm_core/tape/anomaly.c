/* Traces of nodes and writes, reports of failures, the search for NaNs; see anomaly.h. */
#include "tape/anomaly.h"

#include <stdio.h>

#include "ground/memory.h"
#include "tape/host.h"
#include "tensor/iter.h"

/* ------------------------------------------------------------ traces */

static void write_down(Version *v) {
  if (!saved_check_mode) return;
  if (!v->trail) v->trail = mem_alloc_zero(sizeof *v->trail);
  Trail *t = v->trail;
  if (!t) return;
  if (t->n == TRAIL) {
    host_drop(t->trace[0]);
    t->n--;
    for (int i = 0; i < t->n; i++) {
      t->value[i] = t->value[i + 1];
      t->trace[i] = t->trace[i + 1];
    }
  }
  t->value[t->n] = v->value;
  t->trace[t->n++] = host_trace();
}

static void drop_trail(Version *v) {
  for (int i = 0; i < v->trail->n; i++) host_drop(v->trail->trace[i]);
  mem_free(v->trail, sizeof *v->trail);
}

void anomaly_set(bool on) {
  anomaly_mode = on;
  version_written = on ? write_down : NULL;
  if (on) letting_go.of_trail = drop_trail;
}

/* ------------------------------------------------------------ reports */

void anomaly_report(const Node *n) {
  static char heading[512];
  for (const Node *failed_in = n; n; n = n->origin ? n->origin->parent : NULL) {
    int32_t trace = n->origin ? n->origin->trace : 0;
    const char *name = n->type->name;
    if (!trace)
      snprintf(heading, sizeof heading,
               "Error detected in %.300s. No forward pass information available. Enable detect "
               "anomaly during forward pass for more information.",
               name);
    else if (n == failed_in)
      snprintf(heading, sizeof heading,
               "Error detected in %.300s. Traceback of forward call that caused the error:\n",
               name);
    else
      snprintf(heading, sizeof heading,
               "\n\nPrevious calculation was induced by %.300s. Traceback of forward call that "
               "induced the previous calculation:\n",
               name);
    host_report(trace, heading);
  }
}

const char *anomaly_blame(const Node *n, const Version *v, uint32_t saved) {
  static char text[1024];
  const char *line = host_line(n->origin ? n->origin->trace : 0);
  int at = *line ? snprintf(text, sizeof text / 2, " It was saved by %.64s at %.380s.",
                            node_short_name(n), line)
                 : 0;
  text[at] = 0;
  int k = 0; /* the first write after the save */
  while (v->trail && k < v->trail->n && v->trail->value[k] <= saved) k++;
  line = host_line(v->trail && k < v->trail->n ? v->trail->trace[k] : 0);
  if (*line) snprintf(text + at, sizeof text - (size_t)at, " It was modified at %.400s.", line);
  return text;
}

/* ------------------------------------------------------------ nans */

typedef struct {
  DType dtype;
  bool *found;
} NanSearch;

/* Half types, real or complex: bits above infinity's, without the sign, are a NaN. */
static void find_nan_of_halves(char **p, const int64_t *strides, int64_t n, const NanSearch *s) {
  const uint16_t infinity = dtype_real(s->dtype) == DT_BF16 ? 0x7F80 : 0x7C00;
  for (int64_t i = 0; i < n; i++) {
    const uint16_t *bits = (const void *)(p[0] + i * strides[0]);
    for (int k = 0; k < dtype_bytes(s->dtype) / 2; k++)
      if ((bits[k] & 0x7FFF) > infinity) *s->found = true;
  }
}

static void find_nan(char **p, const int64_t *strides, int64_t n, const void *context) {
  const NanSearch *s = context;
  if (dtype_is_half(dtype_real(s->dtype))) {
    find_nan_of_halves(p, strides, n, s);
    return;
  }
  DISPATCH_INEXACT(s->dtype, {
    for (int64_t i = 0; i < n; i++) {
      T x = *(const T *)(const void *)(p[0] + i * strides[0]);
      if (x != x) *s->found = true;
    }
  });
}

static bool holds_nan(Tensor *g) {
  bool found = false;
  iter_over(1, &g, find_nan, &(NanSearch){tensor_dtype(g), &found});
  return found;
}

bool anomaly_has_nan(Node *n, Tensor *const *gi) {
  int found = -1;
  for (int i = 0; i < n->n_edges && found < 0; i++)
    if (gi[i] && (n->kind == NODE_HOST || needs(n, i)) && holds_nan(gi[i])) found = i;
  if (found >= 0)
    fail(ERR_RUNTIME, "Function '%s' returned nan values in its %dth output.", n->type->name,
         found);
  return found >= 0;
}
