/* Ops that the host answers in the engine's place, below the tape: PyTorch's __torch_dispatch__.
 *
 * At the door of an op, and before a row runs, the engine asks the host with the name and the
 * arguments; nothing is recorded meanwhile. The host may answer with results of its own. If the
 * call is to be recorded, the op runs as well, and the answer takes the place of its result: node,
 * output number, tangent, place among views. For an op that is composite in PyTorch the host says
 * LATER: then the op runs, and the host is asked for the ops within. If there are none, because the
 * op is one loop here, the host is asked for the op itself after all.
 *
 * Elements that only the host has are hidden: their memory exists, and holds zeros. A request for
 * its address (tensor_data) is noted in `hidden_reads`. It is an error of the op or gradient
 * function in the end, unless the host has answered for the results. */
#include "ops/dispatch.h"

#include <string.h>

#include "ground/memory.h"
#include "ops/create/random.h"
#include "ops/op.h"
#include "ops/view/copy.h"
#include "tape/anomaly.h"
#include "tape/exchange.h"
#include "tape/forward.h"
#include "tape/host.h"

/* The kind of a question to the host. */
enum { ASK_INPLACE = 1, ASK_AT_LAST = 2, ASK_OUT = 4, ASK_RECORDED = 8 };
/* The first word of an answer; no word at all means LATER too. */
enum {
  ANSWER_LATER,
  ANSWER_TENSOR,
  ANSWER_TENSORS,
  ANSWER_NUMBER,
  ANSWER_NONE,
  ANSWER_FIRST /* tensors: the first is the result, the others are for the node to save */
};
enum { HEAD = 4, WORDS_AN_ARGUMENT = 3, MOST_WORDS = 2048 };

typedef struct Question {
  struct Question *below;
  int n_words;
  int64_t *words; /* row or -1, name, how, number of arguments; then each: tag, length, value */
  bool tracked, travels;
  bool answered, ran, let_be, one;
  Tensor *const *given; /* the tensors among the arguments */
  Node **histories;     /* their nodes before the call */
  int n_given;
  int64_t count;  /* the number of answers before the call */
  int32_t n;      /* the number of results that are tensors; -1: a number */
  int32_t n_kept; /* how many follow for the node to save */
  Tensor **v;
  Result number;
  Tensor **places;   /* for the results, or NULL */
  HiddenReads reads; /* the state before the call */
  bool found;        /* the body read hidden elements */
  Rng *source;       /* the op's generator, if it draws, and its states */
  Rng before, after;
} Question;

Dispatch dispatch_now;
static const Watcher dispatcher;
static Question *innermost;
static int64_t n_answers, n_plain;

static void open_door(bool open) {
  watcher_answers = open;
  by_ops = open;
  watcher = open ? &dispatcher : listener;
}

void dispatch_listen(bool of_all) {
  dispatch_now.asked = of_all || hosted_tensors;
  dispatch_now.of_all = of_all;
  open_door(dispatch_now.asked);
}

Dispatch dispatch_state(void) {
  Dispatch now = dispatch_now;
  now.listener = listener;
  now.open = watcher_answers;
  now.reads = hidden_reads;
  hidden_reads = READS_REFUSED;
  return now;
}

void dispatch_restore(const Dispatch *was) {
  dispatch_now = *was;
  listener = was->listener;
  hidden_reads = was->reads;
  open_door(was->open);
}

/* ------------------------------------------------------------ asking */

static void list_tensors(Question *q, int n, int64_t (*words)[WORDS_AN_ARGUMENT]) {
  int count = 0;
  for (int i = 0; i < n; i++)
    count += words[i][0] == TAG_TENSOR ? 1 : words[i][0] == TAG_TENSORS ? (int)words[i][1] : 0;
  Tensor **all = scratch_array(count + 1, sizeof *all);
  if (!all) return;
  for (int i = 0; i < n; i++) {
    const int64_t *handles = words[i][0] == TAG_TENSORS ? (const int64_t *)(uintptr_t)words[i][2]
                                                        : &words[i][2];
    int many = words[i][0] == TAG_TENSOR ? 1 : words[i][0] == TAG_TENSORS ? (int)words[i][1] : 0;
    for (int k = 0; k < many; k++)
      if (handles[k]) all[q->n_given++] = (Tensor *)(uintptr_t)handles[k];
  }
  q->given = all;
  q->histories = scratch_array(q->n_given + 1, sizeof(Node *));
  for (int i = 0; q->histories && i < q->n_given; i++) q->histories[i] = all[i]->grad_fn;
  bool was = by_ops;
  by_ops = false;
  for (int i = 0; i < q->n_given; i++) q->tracked = q->tracked || tensor_tracked(all[i]);
  by_ops = was;
}

