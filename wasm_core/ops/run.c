/* The three ways to run a row: plain, in place, into out=; see run.h. */
#include "ops/run.h"

#include <stdio.h>
#include <string.h>

#include "call/door.h"
#include "call/schema.h"
#include "ground/memory.h"
#include "ops/autocast.h"
#include "ops/dispatch.h"
#include "ops/elementwise/elementwise.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "tape/forward.h"

/* ------------------------------------------------------------ in place */

static bool any_requires_grad(const Call *c) {
  const Tensor *t;
  for (int i = 0; recording && i < c->n_args; i++)
    for (int at = -1; (t = value_next(&c->v[i], &at));)
      if (tensor_requires_grad(t)) return true;
  return false;
}

static bool check_result(const Call *c, const Tensor *self, const Tensor *r) {
  if (!tensor_same_shape(self, r)) {
    fail(ERR_RUNTIME,
         row_has(c->row, STRICT_SIZES)
             ? "Bad in-place call: input tensor size %s and output tensor size %s should match"
             : "output with shape %s doesn't match the broadcast shape %s",
         shape_text(self), shape_text(r));
    return false;
  }
  if (!dtype_can_cast(tensor_dtype(r), tensor_dtype(self))) {
    fail(ERR_RUNTIME, "result type %s can't be cast to the desired output type %s",
         dtype_info[r->dtype].legacy, dtype_info[self->dtype].legacy);
    return false;
  }
  return true;
}

static const Tensor *sparse_in(const Value *v) {
  const Tensor *t;
  for (int at = -1; (t = value_next(v, &at));)
    if (is_sparse(t)) return t;
  return NULL;
}

static const Tensor *find_sparse(const Call *c) {
  const Tensor *t = sparse_in(&c->out);
  for (int i = 0; i < c->n_args && !t; i++) t = sparse_in(&c->v[i]);
  return t;
}

static bool has_sparse(const Call *c) { return unusual_tensors && find_sparse(c); }

/* Whether no argument is sparse, or the row takes sparse arguments. Rows that show memory (ADDRESS)
 * refuse them. */
static NOINLINE bool takes_sparse(const Call *c) {
  bool shows = row_has(c->row, ADDRESS);
  if (c->row->sparse || (c->row->batch == BATCH_itself && !shows)) return true;
  const Tensor *t = find_sparse(c);
  if (t && shows)
    fail(ERR_RUNTIME, "Cannot access data pointer of Tensor that doesn't have storage");
  else if (t) door_refuse_layout(c->row->name, t);
  return !t;
}

/* move_result where self or r is sparse. */
static bool move_sparse(Tensor *self, Tensor *r) {
  if (is_sparse(self) != is_sparse(r))
    return fail(ERR_RUNTIME, "a result of layout %s cannot be written to a tensor of layout %s",
                layout_text(r), layout_text(self)),
           false;
  if (r->dtype != self->dtype) r = WITHOUT_GRAD(t_to(r, tensor_dtype(self)));
  if (!r || !tensor_take_parts(self, r)) return false;
  tensor_bump_version(self);
  return true;
}

/* Makes self hold what r holds; an element-wise op may have written it there already. */
static bool move_result(Tensor *self, Tensor *r) {
  if (is_sparse(r) && !is_sparse(self)) {
    r = WITHOUT_GRAD(t_to_dense(r, tensor_dtype(self), true));
    if (!r) return false;
  }
  if (is_sparse(self) || is_sparse(r)) return move_sparse(self, r);
  if (r->storage == self->storage && r->offset == self->offset && r->dtype == self->dtype &&
      sizes_equal(r->ndim, r->strides, self->ndim, self->strides)) {
    if (r == self) tensor_bump_version(self);
    return true;
  }
  if (!tensor_steal_bytes(self, r) &&
      (!tensor_write_begin(self, true) || !tensor_copy_data(self, r)))
    return false;
  tensor_bump_version(self);
  return true;
}

/* An op without a gradient, done in place on a tensor that has one, cuts it off. */
GRAD(ZeroBackward0, "")
{ gi[0] = NULL; }

