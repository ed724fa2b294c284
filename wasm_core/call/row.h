/* A row of the op table: an op's name, schema, namespaces and properties.
 *
 * Each property of an op is a word in its row, which the compiler checks and pg_describe passes to
 * hosts. Nothing depends on an op's name or on the text of its schema. */
#ifndef PG_ROW_H
#define PG_ROW_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Call Call;

/* clang-format off */
/* X(WORD, pg_describe's spelling, the meaning) */
#define ROW_WORDS(X) \
  /* Namespaces in which hosts offer the op. */ \
  X(TORCH, "torch", "torch.name") \
  X(METHOD, "method", "Tensor.name") \
  X(PROPERTY, "property", "property Tensor.name without numpy_, matrix_; _C._set_name sets it") \
  X(NN, "nn", "nn.functional.name") \
  X(SPECIAL, "special", "special.name") \
  X(LINALG, "linalg", "linalg.name") \
  X(FFT, "fft", "fft.name") \
  X(WINDOWS, "windows", "signal.windows.name") \
  X(MASKED, "masked", "masked.name") \
  X(INTERNAL, "internal", "_C.name") \
  X(ONLY_ATEN, "only_aten", "ops.aten.name, with the schema of PyTorch's op") \
  X(INPLACE, "inplace", "Tensor.name_, and name_ in torch and nn.functional if name is there") \
  X(NN_INPLACE, "nn_inplace", "nn.functional.name has an argument `inplace`") \
  X(OUT, "out", "the functions take out=") \
  /* Properties of calls. */ \
  X(LIST_OR_MORE, "list_or_more", "takes its list of tensors as separate arguments too") \
  X(MORE, "more", "takes its list of tensors only as separate arguments") \
  X(EVENT, "event", "an event of a profile though its name begins with _") \
  X(SILENT, "silent", "no event of a profile") \
  /* Properties of writes in place and into out=. */ \
  X(DIRECT, "direct", "may write into its destination, and checks its arguments itself") \
  X(APART, "apart", "refuses a destination that overlaps an argument, but the first in place") \
  X(APART_OR_SAME, "apart_or_same", "refuses a destination that overlaps an argument in part") \
  X(OUT_EXACT, "out_exact", "out= must have the result's dtype") \
  X(OUT_TYPED, "out_typed", "computes in the dtype of out= unless a dtype is given") \
  X(KEEPS_OUT_SHAPE, "keeps_out_shape", "keeps the shape of an out= that has as many elements") \
  X(UNRECORDED, "unrecorded", "in place it is not recorded and has no tangent, as in PyTorch") \
  X(STRICT_SIZES, "strict_sizes", "in place, a result of another size is an error of the call") \
  X(DROPOUT, "dropout", "(input, p, training): gives back its input where nothing is dropped") \
  /* Properties for vmap, in addition to the kind of batch. */ \
  X(ADDS_DIM, "adds_dim", "counts dimensions of the result, which has one more") \
  X(DYNAMIC, "dynamic", "the shape of the result depends on values") \
  X(ADDRESS, "address", "gives the address of a tensor's elements") \
  X(STATISTICS, "statistics", "may update running statistics") \
  X(LIKE, "like", "another tensor is given for its geometry or type alone")

/* X(kind, the property by which vmap runs a call on a whole batch, see vmap_rules.c) */
#define BATCH_KINDS(X) \
  X(elementwise, "computes element by element, as DIRECT rows do") \
  X(dims, "takes dimensions as numbers, in arguments named dim and the like") \
  X(reduction, "as dims; no dimension means all") \
  X(same_rank, "takes tensors of one rank") \
  X(indexed, "as same_rank, beside an index of one dimension") \
  X(sizes, "takes sizes") \
  X(counts, "takes counts of repetitions") \
  X(permute, "takes an order of all dimensions") \
  X(transpose, "swaps the last two dimensions, or reverses all") \
  X(like_other, "takes the sizes of another tensor") \
  X(strided, "takes sizes and strides") \
  X(all_dims, "as dims; no dimension means each by itself") \
  X(beside_dim, "takes each slice along a dimension as a unit") \
  X(any_rank, "takes any number of leading dimensions") \
  X(vectors, "takes any number of dimensions before the last") \
  X(matrices, "takes any number of dimensions before the last two") \
  X(images, "takes any number of dimensions before the last three") \
  X(systems, "takes matrices or vectors with the same leading dimensions") \
  X(as_matrices, "joins all dimensions into those of a matrix") \
  X(folds, "has a batch dimension of its own, see FOLDS") \
  X(product, "a product of matrices or vectors") \
  X(subscript, "takes a subscript") \
  X(draws, "draws numbers") \
  X(draws_each, "draws numbers, slice by slice") \
  X(itself, "about the tensor itself")