static bool concerns(const Question *q) {
  bool any = dispatch_now.of_all;
  for (int i = 0; i < q->n_given; i++) any = any || q->given[i]->form & FORM_HOSTED;
  return any;
}

/* Whether an argument has a tangent. Computes all of them now: the host cannot be asked for them
 * while the op runs for its node. */
static bool travels(const Question *q) {
  bool any = false;
  for (int i = 0; forward_on && i < q->n_given; i++) any |= forward_tangent(q->given[i]) != NULL;
  return any;
}

static bool is_given(const Question *q, const Tensor *t) {
  bool any = false;
  for (int i = 0; i < q->n_given; i++) any = any || q->given[i] == t;
  return any;
}

static bool take_answer(Question *q, int n, const int64_t *words) {
  q->let_be = q->let_be || (n > 1 && words[0] == ANSWER_LATER); /* the host declines for good */
  if (n <= 0 || words[0] == ANSWER_LATER) return false;
  const int64_t *found = words + 1;
  q->answered = true;
  n_answers++;
  if (words[0] == ANSWER_NUMBER) {
    q->n = -1;
    q->number = (Result){(uint8_t)found[0], 0, found[1]};
  } else if (words[0] != ANSWER_NONE) {
    const int came = words[0] == ANSWER_TENSOR ? 1 : (int)*found++;
    q->one = words[0] != ANSWER_TENSORS;
    q->v = scratch_array(came + 1, sizeof *q->v);
    if (!q->v || !host_take_in(came, found, q->v)) return true;
    q->n = words[0] == ANSWER_FIRST && came ? 1 : came;
    q->n_kept = came - q->n;
    for (int i = 0; i < q->n; i++) n_plain += q->v[i] && !(q->v[i]->form & FORM_HOSTED);
    for (int i = 0; i < q->n; i++) /* unrecorded views may be written to all the same */
      if (recording && q->v[i] && q->v[i]->meta && q->v[i]->meta->base &&
          q->v[i]->meta->view_origin == VIEW_NO_GRAD)
        q->v[i]->meta->view_origin = q->n > 1 ? VIEW_MULTI_OUTPUT : VIEW_PLAIN;
  }
  return true;
}

/* True: the host has answered, or raised. */
static bool ask(Question *q, int how) {
  int64_t *out = scratch_array(MOST_WORDS, sizeof *out);
  int n = 0;
  if (!out) return true;
  q->words[2] = (q->words[2] & ~(ASK_AT_LAST | ASK_RECORDED)) | how |
                (recording ? ASK_RECORDED : 0);
  q->count = n_answers;
  bool was = recording;
  recording = false;
  host_words(HOST_DISPATCH, 0, q->n_words, q->words, MOST_WORDS, out, &n);
  recording = was;
  return failed() || take_answer(q, n, out);
}

static Question *question(int64_t row, const char *name, int how, int n,
                          int64_t (*words)[WORDS_AN_ARGUMENT]) {
  Question *q = scratch_array_zero(1, sizeof *q);
  if (!q) return NULL;
  list_tensors(q, n, words);
  if (failed() || !concerns(q)) return NULL;
  q->n_words = HEAD + n * WORDS_AN_ARGUMENT;
  q->words = scratch_array(q->n_words, sizeof *q->words);
  if (!q->words) return NULL;
  memcpy(q->words, (int64_t[HEAD]){row, (int64_t)(uintptr_t)name, how, n}, HEAD * sizeof *q->words);
  memcpy(q->words + HEAD, words, (size_t)n * sizeof *words);
  q->below = innermost;
  q->reads = hidden_reads;
  q->source = random_generator(0);
  for (int i = 0; i < n; i++)
    if (words[i][0] == TAG_GENERATOR) q->source = random_generator((int32_t)words[i][2]);
  if (q->source) q->before = *q->source;
  q->travels = travels(q);
  return failed() ? NULL : q;
}

