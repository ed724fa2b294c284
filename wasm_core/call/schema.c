/* Parses the schemas of the op table, each when its row is first called; see schema.h. */
#include "call/schema.h"

#include <stdlib.h>
#include <string.h>

#include "ground/memory.h"
#include "ground/number.h"

/* ------------------------------------------------------------ names */

enum { NAMES_CAP = 2048 };
static const char **names;
static int32_t n_names = 1; /* id 0 is no name */

int32_t schema_intern_name(const char *text, int length) {
  if (!names && !(names = mem_permanent(NAMES_CAP * sizeof *names))) return 0;
  for (int32_t i = 1; i < n_names; i++)
    if (strncmp(names[i], text, (size_t)length) == 0 && names[i][length] == 0) return i;
  if (n_names == NAMES_CAP) return 0;
  char *copy = mem_permanent((size_t)length + 1);
  if (!copy) return 0;
  memcpy(copy, text, (size_t)length);
  names[n_names] = copy;
  return n_names++;
}

const char *schema_name_text(int32_t id) { return id > 0 && id < n_names ? names[id] : ""; }

/* ------------------------------------------------------------ schemas */

/* X(spelling in a schema, type, spelling in messages) */
#define ARG_ROWS(X)                                  \
  X("Tensor|Scalar", ARG_TENSOR_OR_SCALAR, "Tensor") \
  X("Scalar|Tensor", ARG_TENSOR_OR_SCALAR, "Tensor") \
  X("Tensor", ARG_TENSOR, "Tensor")                  \
  X("Tensor[]", ARG_TENSORS, "tuple of Tensors")     \
  X("Tensor?[]", ARG_TENSORS, "tuple of Tensors")    \
  X("Scalar", ARG_SCALAR, "Number")                  \
  X("int", ARG_INT, "int")                           \
  X("SymInt", ARG_INT, "int")                        \
  X("int|int[]", ARG_INT_OR_INTS, "tuple of ints")   \
  X("int[]", ARG_INTS, "tuple of ints")              \
  X("SymInt[]", ARG_INTS, "tuple of ints")           \
  X("float", ARG_FLOAT, "float")                     \
  X("float[]", ARG_FLOATS, "tuple of floats")        \
  X("Scalar[]", ARG_FLOATS, "tuple of Scalars")      \
  X("bool", ARG_BOOL, "bool")                        \
  X("bool[]", ARG_BOOLS, "tuple of bools")           \
  X("str", ARG_STR, "str")                           \
  X("ScalarType", ARG_DTYPE, "torch.dtype")          \
  X("Layout", ARG_STR, "torch.layout")               \
  X("Device", ARG_STR, "torch.device")               \
  X("MemoryFormat", ARG_STR, "torch.memory_format")  \
  X("Index", ARG_INDEX, "index")                     \
  X("Generator", ARG_GENERATOR, "torch.Generator")

const ArgKind arg_kinds[] = {
#define ROW(spelling, type, shown) {spelling, type, shown},
    ARG_ROWS(ROW)
#undef ROW
};

const Row *op_rows;
int n_op_rows;
static Schema **schemas; /* by row, parsed on first use */

static bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Parses "int[2]?": the type, its count, whether None is allowed. */
static bool parse_type(const char *text, int n, Arg *a) {
  char plain[32];
  int m = 0;
  for (int i = 0; i < n && m < 31; i++) {
    if (i == n - 1 && text[i] == '?') {
      a->nullable = true;
      continue;
    }
    if (text[i] == '(') { /* an alias mark: Tensor(a!) */
      while (i < n && text[i] != ')') i++;
      continue;
    }
    if (text[i] >= '0' && text[i] <= '9') {
      a->count = a->count * 10 + (text[i] - '0');
      continue;
    }
    plain[m++] = text[i];
  }
  plain[m] = 0;
  for (size_t k = 0; k < sizeof arg_kinds / sizeof *arg_kinds; k++)
    if (strcmp(plain, arg_kinds[k].spelling) == 0) {
      a->type = (uint8_t)arg_kinds[k].type;
      a->kind = (uint8_t)k;
      a->expands = a->count > 0;
      return true;
    }
  fail(ERR_RUNTIME, "pygrad: unknown type '%s' in a schema", plain);
  return false;
}

static void parse_list_default(const char *s, Value *v) {
  static const int64_t empty[1];
  int64_t numbers[MAX_ARGS];
  int n = 0;
  for (s++; *s && *s != ']' && n < MAX_ARGS;) {
    char *end;
    numbers[n++] = strtoll(s, &end, 10);
    for (s = end; *s == ',' || *s == ' ';) s++;
  }
  int64_t *kept = n ? mem_permanent((size_t)n * sizeof *kept) : NULL;
  if (kept) memcpy(kept, numbers, (size_t)n * sizeof *kept);
  *v = (Value){.tag = TAG_INTS, .n = kept ? n : 0, .p = kept ? kept : empty};
}

