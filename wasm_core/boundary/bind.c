/* Binds arguments to schemas, or fails with PyTorch's error for arguments that do not fit; see
 * bind.h. */
#include "boundary/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/schema.h"
#include "ground/memory.h"
#include "kernels/simd.h"
#include "transforms/vmap.h"

/* ------------------------------------------------------------ reading the frame */

static int tag_of(const PgFrame *f, int k) { return (int)(f->tags >> (4 * k) & 15); }

/* A slot has 32 bits of an address; the upper bits are those of the frame's address. */
static const void *address_of(const PgFrame *f, int64_t slot) {
  return (const char *)f + ((uint32_t)slot - (uint32_t)(uintptr_t)f);
}

/* OTHER may also be a list: its text is the list's type, then the type of the first unfit item, and
 * n is that item's place, from 1. */
static Value value_of(const PgFrame *f, int tag, int64_t slot) {
  Value v = {.tag = (uint8_t)tag, .i = slot};
  if (tag == TAG_OTHER ? slot >> 62 & 1 : tag >= TAG_INTS && tag <= TAG_BOOLS) {
    v.n = (int32_t)(slot >> 32 & 0x3fffffff);
    v.from_list = slot >> 62 & 1;
    v.p = address_of(f, slot);
  } else if (tag == TAG_COMPLEX) {
    v.p = address_of(f, slot);
  } else if (tag == TAG_TENSOR || tag == TAG_STR || tag == TAG_OTHER) {
    v.p = (const void *)(uintptr_t)slot;
  }
  return v;
}

static Value frame_value(const PgFrame *f, int k) { return value_of(f, tag_of(f, k), f->slots[k]); }

/* Copies the value out of the frame, which a callback during the call may overwrite. */
static bool keep_list(Value *v) {
  size_t n_bytes;
  switch (v->tag) {
    case TAG_INTS:
    case TAG_FLOATS:
    case TAG_TENSORS:
    case TAG_INDEX:
    case TAG_BOOLS: n_bytes = (size_t)v->n * 8; break;
    case TAG_COMPLEX: n_bytes = sizeof(complex_f64); break;
    case TAG_STR: n_bytes = strlen(v->s) + 1; break;
    default: return true;
  }
  void *kept = scratch_alloc(n_bytes);
  if (!kept) return false;
  memcpy(kept, v->p, n_bytes);
  v->p = kept;
  return true;
}

static bool batched_number; /* a batched tensor was given for a number */

/* Whether the single element of t can be read as a number. */
static bool shows_number(const Tensor *t) {
  batched_number = batched_number || t->flags & FLAG_BATCHED;
  return !(t->flags & FLAG_BATCHED) && !is_sparse(t);
}

static bool zero_dim(const Value *v) {
  return v->tag == TAG_TENSOR && tensor_is(v->t) && !v->t->ndim && shows_number(v->t);
}
static bool is_number(const Value *v) {
  return v->tag == TAG_INT || v->tag == TAG_FLOAT || v->tag == TAG_BOOL || v->tag == TAG_COMPLEX;
}
static bool is_empty_list(const Value *v) { return v->tag == TAG_INTS && v->n == 0; }
/* Set for the second attempt, if no overload takes the tensors unconverted. */
static bool one_elements_are_ints;

static bool one_element(const Arg *a, const Value *v) {
  return one_elements_are_ints && a->one_element && v->tag == TAG_TENSOR && tensor_is(v->t) &&
         v->t->numel == 1 && shows_number(v->t);
}
static bool is_int(const Arg *a, const Value *v) {
  return v->tag == TAG_INT ||
         ((zero_dim(v) || one_element(a, v)) && !dtype_is_inexact(tensor_dtype(v->t)));
}