/* clang-format on */

enum {
#define X(WORD, spelling, says) WORD##_BIT,
  ROW_WORDS(X)
#undef X
};
enum {
#define X(WORD, spelling, says) WORD = 1u << WORD##_BIT,
  ROW_WORDS(X)
#undef X
      UNOFFERED = 0 /* for C alone */
};
typedef enum {
  BATCH_none, /* run slice by slice */
#define X(kind, says) BATCH_##kind,
  BATCH_KINDS(X)
#undef X
} BatchKind;

/* Autocast's treatment of floating-point arguments other than float64: X(policy, meaning). */
/* clang-format off */
#define AUTOCAST_POLICIES(X) \
  X(lower, "are cast to autocast's type") \
  X(float, "are cast to float32") \
  X(promote, "are cast to float32 if one is float32, else to autocast's type") \
  X(whole, "stay as they are, also in the ops of which this op is composed")
/* clang-format on */
typedef enum {
  AUTOCAST_none, /* unchanged; ops called by this one cast theirs */
#define X(policy, says) AUTOCAST_##policy,
  AUTOCAST_POLICIES(X)
#undef X
} AutocastPolicy;
#define AUTOCAST(policy) WITH(.autocast = AUTOCAST_##policy)

/* The effort of a call, by which a host decides whether to let other threads run: X(kind, the
 * quantity that it grows with). A family's file sets EFFORT for the rows that follow; see
 * call/effort.c. */
/* clang-format off */
#define EFFORTS(X) \
  X(none, "nothing: no element is read") \
  X(light, "elements, a nanosecond or less for each") \
  X(heavy, "elements, some nanoseconds for each") \
  X(slow, "elements, some ten nanoseconds for each") \
  X(region, "the elements that a subscript selects") \
  X(picks, "indices, however large the table is") \
  X(product, "multiplications in a product of two matrices") \
  X(convolution, "multiplications in a convolution of an image with a filter") \
  X(cubic, "the cube of a matrix' side, many times") \
  X(walk, "a graph, and what the host does on the way")
/* clang-format on */
typedef enum {
#define X(kind, says) EFFORT_##kind,
  EFFORTS(X)
#undef X
} EffortKind;

/* After a row's words: BATCH(kind), and other fields. */
#define BATCH(kind) 0 WITH(.batch = BATCH_##kind)
#define WITH(...) , __VA_ARGS__
/* The op of PyTorch's dispatcher that a row is, where the row's name and schema do not say it: a
 * name, "view"; an overload, "mul.Tensor"; or calls with the row's arguments, "slice.Tensor(self,
 * dim, start, start + length)", each with the condition under which it holds, "t(self)
 * when(self.dim() <= 2)", separated by semicolons. wasm_core/fronts/dispatcher.py joins rows and
 * PyTorch's schemas. */
#define ATEN(calls) WITH(.aten = calls)
/* When dispatch modes are asked about an op: X(when, meaning). Without this they are asked at its
 * door, or after its body if the op is composite in PyTorch. They are not asked about ops of
 * MASKED, nor about SILENT ones of BATCH(itself). */
/* clang-format off */
#define ASKED_WHEN(X) \
  X(never, "never: no op of PyTorch's dispatcher") \
  X(at_last, "after its body, if that called no op that was asked")
/* clang-format on */
typedef enum {
  ASKED_usually,
#define X(when, says) ASKED_##when,
  ASKED_WHEN(X)
#undef X
} AskedWhen;
#define ASKED(when) WITH(.asked = ASKED_##when)

/* Sparse tensors are allowed in any argument. Rows of BATCH(itself) allow them without this
 * word. */
#define SPARSE WITH(.sparse = true)
/* NEEDS_ELEMENTS: refuses tensors without elements, as DYNAMIC rows do. ANY_DEVICE: takes them
 * beside tensors with elements. */
#define NEEDS_ELEMENTS WITH(.needs_elements = true)
#define ANY_DEVICE WITH(.any_device = true)
/* Each element of a result depends on the elements at its place alone. Rows that are DIRECT or
 * BATCH(elementwise) say so without this word. */
#define ELEMENTWISE WITH(.elementwise = true)
/* How PyTorch has the op, where that differs from the rest of its namespace: nn.functional is
 * written in Python, the others in C++. Only functions in Python bind as class attributes.
 * X(as, the meaning) */
/* clang-format off */
#define WRITTEN_FORMS(X) \
  X(python, "function and method in Python") \
  X(python_method, "method in Python") \
  X(builtin, "builtin function in nn.functional")
