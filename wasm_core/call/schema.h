/* What an op takes: its schema, parsed from the text of its row, and the names in it. */
#ifndef PG_SCHEMA_H
#define PG_SCHEMA_H

#include "call/call.h"

/* Ids of names, stable for the life of the engine; equal names have equal ids. */
int32_t name_intern(const char *text, int length);
const char *name_text(int32_t id);

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
  bool nullable, keyword_only, has_default, expands; /* int[2] takes one int for all */
  int32_t count;                                     /* N of int[N] */
  bool one_element; /* an int that an integer tensor of one element may stand for, of any rank */
  const char *default_text; /* within the schema */
  int32_t default_length;
  Value fallback;
} Arg;

/* What it gives: nothing "()", a tensor "Tensor", a list "Tensor[]", a tuple "(Tensor, Tensor)",
 * one that begins with values "(Tensor values, Tensor indices)", or what is no tensor. */
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
  bool gathers;    /* marked LIST_OR_MORE or MORE: takes tensors one by one where it has a list */
  bool overloaded; /* the next row is of the same name */
  /* of a row marked NN_INPLACE: the argument that asks for the in-place form; 0 if none */
  int32_t inplace_at;
  bool draws;     /* takes a generator */
  bool may_write; /* has an argument `inplace` */
  ResultKind result;
  Arg args[MAX_ARGS];
} Schema;

const Schema *schema_of(int row); /* NULL if memory has run out */
bool same_name(int row, int other);
/* The name of argument k of a row, "" past the end. */
const char *row_arg_name(const Row *row, int k);
const Schema *schema_of_row(const Row *row); /* one without arguments if memory has run out */
/* The arguments of a call for another row, by name; defaults for the rest. */
void rebind(const Call *from, const Row *to, Call *c);

#endif