static bool fits(const Arg *a, const Value *v) {
  if (v->tag == TAG_NONE) return a->nullable || (a->has_default && a->fallback.tag == TAG_NONE);
  switch ((ArgType)a->type) {
    case ARG_TENSOR: return v->tag == TAG_TENSOR;
    case ARG_TENSOR_OR_SCALAR: return v->tag == TAG_TENSOR || is_number(v);
    case ARG_TENSORS: return v->tag == TAG_TENSORS || is_empty_list(v);
    case ARG_SCALAR: return is_number(v) || zero_dim(v);
    case ARG_INT: return is_int(a, v);
    case ARG_INTS: return v->tag == TAG_INTS || (a->expands && is_int(a, v));
    case ARG_INT_OR_INTS: return v->tag == TAG_INTS || is_int(a, v);
    case ARG_FLOAT:
      return v->tag == TAG_FLOAT || v->tag == TAG_INT || v->tag == TAG_BOOL || zero_dim(v);
    case ARG_FLOATS: return v->tag == TAG_FLOATS || v->tag == TAG_INTS;
    case ARG_BOOL: return v->tag == TAG_BOOL;
    case ARG_BOOLS: return v->tag == TAG_BOOLS || is_empty_list(v);
    case ARG_STR:
      return v->tag == TAG_STR ||
             (v->tag == TAG_INT && strcmp(arg_kinds[a->kind].spelling, "Device") == 0);
    case ARG_DTYPE: return v->tag == TAG_DTYPE;
    case ARG_INDEX: return v->tag == TAG_INDEX;
    case ARG_GENERATOR: return v->tag == TAG_GENERATOR;
  }
  return false;
}

/* ------------------------------------------------------------ binding */

typedef enum { FIT, TOO_MANY, NO_TENSOR, MISSING, UNEXPECTED, REPEATED, WRONG_TYPE } Misfit;

typedef struct {
  Misfit why;
  int arg, position; /* places in the schema and in the call (-1: a keyword) */
  int32_t name;
} Verdict;

static int32_t id_out, id_axis, id_dim, id_keepdims, id_keepdim, id_input, id_self, id_other, id_x,
    id_a, id_x1, id_x2;

static void know_names(void) {
  if (id_out) return;
#define KNOW(name) id_##name = schema_intern_name(#name, (int)sizeof #name - 1)
  KNOW(axis);
  KNOW(dim);
  KNOW(keepdims);
  KNOW(keepdim);
  KNOW(input);
  KNOW(self);
  KNOW(other);
  KNOW(x);
  KNOW(a);
  KNOW(x1);
  KNOW(x2);
  KNOW(out);
#undef KNOW
}

static int32_t other_spelling(int32_t name) {
  return name == id_axis       ? id_dim
         : name == id_keepdims ? id_keepdim
         : name == id_input    ? id_self
         : name == id_x2       ? id_other
                               : name;
}

/* NumPy's names for PyTorch's `input`. */
static bool names_input(int32_t name) { return name == id_x || name == id_a || name == id_x1; }

static int find_arg(const Schema *s, int32_t name) {
  for (int i = 0; i < s->n_args; i++)
    if (s->args[i].name == name) return i;
  int32_t other = other_spelling(name);
  for (int i = 0; i < s->n_args && other != name; i++)
    if (s->args[i].name == other) return i;
  bool first = names_input(name) && s->n_args &&
               (s->args[0].name == id_self || s->args[0].name == id_input);
  return first ? 0 : -1;
}

/* x.view(2, 3): whether the ints from position k on form one list, the only positional argument. */
static bool gathers(const Schema *s, const PgFrame *f, int k) {
  if (k != (f->mode & PG_METHOD ? 1 : 0) || k != s->n_positional - 1 ||
      (s->args[k].type != ARG_INTS && s->args[k].type != ARG_INT_OR_INTS))
    return false;
  if (s->args[k].expands && s->args[k].count > 1 && f->n_positional - k < 2) return false;
  for (int i = k; i < f->n_positional; i++) {
    Value v = frame_value(f, i);
    if (!is_int(&s->args[k], &v)) return false;
  }
  int rest = f->n_positional - k;
  return rest > 1 || s->args[k].type == ARG_INTS;
}

/* Whether further arguments may belong to the list of the last positional one. */
static bool takes_more(const Row *row, const Schema *s, const PgFrame *f) {
  int last = s->n_positional - 1;
  if (last < 0) return false;
  return s->args[last].type == ARG_TENSORS
             ? row_has(row, LIST_OR_MORE | MORE)
             : s->args[last].type == ARG_INTS && last == (f->mode & PG_METHOD ? 1 : 0);
}

static Value gather(const PgFrame *f, int k, int64_t *into) {
  int n = f->n_positional - k;
  for (int i = 0; i < n; i++) {
    Value v = frame_value(f, k + i);
    into[i] = v.tag == TAG_TENSOR ? tensor_get_i(v.t, 0) : v.i;
  }
  return (Value){.tag = TAG_INTS, .n = n, .p = into};
}

