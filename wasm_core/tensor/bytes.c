/* Blocks, and the parts that snapshots have of them; see bytes.h.
 *
 * The parts of a block form an interval tree: a treap ordered by address, in which each part stores
 * the furthest end in its subtree. A part that was moved aside belongs to its new block, which has
 * no owner. */
#include "tensor/bytes.h"

#include <stddef.h>
#include <string.h>

#include "ground/inline.h"
#include "ground/memory.h"
#include "ground/poll.h"
#include "ground/status.h"
#include "kernels/simd.h"

struct BytesPart {
  Bytes bytes;
  Bytes *block; /* a reference */
  Reach reach;  /* its addresses */
  uint32_t rank;
  uintptr_t most; /* the furthest end in its subtree */
  BytesPart *up, *left, *right;
  BytesPart *next; /* in the list of parts being moved */
};

/* The address of absent memory: a read there traps while memory is below 3 GiB. */
#define NOWHERE ((char *)(uintptr_t)0xc0000000u)

_Static_assert(sizeof(Bytes) <= MEM_HEAD, "the head of a block");

static bool have_memory(const Bytes *b) { return b->data != NOWHERE; }

/* The memory of a block follows its head. */
bool bytes_are_part(const Bytes *b) {
  return have_memory(b) && b->data != (const char *)b + MEM_HEAD;
}
static BytesPart *as_part(const Bytes *b) {
  return bytes_are_part(b) ? (BytesPart *)(uintptr_t)b : NULL; /* its first member */
}
static Bytes *block_of(const Bytes *b) {
  const BytesPart *p = as_part(b);
  return p ? p->block : (Bytes *)(uintptr_t)b;
}
const Bytes *bytes_block(const Bytes *b) { return block_of(b); }

bool bytes_sole(const Bytes *b) {
  return bytes_are_part(b) ? b->refs == 2 && block_of(b)->refs == 1 : b->refs == 1;
}

bool bytes_shared(const Bytes *b) { return b->refs - (bytes_are_part(b) ? 1 : b->n_parts) > 1; }

/* ------------------------------------------------------------ reaches */

Reach bytes_reach(const Bytes *b) {
  uintptr_t from = (uintptr_t)b->data;
  return (Reach){from, from + (uintptr_t)b->n_bytes, b->n_bytes, 0};
}

/* Whether `teeth`, which has a period, has bytes in [from, to), a range within its ends. */
static bool bites(const Reach *teeth, uintptr_t from, uintptr_t to) {
  int64_t at = (int64_t)(from - teeth->from) % teeth->period;
  return at < teeth->run || (int64_t)(to - from) > teeth->period - at;
}

/* Reaches with different periods count as meeting. */
bool bytes_reach_meets(const Reach *a, const Reach *b) {
  uintptr_t from = a->from > b->from ? a->from : b->from, to = a->to < b->to ? a->to : b->to;
  if (from >= to) return false;
  if (!a->period && !b->period) return true;
  if (!a->period) return bites(b, from, to);
  if (!b->period) return bites(a, from, to);
  if (a->period != b->period) return true;
  int64_t apart = ((int64_t)(b->from - a->from) % a->period + a->period) % a->period;
  return apart < a->run || apart + b->run > a->period;
}

static int compare(const Reach *a, const Reach *b) {
  if (a->from != b->from) return a->from < b->from ? -1 : 1;
  if (a->to != b->to) return a->to < b->to ? -1 : 1;
  if (a->period != b->period) return a->period < b->period ? -1 : 1;
  return (a->run > b->run) - (a->run < b->run);
}

/* ------------------------------------------------------------ trees of parts */