static Node *node_without_gradient(const Call *c, Tensor *self, const Tensor *r) {
  if (r->dtype != DT_BOOL) return node_new(&ZeroBackward0, 0, 0, self, NULL);
  bool by_tensor = c->n_args > 1 && c->v[1].tag == TAG_TENSOR;
  const InPlaceNodes *nodes = c->row->in_place;
  /* under vmap it may not be of self's rank */
  Tensor *other = by_tensor && self == c->v[0].t ? c->v[1].t : NULL;
  if (!nodes) return node_new(&ZeroBackward0, 0, 0, self, NULL);
  return node_new(by_tensor ? &nodes->with_tensor : &nodes->with_number, 0, 0, self, other, NULL);
}

/* PyTorch has no derivative of these in place, for they overwrite what it needs. A snapshot has it;
 * "check" mode keeps PyTorch's rules. */
static void grad_overwritten(Node *n, Tensor **g, Tensor **gi) {
  (void)g, (void)gi;
  fail(ERR_NOT_IMPLEMENTED, "the derivative for 'inplace version of a%.4s' is not implemented.",
       n->type->name + 1);
}
static const NodeType *overwriting(const Node *n) {
  static const NodeType types[] = {{"AcoshBackward1", grad_overwritten, "", false, NULL, NULL},
                                   {"AsinhBackward1", grad_overwritten, "", false, NULL, NULL},
                                   {"AtanhBackward1", grad_overwritten, "", false, NULL, NULL}};
  const char *name = saved_check_mode ? n->type->in_place : NULL;
  for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
    if (strcmp(name, types[i].name) == 0) return &types[i];
  return NULL;
}

void run_inplace_finish(const Call *c, Tensor *self, Tensor *r) {
  if (failed() || !r || !check_result(c, self, r)) return;
  Node *n = r == self ? NULL : r->grad_fn;
  const NodeType *refuses = n ? overwriting(n) : NULL;
  if (n && n->type->in_place) node_rename(r, n->type->in_place);
  Tensor *tangent = forward_tangent(r); /* before what it depends on is written to */
  bool kept = r == self || row_has(c->row, UNRECORDED), forward = forward_on;
  forward_on = false;
  if (refuses) n = node_beside(refuses, n);
  else if (n) node_retain(n);
  /* of what self was: before the write, too */
  else if (!kept) n = node_without_gradient(c, self, r);
  if (!move_result(self, r)) {
    node_drop(n);
    n = NULL;
  } else if (!kept) {
    saves_written(n, self);
    record_rebase(self, n);
  }
  forward_on = forward;
  if (!kept && !failed()) forward_write(self, tangent);
}

/* Checks out against the arguments of APART and APART_OR_SAME rows. An APART row with an in-place
 * form may write where the first argument has the very same elements. */
static bool check_arguments_apart(const Call *c, const Tensor *out) {
  if (!row_has(c->row, APART | APART_OR_SAME)) return true;
  bool may_be_same = row_has(c->row, APART_OR_SAME);
  for (int i = 0; i < c->n_args; i++) {
    bool same = may_be_same || (i == 0 && row_has(c->row, INPLACE));
    const Tensor *t;
    for (int at = -1; (t = value_next(&c->v[i], &at));)
      if (!copy_check_apart(out, t, same)) return false;
  }
  return true;
}

bool run_drops_nothing(const Call *c) {
  if (!row_has(c->row, DROPOUT) || c->v[0].tag != TAG_TENSOR) return false;
  double p = arg_float(c, 1);
  return p == 0 || (p > 0 && p <= 1 && (!arg_bool(c, 2) || !c->v[0].t->numel));
}