/* The first argument from k on that is no tensor, or n_positional. */
static int first_other(const PgFrame *f, int k) {
  while (k < f->n_positional && tag_of(f, k) == TAG_TENSOR) k++;
  return k;
}

/* meshgrid(a, b): a LIST_OR_MORE row also takes its list of tensors as separate arguments, a MORE
 * row only so. */
static bool gathers_tensors(const Row *row, const PgFrame *f, int k) {
  return row_has(row, MORE) || (row_has(row, LIST_OR_MORE) && tag_of(f, k) == TAG_TENSOR);
}

/* Converts a list of one-element integer tensors to ints; other lists are returned unchanged. None,
 * which looks like an absent tensor, becomes INT64_MIN. */
static Value tensors_as_ints(Value v) {
  const int64_t *handles = v.p;
  int64_t *ints = scratch_array(v.n ? v.n : 1, sizeof *ints);
  for (int i = 0; ints && i < v.n; i++) {
    const Tensor *t = (const Tensor *)(uintptr_t)handles[i];
    if (t && (t->numel != 1 || !shows_number(t) || dtype_is_inexact(tensor_dtype(t)))) return v;
    ints[i] = t ? tensor_get_i(t, 0) : INT64_MIN;
  }
  return ints ? (Value){.tag = TAG_INTS, .n = v.n, .p = ints} : v;
}

static Verdict take(const Schema *s, int arg, Value v, int position, Call *c) {
  if (c->v[arg].tag != TAG_MISSING) return (Verdict){REPEATED, arg, position, s->args[arg].name};
  if (v.tag == TAG_TENSORS &&
      (s->args[arg].type == ARG_INTS || s->args[arg].type == ARG_INT_OR_INTS))
    v = tensors_as_ints(v);
  if (!fits(&s->args[arg], &v)) return (Verdict){WRONG_TYPE, arg, position, s->args[arg].name};
  c->v[arg] = v;
  return (Verdict){FIT, 0, 0, 0};
}

static Verdict bind_row(int row, const PgFrame *f, Call *c, int64_t *gathered) {
  const Schema *s = schema_of(row);
  if (!s) return (Verdict){WRONG_TYPE, 0, 0, 0};
  c->row = &op_rows[row];
  c->n_args = s->n_args;
  c->out = (Value){.tag = TAG_MISSING};
  for (int i = 0; i < s->n_args; i++) c->v[i] = (Value){.tag = TAG_MISSING};
  bool first_list = true;
  if (f->n_positional > s->n_positional && !takes_more(c->row, s, f))
    return (Verdict){TOO_MANY, 0, -1, 0};
  for (int i = 0; i < f->n_positional; i++) {
    if (i >= s->n_positional) return (Verdict){TOO_MANY, 0, -1, 0};
    if (first_list && s->args[i].type != ARG_TENSOR && s->args[i].type != ARG_TENSOR_OR_SCALAR) {
      first_list = false;
      if (gathers(s, f, i)) {
        c->v[i] = gather(f, i, gathered);
        break;
      }
    }
    if (s->args[i].type == ARG_TENSORS && gathers_tensors(c->row, f, i)) {
      if (first_other(f, i) < f->n_positional) return (Verdict){NO_TENSOR, i, first_other(f, i), 0};
      c->v[i] = (Value){.tag = TAG_TENSORS, .n = f->n_positional - i, .p = f->slots + i};
      break;
    }
    Verdict v = take(s, i, frame_value(f, i), i, c);
    if (v.why != FIT) return v;
  }
  for (int k = 0; k < f->n_keyword; k++) {
    int at = find_arg(s, f->keywords[k]);
    Value value = frame_value(f, f->n_positional + k);
    if (at < 0 && f->keywords[k] == id_out && row_has(c->row, OUT)) {
      if (value.tag != TAG_NONE) c->out = value;
      continue;
    }
    if (at < 0 || (s->args[at].type == ARG_TENSORS && row_has(c->row, MORE)))
      return (Verdict){UNEXPECTED, 0, -1, f->keywords[k]};
    Verdict v = take(s, at, value, -1, c);
    if (v.why != FIT) return v;
  }
  for (int i = 0; i < s->n_args; i++) {
    if (c->v[i].tag != TAG_MISSING) continue;
    if (s->args[i].type == ARG_TENSORS && row_has(c->row, LIST_OR_MORE | MORE))
      c->v[i] = (Value){.tag = TAG_TENSORS, .p = f->slots};
    else if (!s->args[i].has_default) return (Verdict){MISSING, i, -1, s->args[i].name};
    else c->v[i] = s->args[i].fallback;
  }
  return (Verdict){FIT, 0, 0, 0};
}

