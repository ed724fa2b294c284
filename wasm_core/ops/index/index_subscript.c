/* x[...] and x[...] = v: the items of a Python subscript, taken one after the other.
 *
 * A host sends a subscript as words of int64, a kind for each item and then its operands (see
 * ItemKind). Numbers, slices, None and the ellipsis make a chain of views; tensors and truth values
 * are collected by dimension and read or written through index.c at the end. */
#include "index_rows.h"
#include "ops/index/index.h"

static const int words_after[] = {
#define X(NAME, name, words) words,
    ITEM_KINDS(X)
#undef X
};
enum { N_ITEM_KINDS = sizeof words_after / sizeof *words_after };
#define ABSENT INT64_MIN /* a slice's start, stop or step that was not written */

typedef struct {
  ItemKind kind;
  const int64_t *words; /* the operands, after the kind */
  Tensor *tensor;
} Item;

typedef struct {
  Tensor *view;           /* x under the basic items so far */
  int dim;                /* the next dimension of the view */
  int n_slots;            /* dimensions up to the last indexed one */
  bool nothing;           /* x[False]: no element at all */
  Tensor *slots[MAX_DIM]; /* by dimension of the view */
} Subscript;

Ints arg_index(const Call *c, int k) {
  const Value *v = &c->v[k];
  return v->tag == TAG_INDEX ? (Ints){v->n, v->p} : (Ints){0, NULL};
}

/* ------------------------------------------------------------ items */