/* ------------------------------------------------------------ taking over */

/* Refuses a tangent of r that the op's steps computed from hidden elements. Only a node that waits
 * for the host's answer computes its tangent from the answer. */
static bool check_tangent_steps(const Question *q, Tensor *r) {
  if (!q->travels || !q->found) return true;
  const Node *n = forward_awaited(r);
  if (n && forward_fed_by(n, q->n_given, q->given)) return true;
  if (forward_tangent(r))
    fail(ERR_NOT_IMPLEMENTED,
         "pygrad: %s in forward mode is made of steps that __torch_dispatch__ is not asked for",
         (const char *)(uintptr_t)q->words[1]);
  return !failed();
}

/* Puts the host's tensor w in the place of r, which the op returned. *node: r's node, which is
 * recorded or serves its tangent alone. */
static Tensor *taken_over(Question *q, Tensor *w, Tensor *r, Node **node) {
  *node = w && r && !is_given(q, r) ? r->grad_fn : NULL;
  if (failed() || !w || !r || w == r) return failed() ? NULL : w;
  if (is_given(q, r)) /* keeps its history and its tangent */
    return tensor_requires_grad(r) || forward_tangent(r) ? r : w;
  if (!check_tangent_steps(q, r)) return NULL;
  bool hosted = w->form & FORM_HOSTED;
  if (!hosted && (is_given(q, w) || tensor_requires_grad(w))) w = t_detach(w);
  else if (is_given(q, w)) return w;
  if (!w) return NULL;
  Tensor *base = r->meta ? r->meta->base : NULL;
  Meta *m = base ? tensor_meta(w) : w->meta;
  if (base && q->travels && ((r->flags ^ base->flags) & FLAGS_LAZY || r->dtype != base->dtype))
    return fail(ERR_NOT_IMPLEMENTED,
                "pygrad: %s in forward mode: no tangent is such a view of the tangent of a tensor "
                "whose class has __torch_dispatch__",
                (const char *)(uintptr_t)q->words[1]);
  if (base && m && base != w) {
    tensor_share_version(w, r);
    tensor_retain(base);
    tensor_release(m->base);
    m->base = base;
    m->view_version = r->meta->view_version;
    m->view_origin = r->meta->view_origin;
  }
  Node *n = r->grad_fn;
  if (n) {
    node_retain(n);
    node_release(w->grad_fn);
    w->grad_fn = n;
    w->output_nr = r->output_nr;
    if (!node_describe_output(n, w->output_nr, w)) return NULL;
    saves_replaced(n, w);
  }
  Node *awaited = n || base ? NULL : forward_awaited(r);
  if (awaited && !tensor_same_shape(w, r)) /* which depends on elements */
    return fail(ERR_NOT_IMPLEMENTED,
                "pygrad: %s in forward mode: __torch_dispatch__ gave a tensor of another shape",
                (const char *)(uintptr_t)q->words[1]);
  if (awaited) {
    w->output_nr = r->output_nr;
    saves_replaced(awaited, w);
    *node = awaited;
  }
  if (!base) forward_replace(w, r); /* the tangent of a view is a view of its base's */
  w->flags |= r->flags & FLAG_WRAPPED;
  return failed() ? NULL : w;
}

/* Whether a node's formula recomputes with ops the extra results that it saves. */
static bool makes_anew(const Node *n) {
  static const char *const names[] = {"NativeLayerNormBackward0", "NativeBatchNormBackward0",
                                      "LogSoftmaxBackward0"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(n->type->name, names[i]) == 0) return true;
  return false;
}

/* Whether an edge leads to an argument directly, not through another node that the op made. */
static bool leads_to_given(const Question *q, const Node *to) {
  bool given = !to;
  for (int i = 0; i < q->n_given && !given; i++) {
    const Tensor *t = q->given[i], *base = t->meta ? t->meta->base : NULL;
    given = t->grad_fn == to || q->histories[i] == to || (t->meta && t->meta->accumulator == to) ||
            (base && (base->grad_fn == to || (base->meta && base->meta->accumulator == to)));
  }
  return given;
}

