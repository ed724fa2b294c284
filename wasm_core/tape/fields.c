/* The numbers among a node's fields: the count of numbers that a field takes, and the host's kind
 * of a Scalar that is kept as a double. See FIELD_KINDS in graph.h. */
#include <string.h>

#include "call/schema.h"
#include "tape/graph.h"

Field field_of(const char *field) {
  static const char *const words[] = {
#define X(KIND, word, value) word,
      FIELD_KINDS(X)
#undef X
  };
  Field f = {FIELD_NONE, 0, field + strcspn(field, "= ")};
  if (*f.texts == '=') f.texts++;
  size_t length = strcspn(++field, "0123456789= |");
  for (int i = 0; i < FIELD_NONE; i++)
    if (strlen(words[i]) == length && strncmp(field, words[i], length) == 0) f.kind = (FieldKind)i;
  if (field[length] >= '0' && field[length] <= '9') f.count = field[length] - '0';
  return f;
}

int field_width(const Node *n, const Field *f, int at) {
  switch (f->kind) {
    case FIELD_INTS: return f->count ? f->count : at < n->n_numbers ? 1 + (int)n->numbers[at].i : 1;
    case FIELD_TEXT: return strcspn(f->texts, ",") < strcspn(f->texts, " ");
    case FIELD_WINDOW:
    case FIELD_OPTIONAL_WINDOW: return 3;
    case FIELD_REST: return n->n_numbers - at;
    case FIELD_SIZES:
    case FIELD_NUMEL:
    case FIELD_FALSE:
    case FIELD_NONE: return 0;
    default: return 1;
  }
}

/* Whether the word `name` ends at `end`. */
static bool ends_with(const char *start, const char *end, const char *name, size_t length) {
  return end - start > (ptrdiff_t)length && strncmp(end - length, name, length) == 0 &&
         end[-(ptrdiff_t)length - 1] == ' ';
}

/* The place of the number of Scalar `name` (NULL: of the first Scalar); -1: there is none. */
static int place_of_scalar(const Node *n, const char *name) {
  const char *start = strchr(n->type->fields, '|'), *field = start;
  size_t length = name ? strlen(name) : 0;
  int at = 0;
  if (!start) return -1;
  if (strchr(start, '(')) { /* a schema, of floats and Scalars after the first argument */
    for (field = strchr(start, ','); field; field = strchr(field + 1, ','), at++) {
      const char *end = field + 1 + strcspn(field + 1, "=,)");
      if (strncmp(field, ", Scalar ", 9) == 0 && (!name || ends_with(field, end, name, length)))
        return at;
    }
    return -1;
  }
  for (field = strchr(start, ':'); field; field = strchr(field + 1, ':')) {
    Field f = field_of(field);
    if (f.kind == FIELD_SCALAR && (!name || ends_with(start, field, name, length))) return at;
    at += field_width(n, &f, at);
  }
  return -1;
}

/* The place of the number that holds argument i of the node's row; -1: there is none. */
static int place_of_argument(const Node *n, const Schema *s, int i) {
  int at = place_of_scalar(n, schema_name_text(s->args[i].name)), n_scalars = 0;
  if (at >= 0 || s->args[i].type != ARG_SCALAR) return at;
  for (int k = 0; k < s->n_args; k++) n_scalars += s->args[k].type == ARG_SCALAR;
  return n_scalars == 1 ? place_of_scalar(n, NULL) : -1;
}

ScalarKind node_kind(const Node *n, int at) {
  const Schema *s = n->kinds ? schema_of_row(&op_rows[n->row]) : NULL;
  for (int i = 0; s && i < s->n_args && i < NOTED_KINDS; i++) {
    ScalarKind kind = (ScalarKind)(n->kinds >> 2 * i & 3);
    if (kind && place_of_argument(n, s, i) == at) return kind;
  }
  return SCALAR_BY_VALUE;
}