static bool next_item(Ints index, int *at, Item *item) {
  int64_t kind = index.v[(*at)++];
  if (kind < 0 || kind >= N_ITEM_KINDS || *at + words_after[kind] > index.n) {
    fail(ERR_INDEX, "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                    "Variables are valid indices");
    return false;
  }
  *item = (Item){.kind = (ItemKind)kind, .words = index.v + *at};
  *at += words_after[kind];
  if (kind != ITEM_TENSOR) return true;
  item->tensor = (Tensor *)(uintptr_t)item->words[0];
  if (!tensor_is(item->tensor)) fail(ERR_TYPE, "an index is not a tensor of this engine");
  return !failed();
}

/* The number of dimensions of x that an item takes. */
static int dims_taken(const Item *item) {
  if (item->kind == ITEM_TENSOR) return is_mask(item->tensor) ? item->tensor->ndim : 1;
  return item->kind == ITEM_INT || item->kind == ITEM_SLICE;
}

/* Counts items and the dimensions they take; false with the error set. */
static bool count_items(Ints index, int *n_items, int *dims) {
  *n_items = *dims = 0;
  for (int at = 0; at < index.n; ++*n_items) {
    Item item;
    if (!next_item(index, &at, &item)) return false;
    *dims += dims_taken(&item);
  }
  return true;
}

static bool apply_int(Subscript *s, int64_t i, int position) {
  Tensor *x = s->view;
  int64_t size = s->dim < x->ndim ? x->sizes[s->dim] : 0;
  if (x->ndim == 0 && i == 0 && position == 0)
    fail(ERR_INDEX, "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                    "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
  else if (i < -size || i >= size)
    fail(ERR_INDEX, "index %lld is out of bounds for dimension %d with size %lld", (Shown)i,
         position, (Shown)size);
  s->view = t_select(x, s->dim, i);
  return s->view;
}

/* Slices a dimension. A whole slice makes no view unless it is the only item. */
static bool apply_slice(Subscript *s, const int64_t *w, bool alone) {
  int64_t start = w[0] == ABSENT ? 0 : w[0], stop = w[1] == ABSENT ? INT64_MAX : w[1],
          step = w[2] == ABSENT ? 1 : w[2];
  if (step == 0) fail(ERR_VALUE, "slice step cannot be zero");
  if (step < 0) fail(ERR_VALUE, "step must be greater than zero");
  if (failed()) return false;
  bool whole = s->dim < s->view->ndim && start == 0 && step == 1 && stop >= s->view->sizes[s->dim];
  if (whole && !alone) return ++s->dim;
  s->view = t_slice(s->view, s->dim++, start, stop, step);
  return s->view;
}

static bool apply_new_dim(Subscript *s) {
  s->view = t_unsqueeze(s->view, s->dim);
  return s->view;
}

static bool apply_tensor(Subscript *s, Tensor *index, int span) {
  if (s->dim + span > s->view->ndim) {
    dim_wrap(s->dim + span - 1, s->view->ndim);
    return false;
  }
  s->slots[s->dim] = index;
  s->n_slots = s->dim + 1;
  s->dim += span;
  return true;
}

/* A truth value adds a dimension of size one, indexed by one element or none. */
static bool apply_truth(Subscript *s, bool truth) {
  int64_t n = truth;
  s->nothing = s->nothing || !truth;
  return apply_new_dim(s) && apply_tensor(s, tensor_zeros(1, &n, DT_I64), 1);
}

static bool apply_tensor_item(Subscript *s, Tensor *t, int position) {
  if (t->ndim > 0 || dtype_is_float(tensor_dtype(t)))
    return apply_tensor(s, t, is_mask(t) ? t->ndim : 1);
  if (is_mask(t)) return apply_truth(s, tensor_get_i(t, 0) != 0);
  return apply_int(s, tensor_get_i(t, 0), position);
}

/* Applies all items; s->view == x if none made a view. `reading`: x[:] is a view, not x. */
static bool apply(Subscript *s, Tensor *x, Ints index, bool reading) {
  int n_items, dims;
  if (blocked(x) || !count_items(index, &n_items, &dims)) return false;
  s->view = x;
  if (dims > x->ndim && !(n_items == 1 && x->ndim == 0 && index.v[0] != ITEM_TENSOR)) {
    fail(ERR_INDEX, "too many indices for tensor of dimension %d", x->ndim);
    return false;
  }
  for (int at = 0, position = 0; at < index.n; position++) {
    Item item;
    bool done = next_item(index, &at, &item);
    if (!done) return false;
    switch (item.kind) {
      case ITEM_NONE: done = apply_new_dim(s) && ++s->dim; break;
      case ITEM_ELLIPSIS: s->dim += x->ndim - dims; break;
      case ITEM_INT: done = apply_int(s, item.words[0], position); break;
      case ITEM_SLICE: done = apply_slice(s, item.words, reading && n_items == 1); break;
      case ITEM_TENSOR: done = apply_tensor_item(s, item.tensor, position); break;
      case ITEM_BOOL: done = apply_truth(s, item.words[0]); break;
      default: break;
    }
    if (!done) return false;
  }
  return true;
}

/* The slots as a list of indices, in which a mask stands for all of its dims. */
static Tensors slot_list(Subscript *s) {
  int n = 0;
  for (int d = 0; d < s->n_slots; n++) {
    Tensor *t = s->slots[d];
    s->slots[n] = t;
    d += t && is_mask(t) ? t->ndim : 1;
  }
  return (Tensors){n, s->slots};
}

/* ------------------------------------------------------------ reading */

GRAD(AliasBackward0, "")
{ gi[0] = g[0]; }

static Tensor *alias(Tensor *x) {
  Node *n = node_new(&AliasBackward0, 0, 0, x, NULL);
  return record_view(x, tensor_alias(x, x->ndim, x->sizes, x->strides, x->offset), n, VIEW_PLAIN);
}

Tensor *t_getitem(Tensor *x, Ints index) {
  VIEW_ENTERED(t_getitem, "__getitem__", x, index);
  /* x[i], the commonest case */
  if (!failed() && x && x->ndim && index.n == 2 && index.v[0] == ITEM_INT) {
    int64_t i = index.v[1];
    if (i >= -x->sizes[0] && i < x->sizes[0]) return t_select(x, 0, i);
  }
  Subscript s = {.dim = 0};
  if (!apply(&s, x, index, true)) return NULL;
  if (s.n_slots) return t_index(s.view, slot_list(&s));
  return s.view == x ? alias(x) : s.view;
}

/* ------------------------------------------------------------ writing */

/* v without its leading dimensions of size one, which an assignment ignores. */
static Tensor *strip_ones(Tensor *v, bool always) {
  int ones = 0;
  while (ones < v->ndim && v->sizes[ones] == 1) ones++;
  return ones || always ? t_view(v, v->ndim - ones, v->sizes + ones) : v;
}

static bool assign(Tensor *dst, Tensor *value) {
  if (blocked(dst)) return false;
  if (is_wrapped(value)) value = index_number(value, tensor_dtype(dst));
  if (!value) return false;
  if (!tensor_same_shape(dst, value)) {
    if (value->ndim == 0) return t_fill_(dst, value);
    value = strip_ones(value, true);
    if (value && !tensor_same_shape(dst, value)) value = t_expand(value, dst->ndim, dst->sizes);
  }
  return t_copy_(dst, value, true);
}

bool t_setitem(Tensor *x, Ints index, Tensor *value) {
  VIEW_ENTERED(t_setitem, "__setitem__", x, index, value);
  Subscript s = {.dim = 0};
  if (!value || !apply(&s, x, index, false)) return false;
  if (s.nothing && s.n_slots == 1 && index.n == 2 && index.v[0] == ITEM_BOOL) return true;
  if (!s.n_slots || (index.n == 2 && index.v[0] == ITEM_BOOL)) return assign(s.view, value);
  return t_index_put_(s.view, slot_list(&s), is_wrapped(value) ? value : strip_ones(value, false),
                      false);
}