/* Whether a saved value is a tensor of the host's, an argument or a number of the host. */
static bool is_known(const Question *q, const Tensor *v) {
  bool known = !v || v->form & FORM_HOSTED || v->flags & FLAG_WRAPPED;
  for (int k = 0; !known && k < q->n_given; k++) known = tensor_same_memory(v, q->given[k]);
  return known;
}

/* Fills the node's save slots, in order, from the extra results of PyTorch's op. r has the n
 * results of the op here. */
static void keep_answered(const Question *q, Node *node, int n, Tensor *const *r) {
  int at = 0;
  for (int k = 0; k < q->n + q->n_kept; k++) {
    if (k < n && r[k]) continue;
    while (at < node->n_saves && is_known(q, node->saves[at].value)) at++;
    if (at == node->n_saves || !q->v[k]) return;
    save_exchanged(node, at++, q->v[k]);
  }
}

/* Refuses a node whose gradient would need elements that the op computed itself from a hosted
 * tensor, or steps that the host was not asked for. */
static void check_saves(const Question *q, const Node *n) {
  bool hosted = false;
  for (int i = 0; i < q->n_given; i++) hosted = hosted || q->given[i]->form & FORM_HOSTED;
  bool direct = true, whole = q->words[2] & ASK_AT_LAST || n->n_edges > 1;
  for (int i = 0; hosted && i < n->n_edges; i++) {
    const Node *to = n->edges[i].node;
    /* a conversion may be several steps, none of which saves anything */
    while (!whole && to && !to->n_saves && to->n_edges == 1 && !leads_to_given(q, to))
      to = to->edges[0].node;
    direct = direct && leads_to_given(q, to);
  }
  if (!direct)
    fail(ERR_NOT_IMPLEMENTED,
         "pygrad: %s is made of steps that __torch_dispatch__ is not asked for, and a tensor whose "
         "class has it shows no elements",
         (const char *)(uintptr_t)q->words[1]);
  for (int i = 0; hosted && !makes_anew(n) && i < n->n_saves && !failed(); i++)
    if (!is_known(q, n->saves[i].value))
      fail(ERR_NOT_IMPLEMENTED,
           "pygrad: %s keeps for its gradient what it computes of elements, and a tensor whose "
           "class has __torch_dispatch__ shows none",
           node_stem(n));
}

/* Refuses a tensor w of the host's that could not take over r's history. */
static void check_history(const Question *q, Tensor *w, Tensor *r) {
  if (w && r && tensor_requires_grad(r) && !tensor_requires_grad(w))
    fail(ERR_NOT_IMPLEMENTED,
         "pygrad: %s is not recorded for what __torch_dispatch__ gave, which has another form",
         (const char *)(uintptr_t)q->words[1]);
}

/* Puts the host's results in the place of those of an op that ran. */
static void take_all_over(Question *q, int n, Tensor **w, Tensor *const *r) {
  Node *node = NULL;
  for (int i = 0; i < n; i++) {
    Node *of = NULL;
    w[i] = taken_over(q, w[i], r[i], &of);
    if (of && node && of != node) check_saves(q, node);
    if (of) node = of;
  }
  for (int i = 0; node && i < n && !failed(); i++)
    if (r[i] && w[i] && w[i] != r[i] && !r[i]->grad_fn) saves_exchanged(node, r[i], w[i]);
  if (node) keep_answered(q, node, n, r);
  if (node) check_saves(q, node);
  for (int i = 0; i < n; i++) check_history(q, w[i], r[i]);
}

/* Rewinds the generator, so that the host and the op draw the same numbers. It ends as if only one
 * had drawn. */
static void draw_anew(Question *q) {
  q->after = *q->source;
  *q->source = q->before;
}

/* Begins to run the op. If the host has answered already, it is not asked for the ops within. */
static void body_begins(Question *q) {
  q->ran = true;
  if (!q->answered) return;
  open_door(false);
  hidden_reads = READS_NOTED;
  draw_anew(q);
}

static void body_ends(Question *q) {
  if (!q->ran) return;
  open_door(true);
  if (!q->answered) return;
  q->found = hidden_reads == READS_FOUND;
  if (failed() && q->found) dispatch_elements_refused((const char *)(uintptr_t)q->words[1]);
  hidden_reads = q->reads;
  *q->source = q->after;
}

/* Asks the host for the op itself, after its body. False: no answer, and hidden elements that the
 * body read stay noted. */