static void run_inplace(Call *c) {
  Tensor *self = c->v[0].tag == TAG_TENSOR ? c->v[0].t : NULL;
  bool direct = row_has(c->row, DIRECT), logic = row_has(c->row, UNRECORDED);
  if (run_drops_nothing(c)) {
    ret_tensor(c, self);
    return;
  }
  if (!self || !(logic ? history_check_inference_write(self) : history_check_inplace(self)) ||
      !copy_check_overlap(self))
    return;
  if (!direct && !check_arguments_apart(c, self)) return;
  if (!logic && any_requires_grad(c) && !history_check_rebase(self)) return;
  destination = direct && !has_sparse(c) ? self : NULL;
  inplace_self = self;
  inplace_copy = t_clone;
  c->row->run(c);
  inplace_self = NULL;
  destination = NULL;
  if (failed() || c->result.tag != TAG_TENSOR) return;
  run_inplace_finish(c, self, result_tensor(&c->result, 0));
  ret_tensor(c, self);
}

/* ------------------------------------------------------------ out= */

/* Whether an argument has the bytes of r: an op may give back its input. */
static bool is_given(const Call *c, const Tensor *r) {
  const Tensor *t;
  for (int i = 0; i < c->n_args; i++)
    for (int at = -1; (t = value_next(&c->v[i], &at));)
      if (t->storage == r->storage) return true;
  return false;
}

static void fail_exact(const Call *c, const Tensor *out, const Tensor *r) {
  static const char *const texts[] = {
#define X(name, text) [OUT_##name] = text,
      WRONG_OUT_ROWS(X)
#undef X
  };
  const char *wanted = dtype_info[r->dtype].legacy, *found = dtype_info[out->dtype].legacy;
  WrongOut kind = row_has(c->row, DIRECT) && !c->row->wrong_out ? OUT_FOUND
                                                                : (WrongOut)c->row->wrong_out;
  if (kind) fail(ERR_RUNTIME, texts[kind], kind <= OUT_NO_NUMBERS ? c->row->name : wanted, found);
  else
    fail(ERR_RUNTIME, "Expected out tensor to have dtype %s, but got %s instead",
         dtype_c_name(tensor_dtype(r)), dtype_c_name(tensor_dtype(out)));
}

/* Whether an element-wise op has made real numbers of complex ones. Then out= may be complex, or of
 * any real type. */
static bool is_part_of_complex(const Call *c, const Tensor *r) {
  const Tensor *x = row_has(c->row, DIRECT) && c->n_args && c->v[0].tag == TAG_TENSOR ? c->v[0].t
                                                                                      : NULL;
  return x && r && dtype_is_complex(tensor_dtype(x)) && !dtype_is_complex(tensor_dtype(r));
}

static bool put_out(const Call *c, Tensor *out, Tensor *r) {
  if (r && r->storage != out->storage && is_given(c, r)) r = t_clone(r);
  if (!r || failed() || !history_check_inference_write(out)) return false;
  if (tensor_absent(r) != tensor_absent(out)) {
    fail(ERR_RUNTIME,
         "Attempting to copy from device %s to device %s, but cross-device copies are not allowed!",
         device_name(r), device_name(out));
    return false;
  }
  bool mask = out->dtype == DT_U8 && c->row->wrong_out == OUT_BOOL_ONLY;
  bool exact = row_has(c->row, OUT_EXACT) && !mask;
  if (exact && is_part_of_complex(c, r)) {
    exact = dtype_is_complex(tensor_dtype(out));
    if (exact && !(r = elementwise_cast(r, tensor_dtype(c->v[0].t)))) return false;
  }
  if (r->dtype != out->dtype && exact) {
    fail_exact(c, out, r);
    return false;
  }
  if (!dtype_can_cast(tensor_dtype(r), tensor_dtype(out))) {
    fail(ERR_RUNTIME, "result type %s can't be cast to the desired output type %s",
         dtype_info[r->dtype].legacy, dtype_info[out->dtype].legacy);
    return false;
  }
  if (out->numel == r->numel && row_has(c->row, KEEPS_OUT_SHAPE))
    r = t_view(r, out->ndim, out->sizes);
  if (is_sparse(out) && is_sparse(r) && !tensor_same_shape(out, r) &&
      !tensor_set_geometry(out, r->ndim, r->sizes, r->strides, 0))
    return false;
  if (!tensor_same_shape(out, r)) {
    if (out->numel)
      warn_user("An output with one or more elements was resized since it had shape %s, which does "
                "not match the required output shape %s. This behavior is deprecated, and in a "
                "future PyTorch release outputs will not be resized unless they have zero "
                "elements. You can explicitly reuse an out tensor t by resizing it, inplace, to "
                "zero elements with t.resize_(0).",
                shape_text(out), shape_text(r));
    if (!tensor_resize(out, r->ndim, r->sizes)) return false;
    if (tensor_is_dense(r)) tensor_set_geometry(out, r->ndim, r->sizes, r->strides, out->offset);
  }
  return copy_check_overlap(out) && move_result(out, r);
}