/* ------------------------------------------------------------ messages */

static const char *shown_type(const Value *v) {
  static const char *const texts[] = {[TAG_NONE] = "NoneType",
                                      [TAG_TENSOR] = "Tensor",
                                      [TAG_INT] = "int",
                                      [TAG_FLOAT] = "float",
                                      [TAG_BOOL] = "bool",
                                      [TAG_STR] = "str",
                                      [TAG_DTYPE] = "torch.dtype",
                                      [TAG_INTS] = "tuple of ints",
                                      [TAG_FLOATS] = "tuple of floats",
                                      [TAG_TENSORS] = "tuple of Tensors",
                                      [TAG_INDEX] = "index",
                                      [TAG_BOOLS] = "tuple of bools",
                                      [TAG_COMPLEX] = "complex",
                                      [TAG_GENERATOR] = "torch.Generator"};
  if (v->tag == TAG_OTHER) return v->s;
  if (v->tag == TAG_INTS || v->tag == TAG_FLOATS || v->tag == TAG_TENSORS || v->tag == TAG_BOOLS)
    return v->from_list ? "list" : "tuple";
  return v->tag < sizeof texts / sizeof *texts && texts[v->tag] ? texts[v->tag] : "object";
}

static const char *shown_name(int32_t name, bool method) {
  return name == id_self && !method ? "input" : schema_name_text(name);
}

/* The type of an unfit item in an argument that should be a list of tensors or ints, and its place,
 * from 0. */
static const char *odd_item(const Schema *s, const PgFrame *f, const Verdict *v, const Value *given,
                            int *place) {
  ArgType type = s->args[v->arg].type;
  int at = v->position, first = f->mode & PG_METHOD ? 1 : 0;
  *place = v->why == NO_TENSOR ? at - v->arg : given->tag == TAG_OTHER ? given->n - 1 : 0;
  if (v->why == NO_TENSOR) return shown_type(given);
  if (type != ARG_TENSORS && type != ARG_INTS) return NULL;
  if (given->tag == TAG_OTHER) return given->n ? given->s + strlen(given->s) + 1 : NULL;
  if (type == ARG_TENSORS)
    return given->tag == TAG_INTS     ? "int"
           : given->tag == TAG_FLOATS ? "float"
           : given->tag == TAG_BOOLS  ? "bool"
                                      : NULL;
  if (at != first || v->arg != s->n_positional - 1) return NULL;
  while (at < f->n_positional - 1 && tag_of(f, at) == TAG_INT) at++;
  *place = at - first;
  Value item = frame_value(f, at);
  return *place && item.tag != TAG_INT ? shown_type(&item) : NULL;
}

static int n_needed(const Schema *s) {
  int n = 0;
  for (int i = 0; i < s->n_args; i++) n += !s->args[i].has_default;
  return n;
}

