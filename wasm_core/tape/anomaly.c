/* Traces of nodes and writes, reports of failures, the search for nans; see anomaly.h. */
#include "tape/anomaly.h"

#include <stdio.h>

#include "ground/memory.h"
#include "ops/op.h"
#include "tape/host.h"

bool anomaly_mode, anomaly_check_nan = true;
Node *node_running;

/* ------------------------------------------------------------ traces */

void anomaly_birth(Node *n) {
  n->origin = mem_alloc_zero(sizeof *n->origin);
  if (!n->origin) return;
  n->origin->trace = host_trace();
  n->origin->parent = node_running;
  node_retain(node_running);
}

void anomaly_forget(Node *n) {
  if (!n->origin) return;
  host_drop(n->origin->trace);
  node_release(n->origin->parent);
  mem_free(n->origin, sizeof *n->origin);
}

void anomaly_write(Version *v) {
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

void anomaly_drop_trail(Version *v) {
  for (int i = 0; v->trail && i < v->trail->n; i++) host_drop(v->trail->trace[i]);
  if (v->trail) mem_free(v->trail, sizeof *v->trail);
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
               "anomaly during "
               "forward pass for more information.",
               name);
    else if (n == failed_in)
      snprintf(heading, sizeof heading,
               "Error detected in %.300s. Traceback of forward call that caused the error:\n",
               name);
    else
      snprintf(heading, sizeof heading,
               "\n\nPrevious calculation was induced by %.300s. Traceback of forward call that "
               "induced the "
               "previous calculation:\n",
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
  int k = 0; /* the first write after it was saved */
  while (v->trail && k < v->trail->n && v->trail->value[k] <= saved) k++;
  line = host_line(v->trail && k < v->trail->n ? v->trail->trace[k] : 0);
  if (*line) snprintf(text + at, sizeof text - (size_t)at, " It was modified at %.400s.", line);
  return text;
}

/* ------------------------------------------------------------ nans */

static bool holds_nan(Tensor *g) {
  g = t_contiguous(g);
  if (!g) return false;
  bool found = false;
  DISPATCH_FLOAT(g->dtype, {
    const T *x = (const T *)(const void *)tensor_data(g);
    for (int64_t i = 0; i < g->numel; i++) found = found || x[i] != x[i];
  });
  return found;
}

bool anomaly_has_nan(Node *n, Tensor *const *gi) {
  int found = -1;
  WITHOUT_GRAD_BLOCK {
    for (int i = 0; i < n->n_edges && found < 0; i++)
      if (gi[i] && (n->kind == NODE_HOST || needs(n, i)) && holds_nan(gi[i])) found = i;
  }
  if (found >= 0)
    fail(ERR_RUNTIME, "Function '%s' returned nan values in its %dth output.", n->type->name,
         found);
  return found >= 0;
}