static bool has_float_result(const Call *c) {
  for (int i = 0; i < result_count(&c->result); i++)
    if (dtype_is_inexact(tensor_dtype(result_tensor(&c->result, i)))) return true;
  return false;
}

/* Whether no argument, nor anything to write to, has a tangent. */
static bool check_no_tangent(const Call *c, int n, Tensor **outs) {
  bool any = false;
  for (int i = 0; i < n; i++) any = any || forward_tangent(outs[i]);
  for (int i = 0; i < c->n_args; i++) {
    Tensor *t;
    for (int at = -1; (t = value_next(&c->v[i], &at));) any = any || forward_tangent(t);
  }
  if (any)
    fail(ERR_NOT_IMPLEMENTED,
         "Trying to use forward AD with %s_out that does not support it because it is an out= "
         "function",
         row_shown(c->row, false));
  return !any;
}

static void run_out(Call *c) {
  Value *o = &c->out;
  Tensor *one[1], **outs = one;
  int n = 1;
  if (o->tag == TAG_TENSORS) {
    n = o->n;
    outs = scratch_array(n ? n : 1, sizeof *outs);
    for (int i = 0; outs && i < n; i++) outs[i] = (Tensor *)(uintptr_t)((const int64_t *)o->p)[i];
  } else if (o->tag == TAG_TENSOR) {
    one[0] = o->t;
  } else {
    fail(ERR_TYPE, "%s(): argument 'out' must be Tensor, not another type", c->row->name);
  }
  if (failed()) return;
  bool tracked = any_requires_grad(c);
  for (int i = 0; i < n; i++)
    tracked = tracked || (recording && outs[i] && tensor_requires_grad(outs[i]));
  for (int i = 0; i < n; i++)
    if (outs[i] && !check_arguments_apart(c, outs[i])) return;
  if (forward_on && !check_no_tangent(c, n, outs)) return;
  Value *dtype = &c->v[c->n_args - 1];
  if (row_has(c->row, OUT_TYPED) && n == 1 && outs[0] && dtype->tag == TAG_NONE)
    *dtype = (Value){.tag = TAG_DTYPE, .i = outs[0]->dtype};
  WITHOUT_GRAD_BLOCK {
    destination = n == 1 && !tracked && outs[0] && !(outs[0]->flags & FLAG_INFERENCE) &&
                          row_has(c->row, DIRECT) && !has_sparse(c)
                      ? outs[0]
                      : NULL;
    c->row->run(c);
    destination = NULL;
  }
  if (tracked && has_float_result(c))
    fail(ERR_RUNTIME,
         "%s(): functions with out=... arguments don't support automatic differentiation, but one "
         "of the arguments requires grad.",
         row_shown(c->row, false));
  if (failed()) return;
  if (c->result.tag == TAG_TENSOR && n == 1) {
    put_out(c, outs[0], result_tensor(&c->result, 0));
    ret_tensor(c, outs[0]);
  } else if (c->result.tag == TAG_TENSORS && c->result.n == n) {
    for (int i = 0; i < n; i++)
      if (!put_out(c, outs[i], result_tensor(&c->result, i))) return;
    ret_tensors(c, n, outs);
  } else {
    fail(ERR_TYPE, "%s() expected a different number of out tensors", row_shown(c->row, false));
  }
}

static NOINLINE void refuse_complex(const Call *c, DType d) {
  const char *text = c->row->no_complex;
  if (!strchr(text, ' ')) dtype_no_kernel(text, d);
  else if (text[strlen(text) - 1] == ':')
    fail(c->row->no_complex_status, "%s %s", text, dtype_info[d].legacy);
  else fail(c->row->no_complex_status, "%s", text);
}

