/* Parsed schemas of rows, and ids of the names in them. */
#ifndef PG_SCHEMA_H
#define PG_SCHEMA_H

#include "call/call.h"

/* Ids of names, stable for the life of the engine; equal names have equal ids. */
int32_t schema_intern_name(const char *text, int length);
const char *schema_name_text(int32_t id);

typedef enum {
  ARG_TENSOR,
  ARG_TENSOR_OR_SCALAR,
  ARG_TENSORS,
  ARG_SCALAR,
  ARG_INT,
  ARG_INTS,
  ARG_INT_OR_INTS,
  ARG_FLOAT,
  ARG_FLOATS,
  ARG_BOOL,
  ARG_BOOLS,
  ARG_STR,
  ARG_DTYPE,
  ARG_INDEX,
  ARG_GENERATOR
} ArgType;

typedef struct {
  const char *spelling; /* in a schema */
  ArgType type;
  const char *shown; /* in messages */
} ArgKind;
extern const ArgKind arg_kinds[];

typedef struct {
  int32_t name;
  uint8_t type, kind;                                /* ArgType, index into arg_kinds */
  bool nullable, keyword_only, has_default, expands; /* expands: int[2] takes one int for all */
  int32_t count;                                     /* N of int[N] */
  bool one_element; /* an int that also takes an integer tensor of one element, of any rank */
  const char *default_text; /* within the schema */
  int32_t default_length;
  Value fallback;
} Arg;

/* The result in a schema: none "()", a tensor "Tensor", a list "Tensor[]", a tuple "(Tensor,
 * Tensor)", a tuple with values first "(Tensor values, Tensor indices)", or other types. */
typedef enum {
  RESULT_OTHER,
  RESULT_NONE,
  RESULT_TENSOR,
  RESULT_LIST,
  RESULT_TUPLE,
  RESULT_VALUES
} ResultKind;

typedef struct {
  int32_t n_args, n_positional;
  bool gathers;    /* marked LIST_OR_MORE or MORE: takes separate tensors as its list */
  bool overloaded; /* the next row has the same name */
  /* rows marked NN_INPLACE: the number of the argument `inplace`; 0: none */
  int32_t inplace_at;
  bool draws;     /* takes a generator */
  bool may_write; /* has an argument `inplace` */
  ResultKind result;
  Arg args[MAX_ARGS];
} Schema;

const Schema *schema_of(int row); /* NULL if memory has run out */
bool schema_same_name(int row, int other);
/* The name of argument k of a row, "" past the end. */
const char *row_arg_name(const Row *row, int k);
const Schema *schema_of_row(const Row *row); /* without memory, one without arguments */
/* Fills *c with the arguments of a call for another row, by name, and defaults for the rest. */
void schema_rebind(const Call *from, const Row *to, Call *c);

#endif