/* clang-format on */
typedef enum {
  WRITTEN_usual,
#define X(as, says) WRITTEN_##as,
  WRITTEN_FORMS(X)
#undef X
} WrittenForm;
#define WRITTEN(as) WITH(.written = WRITTEN_##as)
/* Refuses complex numbers with the text: a kernel's name, or a message. The type is appended to a
 * message that ends with a colon. */
#define NO_COMPLEX(status, text) WITH(.no_complex = text, .no_complex_status = status)
/* The first n tensors of a row share a batch dimension N: the first dimension of tensors of this
 * rank, absent at one rank less. rank 0: N is always present. FOLDING: added to another kind, for
 * ops that draw numbers; `what` is one of FOLD_KINDS. */
#define FOLDS(n, rank) BATCH(folds) FOLDING(nothing, n, rank)
#define FOLDS_WITH(what, n, rank) BATCH(folds) FOLDING(what, n, rank)
#define FOLDING(what, n, rank) WITH(.folding = FOLD_##what, .folded = n, .folded_rank = rank)

/* X(what, the other arguments that depend on N) */
/* clang-format off */
#define FOLD_KINDS(X) \
  X(nothing, "no argument") \
  X(sizes, "argument 1, sizes that N begins") \
  X(count, "argument 3, which is N") \
  X(twins, "the second tensor, of the same shape") \
  X(padding, "argument 1, unless it pads N") \
  X(groups, "argument 1, groups of more than one value") \
  X(samples, "the last argument, samples with N in front") \
  X(filters, "weights and a bias, which may be batched; see vmap_filters.c") \
  X(queries, "masks, which may be of less dimensions") \
  X(heads, "tensors in a list, with N second; see multihead.c") \
  X(losses, "lengths, and a reduction over N; see ctc.c")
/* clang-format on */
typedef enum {
  FOLD_not,
#define X(what, says) FOLD_##what,
  FOLD_KINDS(X)
#undef X
} FoldKind;

/* Errors for an out= whose dtype differs from the result's in an OUT_EXACT row: X(name, text).
 * BOOL_ONLY and NO_NUMBERS show the op's name and the dtype found, the others the dtypes wanted and
 * found. */
#define WRONG_OUT_ROWS(X)                                                                        \
  X(BOOL_ONLY, "%s only supports bool tensor for result, got: %s")                               \
  X(NO_NUMBERS, "%s does not support non-boolean outputs.")                                      \
  X(OF_INPUT, "quantile() out tensor must be same dtype as the input tensor")                    \
  X(TO_MATCH, "Expected the dtype for input and out to match, but got %s for input's dtype and " \
              "%s for out's dtype.")                                                             \
  X(SCALAR_TYPE, "expected scalar_type %s but found %s")                                         \
  X(NONZERO, "nonzero: Expected out tensor to have scalar type %s but got scalar type%s")        \
  X(OF_HASH, "%.0sExpected result to be of dtype uint64, but got %s")                            \
  X(FOUND, "Found dtype %2$s but expected %1$s")
typedef enum {
  OUT_IN_GENERAL,
#define X(name, text) OUT_##name,
  WRONG_OUT_ROWS(X)
#undef X
} WrongOut;

/* PyTorch's four errors for writing a batch into an unbatched tensor under vmap. */
typedef enum { TARGET_AT_LEVEL, TARGET_TOO_SMALL, TARGET_ARITHMETIC, TARGET_BY_NAME } VmapTarget;

typedef struct InPlaceNodes InPlaceNodes; /* see ops/run.h */

typedef struct {
  const char *schema; /* "add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor" */
  const char *name;   /* "add" */
  void (*run)(Call *c);
  uint32_t words;
  uint8_t batch;                        /* BatchKind */
  uint8_t wrong_out;                    /* WrongOut */
  uint8_t target;                       /* VmapTarget */
  uint8_t folding, folded, folded_rank; /* of FOLDING */
  uint8_t no_complex_status;            /* of NO_COMPLEX */
  uint8_t autocast;                     /* AutocastPolicy */
  uint8_t effort;                       /* EffortKind */
  uint8_t written;                      /* WrittenForm */
  uint8_t asked;                        /* AskedWhen */
  bool needs_elements, any_device;      /* NEEDS_ELEMENTS, ANY_DEVICE */
  bool sparse, elementwise;             /* SPARSE, ELEMENTWISE */
  const char *no_complex;
  const char *aten; /* of ATEN; NULL: by name */
  const InPlaceNodes *in_place;
  void (*refused)(const Call *c); /* fails if vmap must not run the call */
} Row;

static inline bool row_has(const Row *row, uint32_t words) { return (row->words & words) != 0; }

/* All rows, in the order of ops.def; set before the first call (table.c). */
extern const Row *op_rows;
extern int n_op_rows;

#endif