SMALL static void explain_one(const Schema *s, const PgFrame *f, const Verdict *v, const char *op) {
  bool method = f->mode & PG_METHOD;
  int shift = method ? 1 : 0;
  if (v->why == TOO_MANY) {
    int most = s->n_positional - shift, given = f->n_positional - shift;
    if (method && s->n_args == 1) {
      fail(ERR_TYPE, "TensorBase.%s() takes no arguments (%d given)", op, given);
      return;
    }
    char least[32] = "";
    if (n_needed(s) - shift != most)
      snprintf(least, sizeof least, "from %d to ", n_needed(s) - shift);
    fail(ERR_TYPE, "%s() takes %s%d positional argument%s but %d %s given", op, least, most,
         most == 1 && !*least ? "" : "s", given, given == 1 ? "was" : "were");
  } else if (v->why == MISSING) {
    char list[512] = "";
    int n = 0;
    for (int i = v->arg; i < s->n_args; i++) {
      bool given = i < f->n_positional;
      for (int k = 0; k < f->n_keyword; k++) given = given || find_arg(s, f->keywords[k]) == i;
      if (s->args[i].has_default || given) continue;
      snprintf(list + strlen(list), sizeof list - strlen(list), "%s\"%s\"", n++ ? ", " : "",
               shown_name(s->args[i].name, method));
    }
    fail(ERR_TYPE, "%s() missing %d required positional arguments: %s", op, n, list);
  } else if (v->why == UNEXPECTED) {
    fail(ERR_TYPE, "%s() got an unexpected keyword argument '%s'", op, schema_name_text(v->name));
  } else if (v->why == REPEATED) {
    fail(ERR_TYPE, "%s() got multiple values for argument '%s'", op, shown_name(v->name, method));
  } else {
    Value given = {.tag = TAG_NONE};
    for (int k = 0; k < f->n_keyword; k++)
      if (find_arg(s, f->keywords[k]) == v->arg) given = frame_value(f, f->n_positional + k);
    if (v->position >= 0) given = frame_value(f, v->position);
    int place;
    const char *item = odd_item(s, f, v, &given, &place), *name = shown_name(v->name, method),
               *shown = arg_kinds[s->args[v->arg].kind].shown;
    char position[32] = "";
    if (v->position >= 0)
      snprintf(position, sizeof position, " (position %d)", v->position + 1 - shift);
    if (item && s->args[v->arg].type == ARG_TENSORS)
      fail(ERR_TYPE, "expected Tensor as element %d in argument %d, but got %s", place, v->arg,
           item);
    else if (item && place)
      fail(ERR_TYPE,
           "%s(): argument '%s' failed to unpack the object at pos %d with error \"type must be "
           "%s,but got %s\"",
           op, name, place + 1, shown, item);
    else if (item)
      fail(ERR_TYPE, "%s(): argument '%s'%s must be %s, but found element of type %s at pos 0", op,
           name, position, shown, item);
    else
      fail(ERR_TYPE, "%s(): argument '%s'%s must be %s, not %s", op, name, position, shown,
           shown_type(&given));
  }
}

SMALL static size_t append(char *out, size_t at, size_t cap, const char *text) {
  int n = snprintf(out + at, cap - at, "%s", text);
  return n < 0 || at + (size_t)n >= cap ? cap - 1 : at + (size_t)n;
}

SMALL static size_t append_default(char *out, size_t at, size_t cap, const Arg *a) {
  bool quoted = *a->default_text == '\'';
  int n = a->default_length - 2 * quoted;
  char text[64];
  snprintf(text, sizeof text, quoted ? " = \"%.*s\"" : " = %.*s", n, a->default_text + quoted);
  return append(out, at, cap, text);
}

SMALL static size_t append_schema(char *out, size_t at, size_t cap, int row, bool method) {
  const Schema *s = schema_of(row);
  if (!s) return at;
  bool star = false, any = false;
  at = append(out, at, cap, " * (");
  for (int i = method ? 1 : 0; i < s->n_args; i++) {
    if (any) at = append(out, at, cap, ", ");
    if (s->args[i].keyword_only && !star) at = append(out, at, cap, "*, ");
    star = star || s->args[i].keyword_only;
    any = true;
    at = append(out, at, cap, arg_kinds[s->args[i].kind].shown);
    at = append(out, at, cap, " ");
    at = append(out, at, cap, shown_name(s->args[i].name, method));
    if (s->args[i].has_default) at = append_default(out, at, cap, &s->args[i]);
  }
  if (!method && row_has(&op_rows[row], OUT)) {
    const char *kind = s->result == RESULT_TUPLE || s->result == RESULT_VALUES ? "tuple of Tensors"
                                                                               : "Tensor";
    at = append(out, at, cap, star ? ", " : any ? ", *, " : "*, ");
    at = append(out, at, cap, kind);
    at = append(out, at, cap, " out = None");
  }
  return append(out, at, cap, ")\n");
}

/* PyTorch's line for a schema with as many pieces (a * counts) as arguments that did not match. It
 * counts a piece with a default, or of type Number, as another type. No line for lists, whose items
 * it would show but are unknown here. */