static bool ask_at_last(Question *q) {
  draw_anew(q);
  if (!ask(q, ASK_AT_LAST)) *q->source = q->after;
  else {
    q->found = hidden_reads == READS_FOUND;
    hidden_reads = q->reads;
  }
  return q->answered;
}

/* After a body without an answer: whether the host answered for the ops within, so that nothing
 * else read hidden elements. */
static bool is_made_of_ops(const Question *q, int n, Tensor *const *r) {
  bool given = n_answers != q->count && (hidden_reads != READS_FOUND || q->reads == READS_FOUND);
  for (int i = 0; i < n; i++) given = given || !r[i] || is_given(q, r[i]);
  return given || failed();
}

/* ------------------------------------------------------------ the door */

static void factor_words(const Factor *x, int64_t *w) {
  double *parts = x->imag != 0 ? scratch_array(2, sizeof *parts) : NULL;
  if (parts) memcpy(parts, (double[]){x->f, x->imag}, 2 * sizeof *parts);
  w[0] = parts ? TAG_COMPLEX : x->f == (double)x->i ? TAG_INT : TAG_FLOAT;
  w[2] = parts ? (int64_t)(uintptr_t)parts : x->i;
  if (w[0] == TAG_FLOAT) memcpy(&w[2], &x->f, sizeof w[2]);
}

static void argument_words(const Argument *v, int64_t *w) {
  w[0] = v->tag;
  w[1] = 0;
  w[2] = 0;
  switch (v->tag) {
    case TAG_TENSOR: w[2] = (int64_t)(uintptr_t)*(Tensor *const *)v->at; break;
    case TAG_INT: w[2] = *(const int64_t *)v->at; break;
    case TAG_C_INT:
    case TAG_C_ENUM: w[2] = *(const int32_t *)v->at; break;
    case TAG_BOOL: w[2] = *(const bool *)v->at; break;
    case TAG_FLOAT: memcpy(&w[2], v->at, sizeof w[2]); break;
    case TAG_STR: w[2] = (int64_t)(uintptr_t)*(const char *const *)v->at; break;
    case TAG_C_WORDS: w[2] = (int64_t)(uintptr_t)*(const int64_t *const *)v->at; break;
    case TAG_C_FACTOR: factor_words(v->at, w); break;
    case TAG_INTS:
    case TAG_BOOLS:
    case TAG_FLOATS:
      w[1] = ((const Ints *)v->at)->n;
      w[2] = (int64_t)(uintptr_t)((const Ints *)v->at)->v;
      break;
    case TAG_TENSORS: {
      const Tensors *list = v->at;
      int64_t *handles = scratch_array(list->n > 0 ? list->n : 1, sizeof *handles);
      for (int i = 0; handles && i < list->n; i++) handles[i] = (int64_t)(uintptr_t)list->v[i];
      w[1] = list->n;
      w[2] = (int64_t)(uintptr_t)handles;
      break;
    }
    default: break;
  }
}

/* The op that may enter next without a question, because its question is already asked. */
static const char *passing;

static int32_t enter(const char *op, int n, const Argument *v) {
  int64_t words[MOST_ARGUMENTS][WORDS_AN_ARGUMENT];
  bool passes = passing && strcmp(passing, op) == 0;
  passing = NULL;
  if (!passes && !failed()) {
    Tensor **places = NULL;
    for (int i = 0; i < n; i++) {
      argument_words(&v[i], words[i]);
      if (v[i].tag == TAG_C_PLACES) places = *(Tensor * *const *)v[i].at;
    }
    Question *q = failed() ? NULL : question(-1, op, 0, n, words);
    if (q) {
      q->places = places;
      ask(q, 0);
      innermost = q;
      return ENTRY_ANSWERED;
    }
  }
  return listener ? listener->enter(op, n, v) : -1;
}

static void leave(int32_t entry) {
  if (entry >= 0 && listener) listener->leave(entry);
}

static const Watcher dispatcher = {enter, leave};

/* Whether the op's function runs: to record its node, or because the host has not answered yet. */
static bool runs_body(void) {
  Question *q = innermost;
  if (failed() || (q->answered && !q->tracked)) return false;
  if (!q->answered) passing = (const char *)(uintptr_t)q->words[1];
  body_begins(q);
  return true;
}