static void parse_default(const char *s, int n, Value *v) {
  char *end;
  if (n == 4 && strncmp(s, "None", 4) == 0) *v = (Value){.tag = TAG_NONE};
  else if (n == 4 && strncmp(s, "True", 4) == 0) *v = (Value){.tag = TAG_BOOL, .i = 1};
  else if (n == 5 && strncmp(s, "False", 5) == 0) *v = (Value){.tag = TAG_BOOL, .i = 0};
  else if (*s == '[') parse_list_default(s, v);
  else if (*s == '"' || *s == '\'')
    *v = (Value){.tag = TAG_STR, .s = schema_name_text(schema_intern_name(s + 1, n - 2))};
  else if (memchr(s, '.', (size_t)n) || (memchr(s, 'e', (size_t)n) && *s != 'M') ||
           strncmp(s, "inf", 3) == 0)
    *v = (Value){.tag = TAG_FLOAT, .f = number_value(s)};
  else if (is_name_char(*s) && !(*s >= '0' && *s <= '9'))
    *v = (Value){.tag = TAG_STR, .s = schema_name_text(schema_intern_name(s, n))};
  else *v = (Value){.tag = TAG_INT, .i = strtoll(s, &end, 10)};
}

/* PyTorch's SymInt arguments. Arguments that name a dimension are none, except a list of them. */
static bool is_sym_int(uint8_t type, const char *name) {
  return type == ARG_INTS || type == ARG_INT_OR_INTS ||
         (type == ARG_INT && strncmp(name, "dim", 3) != 0 && strncmp(name, "offset", 6) != 0);
}

/* Parses one "Type name=default" that ends before `end`. */
static bool parse_arg(const char *s, const char *end, Arg *a) {
  const char *space = s;
  while (space < end && *space != ' ') space++;
  if (!parse_type(s, (int)(space - s), a)) return false;
  const char *name = space + 1, *stop = name;
  while (stop < end && is_name_char(*stop)) stop++;
  a->name = schema_intern_name(name, (int)(stop - name));
  a->one_element = is_sym_int(a->type, name);
  if (stop < end && *stop == '=') {
    a->has_default = true;
    a->default_text = stop + 1;
    a->default_length = (int32_t)(end - stop - 1);
    parse_default(stop + 1, (int)(end - stop - 1), &a->fallback);
  }
  return true;
}

bool schema_same_name(int a, int b) { return strcmp(op_rows[a].name, op_rows[b].name) == 0; }

static ResultKind result_kind(const char *schema) {
  const char *p = strstr(schema, ") -> ");
  p = p ? p + 5 : "";
  if (strcmp(p, "()") == 0) return RESULT_NONE;
  if (strcmp(p, "Tensor[]") == 0) return RESULT_LIST;
  if (strncmp(p, "Tensor", 6) == 0) return RESULT_TENSOR;
  if (strncmp(p, "(Tensor values", 14) == 0) return RESULT_VALUES;
  return *p == '(' ? RESULT_TUPLE : RESULT_OTHER;
}

static const Schema *parse_schema(int row) {
  if (!schemas) schemas = mem_permanent((size_t)n_op_rows * sizeof *schemas);
  Schema *s = schemas ? mem_permanent(sizeof *s) : NULL;
  const char *p = s ? strchr(op_rows[row].schema, '(') : NULL;
  bool keyword_only = false;
  if (!p) return NULL;
  for (p++; *p && *p != ')';) {
    int depth = 0;
    const char *end = p;
    for (; *end && (depth || (*end != ',' && *end != ')')); end++)
      depth += (*end == '[' || *end == '(') - (*end == ']' || *end == ')');
    if (*p == '*') keyword_only = true;
    else if (s->n_args == MAX_ARGS || !parse_arg(p, end, &s->args[s->n_args])) return NULL;
    else s->args[s->n_args++].keyword_only = keyword_only;
    if (*p != '*' && !keyword_only) s->n_positional++;
    for (p = end; *p == ',' || *p == ' ';) p++;
  }
  for (int i = 0; i < s->n_args; i++) s->draws = s->draws || s->args[i].type == ARG_GENERATOR;
  s->result = result_kind(op_rows[row].schema);
  s->gathers = row_has(&op_rows[row], LIST_OR_MORE | MORE);
  s->overloaded = row + 1 < n_op_rows && schema_same_name(row, row + 1);
  for (int i = 0; i < s->n_args; i++)
    if (strcmp(schema_name_text(s->args[i].name), "inplace") == 0) {
      s->may_write = true;
      if (row_has(&op_rows[row], NN_INPLACE)) s->inplace_at = i;
    }
  return schemas[row] = s;
}

const Schema *schema_of(int row) {
  return schemas && schemas[row] ? schemas[row] : parse_schema(row);
}

const Schema *schema_of_row(const Row *row) {
  static const Schema none;
  const Schema *s = schema_of((int)(row - op_rows));
  return s ? s : &none;
}

const char *row_arg_name(const Row *row, int k) {
  const Schema *s = schema_of_row(row);
  return k < s->n_args ? schema_name_text(s->args[k].name) : "";
}

void schema_rebind(const Call *from, const Row *to, Call *c) {
  const Schema *old = schema_of_row(from->row), *s = schema_of_row(to);
  *c = (Call){.row = to, .n_args = s->n_args, .inplace = from->inplace};
  for (int i = 0; i < s->n_args; i++) {
    c->v[i] = s->args[i].fallback;
    for (int k = 0; k < old->n_args; k++)
      if (old->args[k].name == s->args[i].name) c->v[i] = from->v[k];
  }
}