SMALL static size_t append_mismatch(char *out, size_t from, size_t at, size_t cap, const PgFrame *f,
                                    const Schema *s) {
  int shift = f->mode & PG_METHOD ? 1 : 0, given = f->n_positional + f->n_keyword - shift,
      pieces = 1;
  char *piece = out + from + strlen(" * (");
  for (const char *p = piece; (p = strstr(p, ", ")); p++) pieces++;
  if (!s || pieces != given || (f->n_keyword && (given > 1 || find_arg(s, f->keywords[0]) >= 0)))
    return at;
  if (f->n_keyword) {
    at = append(out, at, cap, "      didn't match because some of the keywords were incorrect: ");
    return append(out, append(out, at, cap, schema_name_text(f->keywords[0])), cap, "\n");
  }
  char line[256] = "      didn't match because some of the arguments have invalid types: (";
  size_t n = strlen(line);
  for (int i = 0; i < given; i++) {
    Value v = frame_value(f, i + shift);
    if (v.tag >= TAG_INTS && v.tag != TAG_STR && v.tag != TAG_DTYPE && v.tag != TAG_OTHER)
      return at;
    const char *type = shown_type(&v);
    if (strstr(type, " of ")) return at;
    size_t width = strlen(type), length = strcspn(piece, ",)");
    bool fits = strncmp(piece, type, width) == 0 && piece[width] == ' ' &&
                !memchr(piece, '=', length);
    n += (size_t)snprintf(line + n, sizeof line - n, "%s%s%s%s", i ? ", " : "", fits ? "" : "!",
                          type, fits ? "" : "!");
    if (n >= sizeof line) return at;
    piece += length + 2;
  }
  at = append(out, at, cap, line);
  return append(out, at, cap, ")\n");
}

SMALL static void explain_overloads(int first, int last, const PgFrame *f, const char *op) {
  enum { CAP = 4096 };
  char *text = scratch_alloc(CAP);
  if (!text) return;
  bool method = f->mode & PG_METHOD;
  size_t at = append(text, 0, CAP, op);
  at = append(text, at, CAP, "() received an invalid combination of arguments - got (");
  for (int i = method ? 1 : 0; i < f->n_positional + f->n_keyword; i++) {
    Value v = frame_value(f, i);
    if (i > (method ? 1 : 0)) at = append(text, at, CAP, ", ");
    if (i >= f->n_positional) {
      at = append(text, at, CAP, schema_name_text(f->keywords[i - f->n_positional]));
      at = append(text, at, CAP, "=");
    }
    at = append(text, at, CAP, shown_type(&v));
  }
  /* as PyTorch ends a list of only keywords */
  if (f->n_positional == method && f->n_keyword) at = append(text, at, CAP, ", ");
  at = append(text, at, CAP, "), but expected one of:\n");
  for (int row = first; row < last; row++) {
    size_t from = at;
    at = append_schema(text, at, CAP, row, method);
    at = append_mismatch(text, from, at, CAP, f, schema_of(row));
  }
  fail(ERR_TYPE, "%s", text);
}

/* ------------------------------------------------------------ calls */

/* Whether a row takes the given number of arguments. */
static bool plausible_for(int row, const PgFrame *f) {
  const Schema *s = schema_of(row);
  int given = f->n_positional + f->n_keyword;
  return s && given >= n_needed(s) &&
         given <= s->n_args + (!(f->mode & PG_METHOD) && row_has(&op_rows[row], OUT));
}

static bool check_handle(const Tensor *t) {
  if (tensor_is(t)) return true;
  fail(ERR_RUNTIME, "pygrad: a handle is not that of a live tensor (was it released, or made by "
                    "another engine?)");
  return false;
}

static bool check_handles(const PgFrame *f) {
  for (int i = 0; i < f->n_positional + f->n_keyword; i++) {
    Value v = frame_value(f, i);
    if (v.tag == TAG_TENSOR && !check_handle(v.t)) return false;
    const int64_t *handles = v.p;
    for (int k = 0; v.tag == TAG_TENSORS && k < v.n; k++)
      if (handles[k] && !check_handle((const Tensor *)(uintptr_t)handles[k])) return false;
  }
  return true;
}

static bool keep_values(Call *c) {
  for (int i = 0; i < c->n_args; i++)
    if (!keep_list(&c->v[i])) return false;
  return keep_list(&c->out);
}

/* x[i]: converts the integer to an index; see ops/index/index.def. */
static bool index_of(Value *v) {
  int64_t *words = scratch_alloc(2 * sizeof *words);
  if (!words) return false;
  words[0] = 2;
  words[1] = v->i;
  *v = (Value){.tag = TAG_INDEX, .n = 2, .p = words};
  return true;
}