/* Whether there is an answer, after the body if one was needed. r has the body's n results. */
static bool is_answered(Question *q, int n, Tensor *const *r) {
  innermost = q->below;
  body_ends(q);
  passing = NULL;
  if (failed()) return false;
  return q->answered || (!is_made_of_ops(q, n, r) && ask_at_last(q) && !failed());
}

static Tensor *tensor_answer(Tensor *body) {
  Question *q = innermost;
  if (!is_answered(q, 1, &body)) return failed() ? NULL : body;
  Tensor *w = q->n > 0 ? q->v[0] : NULL;
  if (!w && q->n > 0)
    return fail(ERR_RUNTIME, "%s was to give a tensor but got None from __torch_dispatch__",
                (const char *)(uintptr_t)q->words[1]);
  if (body) take_all_over(q, 1, &w, &body);
  return failed() ? NULL : w;
}

static intptr_t number_answer(intptr_t body) {
  Question *q = innermost;
  if (!is_answered(q, q->places ? 1 : 0, q->places)) return failed() ? 0 : body;
  if (q->places && q->ran && q->n > 0) take_all_over(q, q->n, q->v, q->places);
  for (int i = 0; q->places && i < q->n; i++) q->places[i] = q->v[i];
  return q->n < 0 ? (intptr_t)q->number.value : 0;
}

static const Answers dispatch_answers = {runs_body, tensor_answer, number_answer};

/* ------------------------------------------------------------ rows */

static Tensor *ask_host(const char *op, int n, Tensor *const *v);

static void value_words(const Value *v, int64_t *w) {
  w[0] = v->tag;
  w[1] = v->n;
  switch (v->tag) {
    case TAG_MISSING:
    case TAG_NONE: w[2] = 0; break;
    case TAG_TENSOR: w[2] = (int64_t)(uintptr_t)v->t; break;
    case TAG_INT:
    case TAG_BOOL:
    case TAG_FLOAT:
    case TAG_DTYPE:
    case TAG_GENERATOR: w[2] = v->i; break;
    default: w[2] = (int64_t)(uintptr_t)v->p; break;
  }
}

/* Whether r is a plain tensor that the op made of a tensor of the host's. */
static bool concerns_hosted(const Question *q, const Tensor *r) {
  bool hosted = false;
  for (int i = 0; i < q->n_given; i++) hosted = hosted || q->given[i]->form & FORM_HOSTED;
  return hosted && r && !(r->form & FORM_HOSTED);
}

static bool put_bytes(Tensor *dst, Tensor *src) {
  return tensor_steal_bytes(dst, src) ||
         (tensor_write_begin(dst, true) && tensor_copy_data(dst, src));
}

/* Runs the op for its node after the host has answered. In place, it runs on the values from before
 * the call; the host's are put back after it. */
static void run_answered(Call *c, Question *q, void (*run)(Call *c), Tensor *self, Tensor *before,
                         uint32_t version) {
  Tensor *after = before ? tensor_snapshot(self) : NULL;
  if (before && (!after || !put_bytes(self, before))) return;
  body_begins(q);
  run(c);
  body_ends(q);
  if (!before) return;
  Status error = status_now; /* the host's writes stay */
  put_bytes(self, after);
  if (error == OK && !(self->flags & FLAG_INFERENCE)) tensor_set_version(self, version + 1);
}

/* The node of the last in-place op on a tensor or on its base. */
static Node *written_by(const Tensor *self) {
  const Tensor *base = self->meta ? self->meta->base : NULL;
  Node *n = base ? base->grad_fn : self->grad_fn;
  return n && n->inner ? n->inner : n;
}

/* A tensor's place in the graph, restored if an op on the tensor fails after its nodes were made: a
 * node that saves the tensor would keep itself alive. */
typedef struct {
  Tensor *of;
  Node *node;
  int32_t output_nr;
} PlaceInGraph;

static PlaceInGraph place_in_graph(Tensor *t) {
  if (t && t->grad_fn) node_retain(t->grad_fn);
  return t ? (PlaceInGraph){t, t->grad_fn, t->output_nr} : (PlaceInGraph){NULL, NULL, 0};
}

static void leave_place(PlaceInGraph was) {
  Node *now = was.of ? was.of->grad_fn : NULL;
  if (was.of && failed()) {
    was.of->grad_fn = was.node;
    was.of->output_nr = was.output_nr;
    was.node = now;
  }
  node_release(was.node);
}