/* Whether an argument is complex; sets the row's error if so. */
static bool refuses_complex(const Call *c) {
  for (const Value *v = c->v; v < c->v + c->n_args; v++) {
    DType d = v->tag == TAG_TENSOR  ? tensor_dtype(v->t)
              : v->tag == TAG_DTYPE ? (DType)v->i
                                    : DT_BOOL;
    if (d == DT_NONE || !dtype_is_complex(d)) continue;
    refuse_complex(c, d);
    return true;
  }
  return false;
}

static ScalarKind kind_of(const Value *v) {
  DType d = v->tag == TAG_TENSOR ? tensor_dtype(v->t) : DT_I64;
  return v->tag == TAG_COMPLEX || dtype_is_complex(d) ? SCALAR_COMPLEX
         : v->tag == TAG_FLOAT || dtype_is_float(d)   ? SCALAR_FLOAT
         : v->tag == TAG_BOOL || d == DT_BOOL         ? SCALAR_BOOL
                                                      : SCALAR_BY_VALUE;
}

/* The kind of number that was given for a Scalar. A default counts as a plain number. */
static ScalarKind scalar_kind(const Arg *a, const Value *v, bool first) {
  bool scalar = a->type == ARG_SCALAR ||
                (a->type == ARG_TENSOR_OR_SCALAR && v->tag != TAG_TENSOR && !first);
  ScalarKind kind = scalar ? kind_of(v) : SCALAR_BY_VALUE;
  bool absent = kind && a->has_default && v->tag == a->fallback.tag && v->i == a->fallback.i;
  return absent ? SCALAR_BY_VALUE : kind;
}

/* Notes in the result's node which kinds of numbers the call was given. */
static NOINLINE void note_scalars(const Call *c) {
  bool made = c->result.tag == TAG_TENSOR || (c->result.tag == TAG_TENSORS && c->result.n);
  Tensor *y = made && !failed() ? result_tensor(&c->result, 0) : NULL;
  Node *n = y ? y->grad_fn : NULL;
  if (!n) return;
  const Schema *s = schema_of_row(c->row);
  n->row = (uint16_t)(c->row - op_rows);
  n->kinds = 0;
  for (int i = 0; i < c->n_args && i < NOTED_KINDS; i++)
    n->kinds |= (uint16_t)((unsigned)scalar_kind(&s->args[i], &c->v[i], i == 0) << 2 * i);
}

static void run_call(Call *c) {
  if (unusual_tensors && !takes_sparse(c)) return;
  if (c->row->no_complex && refuses_complex(c)) return;
  scalars_read = false;
  if (c->out.tag != TAG_MISSING) run_out(c);
  else if (c->inplace) run_inplace(c);
  else c->row->run(c);
  if (__builtin_expect(scalars_read, 0)) note_scalars(c);
}

/* The form of the tensors that a row's function makes before it comes to a door of its own; by the
 * rule of the door. */
static int32_t form_of_call(const Call *c) {
  const Tensor *t;
  int32_t form = form_made;
  for (int i = 0; i < c->n_args; i++)
    for (int at = -1; (t = value_next(&c->v[i], &at));)
      if (door_sets_form(&form, t)) return form;
  return form;
}

static void run_formed(Call *c) {
  const int32_t outside = form_made;
  if (unusual_tensors) form_made = form_of_call(c);
  const bool refused = form_made && (c->row->needs_elements || row_has(c->row, DYNAMIC) ||
                                     (find_sparse(c) && c->row->batch != BATCH_itself));
  if (refused) door_needs_elements(c->row->name);
  else run_call(c);
  form_made = outside;
}

void run_call_plain(Call *c) {
  const int32_t was = autocast_dtype;
  if (__builtin_expect((was | unusual_tensors | dispatch_now.asked) == 0, 1)) {
    run_call(c);
    return;
  }
  if (!was || autocast_prepare(c)) {
    if (watcher_answers) dispatch_call(c, run_formed);
    else run_formed(c);
  }
  autocast_dtype = was;
}