/* Binds a value that fits without conversion; no tensors, and lists of tensors only with valid
 * handles. */
static bool take_quickly(const PgFrame *f, const Schema *s, int i, Value *v) {
  const Arg *a = &s->args[i];
  *v = value_of(f, v->tag, v->i);
  bool list = a->type == ARG_TENSORS;
  if (v->tag == TAG_TENSOR || (list && s->gathers) || !fits(a, v)) return false;
  const int64_t *handles = v->p;
  for (int k = 0; list && k < v->n; k++)
    if (handles[k] && !tensor_is((const Tensor *)(uintptr_t)handles[k])) return false;
  return f->mode & PG_PREPARED || keep_list(v); /* a prepared frame does not change */
}

/* Binds a value of any tag that needs no slow conversion; v has its tag and slot. */
static bool bind_value(const PgFrame *f, const Schema *s, int i, Value *v) {
  uint8_t type = s->args[i].type;
  if (v->tag == TAG_TENSOR) {
    v->t = (Tensor *)(uintptr_t)v->i;
    return type <= ARG_TENSOR_OR_SCALAR && tensor_is(v->t);
  }
  if (type == ARG_INDEX && v->tag == TAG_INT) return index_of(v);
  return (is_number(v) && type == ARG_TENSOR_OR_SCALAR) || take_quickly(f, s, i, v);
}

typedef struct {
  int32_t row;
  int n, n_keyword;
  uint64_t tags; /* of the n positional arguments, the first in the low bits */
  const int64_t *slots;
  uint8_t mode;
} Given;

/* NEVER: the arguments cannot fit this row, but may fit the next overload. UNCLEAR: bind slowly. */
typedef enum { NEVER, UNCLEAR, BOUND } Quick;

/* Whether positional argument i may be a list given as separate ints. */
static bool is_gathering(const Schema *s, const Given *g, int i) {
  uint8_t type = s->args[i].type;
  return i == s->n_positional - 1 && i == (g->mode & PG_METHOD ? 1 : 0) &&
         (type == ARG_INTS || (type == ARG_INT_OR_INTS && g->n - i > 1));
}

/* `gathers` and `gather` for plain ints. */
static bool gather_quickly(const Schema *s, const Given *g, int i, uint64_t tags, Value *v) {
  int n = g->n - i;
  if (s->args[i].expands && s->args[i].count > 1 && n < 2) return false;
  for (int k = 0; k < n; k++, tags >>= 4)
    if ((tags & 15) != TAG_INT) return false;
  int64_t *ints = scratch_array(n, sizeof *ints);
  if (!ints) return false;
  memcpy(ints, g->slots + i, (size_t)n * sizeof *ints);
  *v = (Value){.tag = TAG_INTS, .n = n, .p = ints};
  return true;
}

/* Binds keywords for argument i and later ones; first tries the schema's order. */
static Quick bind_keywords(const PgFrame *f, const Schema *s, int i, Call *c) {
  for (int k = i; k < s->n_args; k++) c->v[k].tag = TAG_MISSING;
  for (int k = 0; k < f->n_keyword; k++, i++) {
    if (i >= s->n_args || s->args[i].name != f->keywords[k]) i = find_arg(s, f->keywords[k]);
    if (i < 0) return f->keywords[k] == id_out ? UNCLEAR : NEVER;
    if (c->v[i].tag != TAG_MISSING) return UNCLEAR;
    c->v[i].tag = (uint8_t)tag_of(f, f->n_positional + k);
    c->v[i].i = f->slots[f->n_positional + k];
    if (!bind_value(f, s, i, &c->v[i])) return UNCLEAR;
  }
  return BOUND;
}

/* Binds one row, if the values need no conversion. */
static Quick bind_row_quickly(const PgFrame *f, const Schema *s, const Given *g, Call *c) {
  int i = 0, last = s->n_positional - 1;
  if (g->n > s->n_positional && (last < 0 || !is_gathering(s, g, last)))
    return s->gathers ? UNCLEAR : NEVER;
  uint64_t tags = g->tags;
  for (; i < g->n; i++, tags >>= 4) {
    int tag = (int)(tags & 15);
    if (tag == TAG_INT && is_gathering(s, g, i)) {
      if (!gather_quickly(s, g, i, tags, &c->v[i])) return UNCLEAR;
      i++;
      break;
    }
    c->v[i].tag = (uint8_t)tag;
    c->v[i].i = g->slots[i];
    if (!bind_value(f, s, i, &c->v[i])) return UNCLEAR;
  }
  Quick found = g->n_keyword ? bind_keywords(f, s, i, c) : BOUND;
  for (; i < s->n_args && found == BOUND; i++) {
    if (g->n_keyword && c->v[i].tag != TAG_MISSING) continue;
    if (!s->args[i].has_default) return UNCLEAR;
    c->v[i] = s->args[i].fallback;
  }
  return found;
}