/* After the host wrote to self: lets the node save a copy of the old values and, if it saves its
 * result, the new ones. */
static void keep_written(Question *q, Tensor *self, Tensor *before, const Node *was) {
  Node *n = written_by(self);
  if (failed() || !n || n == was) return;
  saves_rewritten(n, self, before);
  check_saves(q, n);
}

/* The tensors that a call returned, as a list of their own: calls of the host reuse the call's
 * list. */
static Tensors results(const Call *c) {
  const Result *r = &c->result;
  const int n = result_count(r);
  Tensor **all = scratch_array(n + 1, sizeof *all);
  for (int i = 0; all && i < n; i++) all[i] = result_tensor(r, i);
  return (Tensors){all ? n : 0, all};
}

/* Returns the host's answer as the call's result. `made` has the op's results, if it ran. */
static void give(Call *c, Question *q, Tensors made) {
  bool one = q->ran ? c->result.tag == TAG_TENSOR : q->one;
  if (q->n < 0) {
    c->result = q->number;
    return;
  }
  take_all_over(q, made.n < q->n ? made.n : q->n, q->v, made.v);
  if (failed()) return;
  if (!q->n || (one && !q->v[0])) ret_none(c);
  else if (one && q->n == 1) ret_tensor(c, q->v[0]);
  else ret_tensors(c, q->n, q->v);
}

/* Whether the call writes to a tensor of the host's, as an in-place form or as an op that
 * writes. */
static bool writes_hosted(const Call *c) {
  const char *name = c->row->name;
  bool writes = c->inplace || (name[strlen(name) - 1] == '_' && !row_has(c->row, SILENT) &&
                               strcmp(name, "detach_") != 0);
  return writes && c->v[0].tag == TAG_TENSOR && c->v[0].t->form & FORM_HOSTED;
}

static void call_answered(Call *c, void (*run)(Call *c)) {
  int64_t words[MAX_ARGS + 1][WORDS_AN_ARGUMENT];
  bool out = c->out.tag != TAG_MISSING;
  for (int i = 0; i < c->n_args; i++) value_words(&c->v[i], words[i]);
  if (out) value_words(&c->out, words[c->n_args]);
  Question *q = question(c->row - op_rows, c->row->name,
                         (c->inplace ? ASK_INPLACE : 0) | (out ? ASK_OUT : 0), c->n_args + out,
                         words);
  passing = NULL;
  if (!q || (out && q->tracked)) { /* a tracked call with out= is refused */
    if (!failed()) run(c);
    return;
  }
  Tensor *self = c->inplace && c->v[0].tag == TAG_TENSOR ? c->v[0].t : NULL;
  bool hosted = self && self->form & FORM_HOSTED;
  if (self && !row_has(c->row, UNRECORDED) && !history_check_inplace(self)) return;
  if (q->travels && writes_hosted(c)) {
    fail(ERR_NOT_IMPLEMENTED,
         "pygrad: %s in forward mode: tangents of a tensor whose class has __torch_dispatch__ "
         "are not written in place",
         row_shown(c->row, c->inplace));
    return;
  }
  Tensor *before = self && q->tracked && !hosted ? tensor_snapshot(self) : NULL;
  uint32_t version = self ? tensor_version(self) : 0;
  const Node *was = self ? written_by(self) : NULL;
  Tensor *kept = hosted && q->tracked && recording ? ask_host("clone", 1, &self) : NULL;
  if (!failed()) ask(q, 0);
  if (hosted && !failed() && !q->answered && !q->let_be && !ask(q, ASK_AT_LAST) && !q->let_be)
    fail(ERR_NOT_IMPLEMENTED, "pygrad: %s is no op that __torch_dispatch__ could be asked for",
         row_shown(c->row, true));
  if (failed()) return;
  Tensors made = {0, NULL};
  if (q->answered && q->tracked) {
    const PlaceInGraph place = place_in_graph(hosted ? self : NULL);
    run_answered(c, q, run, self, before, version);
    if (hosted) keep_written(q, self, kept, was);
    leave_place(place);
    made = results(c);
  } else if (q->answered && hosted) tensor_bump_version(self);
  else if (!q->answered) {
    passing = c->row->name;
    body_begins(q);
    run(c);
    passing = NULL;
    made = results(c);
    if (self || out || !made.n || is_made_of_ops(q, 1, made.v)) return;
    if (!ask_at_last(q) && !q->let_be && concerns_hosted(q, made.v[0]) &&
        row_has(c->row, TORCH | METHOD | NN | SPECIAL | LINALG | FFT | MASKED) &&
        !row_has(c->row, SILENT) && c->row->name[0] != '_')
      fail(ERR_NOT_IMPLEMENTED,
           "pygrad: %s is no op that __torch_dispatch__ could be asked for, and reads elements",
           row_shown(c->row, false));
    if (!q->answered) {
      if (c->result.tag == TAG_TENSORS) ret_tensors(c, made.n, made.v);
      return;
    }
  }
  if (failed()) return;
  if (self && q->tracked && recording && !tensor_requires_grad(self))
    fail(ERR_NOT_IMPLEMENTED, "pygrad: %s is not recorded for a tensor of __torch_dispatch__",
         row_shown(c->row, true));
  if (self) ret_tensor(c, self);
  else give(c, q, made);
}

