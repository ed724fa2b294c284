/* Copies of views, and parts of a tensor that share its memory but do not count as views. */
#include <string.h>

#include "ground/memory.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "view_rows.h"

/* The elements of a view in order, in separate memory. */
Tensor *t_view_copy(Tensor *view) { return t_clone_format(view, FORMAT_CONTIGUOUS); }

/* Returns copies of the views in the call's result. */
void ret_view_copies(Call *c) {
  Tensor **parts = failed() ? NULL : scratch_array(c->result.n + 1, sizeof *parts);
  for (int i = 0; parts && i < c->result.n; i++)
    parts[i] = t_view_copy(result_tensor(&c->result, i));
  if (parts) ret_tensors(c, c->result.n, parts);
}

/* Makes a view count as none for autograd: it gets a history and a version of its own. */
static void set_apart(Tensor *t) {
  Tensor *base = t->meta ? t->meta->base : NULL;
  if (!base) return;
  t->meta->base = NULL;
  version_release(t->version);
  t->version = NULL;
  if (t->grad_fn)
    node_rename(t, strstr(t->grad_fn->type->name, "With") ? "UnsafeSplitWithSizesBackward0"
                                                          : "UnsafeSplitBackward0");
  tensor_release(base);
}

/* Gives the views in the call's result histories and versions of their own. */
void ret_apart(Call *c) {
  int n = failed() ? 0 : c->result.n;
  for (int i = 0; i < n; i++) set_apart(result_tensor(&c->result, i));
}