/* Binds the common call: values that need no conversion, and no earlier overload that could fit.
 * False: bind slowly. */
static bool bind_quickly(const PgFrame *f, const Given *g, Call *c) {
  for (int32_t row = g->row; (uint32_t)row < (uint32_t)n_op_rows; row++) {
    const Schema *s = schema_of(row);
    Quick found = s ? bind_row_quickly(f, s, g, c) : UNCLEAR;
    if (found == NEVER && s->overloaded) continue;
    if (found != BOUND) return false;
    c->row = &op_rows[row];
    c->n_args = s->n_args;
    c->out.tag = TAG_MISSING;
    c->inplace = (g->mode & PG_INPLACE) || (s->inplace_at && c->v[s->inplace_at].i);
    c->name = NULL;
    c->result = (Result){.tag = TAG_NONE};
    return true;
  }
  return false;
}

bool bind_two(PgFrame *f, Call *c, int64_t head, int64_t a, int64_t b) {
  if (head >> 48 & PG_PREPARED) return bind((const PgFrame *)(uintptr_t)a, c);
  int64_t slots[2] = {a, b};
  int n = (int)(head >> 32 & 3);
  uint64_t tags = (uint64_t)head >> 40 & 255;
  uint8_t mode = (uint8_t)(head >> 48);
  if (bind_quickly(f, &(Given){(int32_t)head, n, 0, tags, slots, mode}, c)) return true;
  f->row = (int32_t)head;
  f->n_positional = (uint8_t)n;
  f->n_keyword = 0;
  f->mode = mode;
  f->tags = tags;
  memcpy(f->slots, slots, sizeof slots);
  return bind(f, c);
}

/* Binds the first overload that takes the arguments; false if none does or on an error. */
static bool bind_overload(int first, int last, const PgFrame *f, Call *c, int64_t *gathered) {
  for (int row = first; row < last; row++) {
    if (bind_row(row, f, c, gathered).why == FIT) {
      int at = schema_of(row)->inplace_at;
      c->inplace = c->inplace || (at && c->v[at].i);
      return keep_values(c);
    }
    if (failed()) return false;
  }
  return false;
}

bool bind(const PgFrame *f, Call *c) {
  know_names();
  if (f->n_positional + f->n_keyword <= PG_MAX_ARGS &&
      bind_quickly(f, &(Given){f->row, f->n_positional, f->n_keyword, f->tags, f->slots, f->mode},
                   c))
    return true;
  int64_t gathered[PG_MAX_ARGS];
  int first = f->row, last = first + 1;
  if (first < 0 || first >= n_op_rows || f->n_positional + f->n_keyword > PG_MAX_ARGS) {
    fail(ERR_TYPE, "pygrad: no op number %d takes %d arguments", first,
         f->n_positional + f->n_keyword);
    return false;
  }
  if (!check_handles(f)) return false;
  while (last < n_op_rows && schema_same_name(first, last)) last++;
  c->inplace = f->mode & PG_INPLACE;
  c->result = (Result){.tag = TAG_NONE};
  c->name = NULL;
  batched_number = one_elements_are_ints = false;
  if (bind_overload(first, last, f, c, gathered)) return true;
  one_elements_are_ints = true;
  bool bound = !failed() && bind_overload(first, last, f, c, gathered);
  one_elements_are_ints = false;
  if (bound || failed()) return bound;
  if (batched_number) return vmap_item_error();
  const char *op = row_shown(&op_rows[first], c->inplace);
  int plausible = 0, row = first;
  for (int k = first; k < last; k++)
    if (plausible_for(k, f) && !plausible++) row = k;
  if (last == first + 1 || plausible == 1) {
    Verdict verdict = bind_row(row, f, c, gathered);
    explain_one(schema_of(row), f, &verdict, op);
  } else {
    explain_overloads(first, last, f, op);
  }
  return false;
}