static uint32_t next_rank(void) {
  static uint32_t state = 1;
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

static void measure(BytesPart *p) {
  p->most = p->reach.to;
  if (p->left && p->left->most > p->most) p->most = p->left->most;
  if (p->right && p->right->most > p->most) p->most = p->right->most;
}

/* Replaces p by q (NULL: none) in the tree. */
static void replace(BytesPart *p, BytesPart *q) {
  BytesPart *up = p->up;
  if (q) q->up = up;
  if (!up) p->block->parts = q;
  else if (up->left == p) up->left = q;
  else up->right = q;
}

/* Rotates p above its parent. */
static void rise(BytesPart *p) {
  BytesPart *up = p->up;
  bool left = up->left == p;
  BytesPart *between = left ? p->right : p->left;
  replace(up, p);
  if (left) up->left = between, p->right = up;
  else up->right = between, p->left = up;
  if (between) between->up = up;
  up->up = p;
  measure(up);
  measure(p);
}

/* The link in the tree of the part with this reach, or its place; *up: the parent. */
static BytesPart **place_of(Bytes *block, const Reach *r, BytesPart **up) {
  BytesPart **at = &block->parts;
  *up = NULL;
  for (int order; *at && (order = compare(r, &(*at)->reach)) != 0;) {
    *up = *at;
    at = order < 0 ? &(*at)->left : &(*at)->right;
  }
  return at;
}

/* Inserts p at a link of the tree, below `up`. Takes a reference to the block. */
static void insert(BytesPart *p, Bytes *block, BytesPart **at, BytesPart *up) {
  p->block = block;
  block->n_parts++;
  p->left = p->right = NULL;
  p->up = up;
  p->rank = next_rank();
  p->most = p->reach.to;
  *at = p;
  while (p->up && p->up->rank < p->rank) rise(p);
  for (BytesPart *q = p->up; q; q = q->up) measure(q);
}

/* Removes p from the tree. The caller takes over p's reference to the block. */
static void take_out(BytesPart *p) {
  while (p->left && p->right) rise(p->left->rank > p->right->rank ? p->left : p->right);
  replace(p, p->left ? p->left : p->right);
  for (BytesPart *q = p->up; q; q = q->up) measure(q);
  p->block->n_parts--;
}

/* The first part in p's subtree that ends after the start of r; NULL if it begins after r's end. */
static BytesPart *first_below(BytesPart *p, const Reach *r) {
  while (p && p->most > r->from) {
    if (p->left && p->left->most > r->from) p = p->left;
    else if (p->reach.from >= r->to) return NULL;
    else if (p->reach.to > r->from) return p;
    else p = p->right;
  }
  return NULL;
}

static BytesPart *next_part(BytesPart *p, const Reach *r) {
  BytesPart *found = first_below(p->right, r), *below;
  if (found) return found;
  do {
    do {
      below = p;
      p = p->up;
    } while (p && p->right == below);
    if (!p || p->reach.from >= r->to) return NULL;
  } while (p->reach.to <= r->from && !(found = first_below(p->right, r)));
  return found ? found : p;
}

static BytesPart *first_meeting(const Bytes *block, const Reach *r) {
  BytesPart *p = first_below(block->parts, r);
  while (p && !bytes_reach_meets(&p->reach, r)) p = next_part(p, r);
  return p;
}
static BytesPart *next_meeting(BytesPart *p, const Reach *r) {
  do p = next_part(p, r);
  while (p && !bytes_reach_meets(&p->reach, r));
  return p;
}

/* ------------------------------------------------------------ life */

/* The C library's memcpy moves 8 bytes at a time on wasm; this moves 64. */
void bytes_copy(char *to, const char *from, size_t n) {
  for (; n >= 64; n -= 64, to += 64, from += 64) /* one vector each */
    UNROLLED for (size_t k = 0; k < 64; k += 16) memcpy(to + k, from + k, 16);
  for (; n >= 16; n -= 16, to += 16, from += 16) memcpy(to, from, 16);
  for (; n; n--) *to++ = *from++;
}

Bytes *bytes_absent(int64_t n_bytes, int32_t form) {
  Bytes *b = mem_alloc(MEM_HEAD);
  if (b) *b = (Bytes){.refs = 1, .form = form, .n_bytes = n_bytes, .data = NOWHERE};
  return b;
}

/* The size of the memory of a block. */
static size_t block_size(int64_t n_bytes, int32_t page) {
  const size_t n = (size_t)n_bytes, whole = page ? (size_t)page : 1;
  return MEM_HEAD + (n + whole - 1) / whole * whole;
}

static Bytes *block_new(int64_t n_bytes, int32_t page) {
  if ((uint64_t)n_bytes > (uint64_t)SIZE_MAX - 4096 - (uint64_t)(2 * (int64_t)page))
    return fail(ERR_MEMORY, "pygrad: can't allocate memory: you tried to allocate %lld bytes",
                (Shown)n_bytes);
  const size_t n = block_size(n_bytes, page);
  Bytes *b = page ? mem_alloc_paged(n, (size_t)page) : mem_alloc(n);
  if (!b) return NULL;
  *b = (Bytes){.refs = 1, .page = page, .n_bytes = n_bytes, .data = (char *)b + MEM_HEAD};
  return b;
}

Bytes *bytes_new(int64_t n_bytes) { return block_new(n_bytes, 0); }
Bytes *bytes_paged(int64_t n_bytes, int32_t page) { return block_new(n_bytes, page); }

Bytes *bytes_of_memory(const char *from, int64_t n_bytes, int32_t form) {
  Bytes *b = bytes_new(n_bytes);
  if (!b) return NULL;
  bytes_copy(b->data, from, (size_t)n_bytes);
  b->form = form;
  return b;
}

Bytes *bytes_clone(const Bytes *from) {
  return bytes_of_memory(from->data, from->n_bytes, from->form);
}

static void free_block(Bytes *b) {
  mem_free(b, have_memory(b) ? block_size(b->n_bytes, b->page) : MEM_HEAD);
}

static Bytes *kept;

bool bytes_any_kept(void) { return kept != NULL; }

/* Frees b if unused; the block's reference alone does not keep a part. */
static NOINLINE void let_go(Bytes *b) {
  BytesPart *p = as_part(b);
  if (p) {
    take_out(p);
    b = p->block;
    mem_free(p, sizeof *p);
    if (--b->refs > 0) return;
  } else if (b->refs) return;
  if (polls_running) {
    b->next_kept = kept;
    kept = b;
  } else free_block(b);
}

void bytes_release_kept(void) {
  if (polls_running) return;
  for (Bytes *b; (b = kept);) {
    kept = b->next_kept;
    free_block(b);
  }
}

void bytes_release(Bytes *b) {
  if (b && --b->refs < 2) let_go(b);
}

Bytes *bytes_part(Bytes *b, const Reach *r) {
  Bytes *block = block_of(b);
  BytesPart *up, **at = place_of(block, r, &up), *p = *at;
  if (p) {
    p->bytes.refs++;
    return &p->bytes;
  }
  if (!(p = mem_alloc(sizeof *p))) return NULL;
  p->bytes = (Bytes){
      .refs = 2, .form = b->form, .n_bytes = (int64_t)(r->to - r->from), .data = (char *)r->from};
  p->reach = *r;
  block->refs++;
  insert(p, block, at, up);
  return &p->bytes;
}

/* ------------------------------------------------------------ moving parts aside */

int64_t bytes_in_way(const Bytes *block, const Reach *r) {
  int64_t n = 0;
  uintptr_t end = 0;
  for (BytesPart *p = first_meeting(block, r); p; p = next_meeting(p, r)) {
    uintptr_t from = p->reach.from > end ? p->reach.from : end;
    if (p->reach.to <= from) continue;
    n += (int64_t)(p->reach.to - from);
    end = p->reach.to;
  }
  return n;
}

/* Moves p and the parts that overlap it to a new block; *rest: the parts after them. */
static bool move_together(BytesPart *p, BytesPart **rest) {
  uintptr_t from = p->reach.from, to = p->reach.to;
  for (*rest = p->next; *rest && (*rest)->reach.from < to; *rest = (*rest)->next)
    if ((*rest)->reach.to > to) to = (*rest)->reach.to;
  Bytes *old = p->block, *aside;
  aside = bytes_of_memory((const char *)from, (int64_t)(to - from), old->form);
  if (!aside) return false;
  aside->refs = 0;
  for (; p != *rest; p = p->next) {
    BytesPart *up;
    take_out(p);
    old->refs--; /* `old` keeps its owner's reference */
    p->bytes.data = aside->data + (p->reach.from - from);
    p->reach.from = (uintptr_t)p->bytes.data;
    p->reach.to = p->reach.from + (uintptr_t)p->bytes.n_bytes;
    aside->refs++;
    BytesPart **at = place_of(aside, &p->reach, &up);
    insert(p, aside, at, up);
  }
  return true;
}

bool bytes_make_way(Bytes *block, const Reach *r) {
  BytesPart *all = NULL, **end = &all;
  for (BytesPart *p = first_meeting(block, r); p; p = next_meeting(p, r)) {
    *end = p;
    p->next = NULL;
    end = &p->next;
  }
  while (all)
    if (!move_together(all, &all)) return false;
  return true;
}

/* ------------------------------------------------------------ comparison */

enum { STRETCH = 4096 };

static bool same(const char *a_, const char *b_, size_t n) {
  const uint8_t *a = (const uint8_t *)a_, *b = (const uint8_t *)b_;
  u8x16 d = {0};
  for (; n >= 64; n -= 64, a += 64, b += 64)
    UNROLLED for (size_t k = 0; k < 64; k += 16) d |= u8x16_load(a + k) ^ u8x16_load(b + k);
  uint64_t differs[2];
  memcpy(differs, &d, sizeof d);
  for (; n; n--) differs[0] |= (uint64_t)(*a++ ^ *b++);
  return !(differs[0] | differs[1]);
}

static size_t stretch_at(const Bytes *b, int64_t at) {
  return (size_t)(b->n_bytes - at < STRETCH ? b->n_bytes - at : STRETCH);
}

bool bytes_equal(const Bytes *a, const Bytes *b) {
  if (a->n_bytes != b->n_bytes) return false;
  for (int64_t at = 0; at < a->n_bytes; at += STRETCH)
    if (!same(a->data + at, b->data + at, stretch_at(a, at))) return false;
  return true;
}

void bytes_follow(Bytes *to, const Bytes *from) {
  for (int64_t at = 0; at < to->n_bytes; at += STRETCH) {
    size_t n = stretch_at(to, at);
    if (!same(to->data + at, from->data + at, n)) bytes_copy(to->data + at, from->data + at, n);
  }
}