void dispatch_call(Call *c, void (*run)(Call *c)) {
  const HiddenReads was = dispatch_elements_begin();
  call_answered(c, run);
  dispatch_elements_end(was, c->row->name);
}

/* ------------------------------------------------------------ by name */

Tensor *op_hosted(Tensor *t, bool hidden) {
  tensor_set_form(t, t->form | FORM_HOSTED);
  if (hidden && !tensor_absent(t) && t->numel) t->storage->bytes->form = FORM_HOSTED;
  return t;
}

/* Replaces an error that an op raised about hidden zeros, such as a singular matrix. Errors of the
 * host stay. */
void dispatch_elements_refused(const char *what) {
  if (status_now == ERR_HOST) return;
  status_clear();
  fail(ERR_NOT_IMPLEMENTED,
       "pygrad: %s reads elements itself, and a tensor whose class has __torch_dispatch__ shows "
       "none",
       what);
}

/* Asks the host to call one op on tensors; NULL: no answer. */
static Question *asked_by_name(const char *op, int n, Tensor *const *v) {
  int64_t words[2][WORDS_AN_ARGUMENT];
  for (int i = 0; i < n; i++)
    memcpy(words[i], (int64_t[]){TAG_TENSOR, 0, (int64_t)(uintptr_t)v[i]}, sizeof words[i]);
  Question *q = failed() ? NULL : question(-1, op, 0, n, words);
  return q && ask(q, 0) && !failed() ? q : NULL;
}

static Tensor *ask_host(const char *op, int n, Tensor *const *v) {
  Question *q = asked_by_name(op, n, v);
  return q && q->n > 0 ? q->v[0] : NULL;
}

static double number_of_host(Tensor *t) {
  Question *q = asked_by_name("item", 1, &t);
  double v = 0;
  if (!q || q->n >= 0) return 0;
  if (q->number.tag != TAG_FLOAT) return (double)q->number.value;
  memcpy(&v, &q->number.value, sizeof v);
  return v;
}

/* The detached tensor is for the engine's own use, so it needs no tangent. A node asks for it
 * while it is being recorded: a tangent computed then would use a node without its saves. */
static Tensor *detach_by_host(Tensor *t) {
  bool forward = forward_on;
  forward_on = false;
  Tensor *detached = ask_host("detach", 1, &t);
  forward_on = forward;
  return detached;
}

int64_t dispatch_count(void) { return n_answers; }
int64_t dispatch_count_plain(void) { return n_plain; }

Tensor *dispatch_ones_like(Tensor *t) { return by_ops ? ask_host("ones_like", 1, &t) : NULL; }

Tensor *dispatch_zeros_as(Tensor *t, Tensor *tangent) {
  return ask_host("_new_zeros_with_same_feature_meta", 2, (Tensor *[]){tangent, t});
}

static bool add_by_host(Tensor *sum, Tensor *g) {
  return ask_host("add_", 2, (Tensor *[]){sum, g}) != NULL;
}

void dispatch_begin(void) {
  door_answers = &dispatch_answers;
  detached_by_host = detach_by_host;
  added_by_host = add_by_host;
  number_by_host = number_of_host;
}
