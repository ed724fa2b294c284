/* Size-class free lists over malloc, and scratch space; see memory.h. */
#define _POSIX_C_SOURCE 200112L
#include "ground/memory.h"

#include <stdlib.h>
#include <string.h>

#include "ground/status.h"

/* A chunk begins at a multiple of CHUNK, and leaves room for malloc's own words before the next. */
enum {
  ALIGN = 16,
  LINE = 64, /* of the processor's cache */
  SMALL_MAX = 1024,
  N_CLASSES = SMALL_MAX / ALIGN,
  CHUNK = 64 * 1024,
  CHUNK_BYTES = CHUNK - 64
};

typedef struct Free {
  struct Free *next;
} Free;

/* Small blocks are cut from chunks; a chunk mixes size classes. */
typedef struct Chunk {
  struct Chunk *next;
  uint32_t n_cut, n_free; /* bytes; n_cut includes the head, only mem_reclaim uses n_free */
} Chunk;
enum { CHUNK_HEAD = ALIGN };
_Static_assert(sizeof(Chunk) <= CHUNK_HEAD, "the head of a chunk");

static Free *free_lists[N_CLASSES + 1];
static Chunk *chunks; /* blocks are cut from the first */
static int64_t live_blocks, live_bytes, peak_bytes;

static void *out_of_memory(uint64_t n_bytes) {
  return fail(ERR_MEMORY,
              "pygrad: can't allocate memory: you tried to allocate %llu bytes; an engine has at "
              "most 4 GiB, less where it is limited, of which %lld bytes are in use",
              (unsigned long long)n_bytes, (Shown)live_bytes);
}

/* ------------------------------------------------------------ large blocks */

/* Aligns the byte after the header to a cache line, or a page. malloc's pointer is stored just
 * before the block. */
static void *large_alloc(size_t n_bytes, size_t line) {
  if (n_bytes > SIZE_MAX - 2 * line) return NULL;
  size_t n = n_bytes + line + sizeof(void *);
  char *raw = malloc(n);
  if (!raw && mem_reclaim()) raw = malloc(n);
  if (!raw) return NULL;
  uintptr_t least = (uintptr_t)raw + sizeof raw + MEM_HEAD;
  char *p = (char *)((least + line - 1) / line * line - MEM_HEAD);
  memcpy(p - sizeof raw, &raw, sizeof raw);
  return p;
}

static void large_free(void *p) {
  void *raw;
  memcpy(&raw, (char *)p - sizeof(void *), sizeof raw);
  free(raw);
}

/* ------------------------------------------------------------ small blocks */

static Chunk *chunk_of(const void *block) {
  return (Chunk *)((uintptr_t)block & ~(uintptr_t)(CHUNK - 1));
}
static bool is_idle(const Chunk *c) { return c->n_cut == CHUNK_HEAD + c->n_free; }

static bool add_chunk(void) {
  void *fresh;
  if (posix_memalign(&fresh, CHUNK, CHUNK_BYTES) &&
      !(mem_reclaim() && !posix_memalign(&fresh, CHUNK, CHUNK_BYTES)))
    return false;
  chunks = memcpy(fresh, &(Chunk){chunks, CHUNK_HEAD, 0}, sizeof(Chunk));
  return true;
}

static void *small_alloc(size_t class_) {
  Free *f = free_lists[class_];
  if (f) {
    free_lists[class_] = f->next;
    return f;
  }
  size_t n = class_ * ALIGN;
  if ((!chunks || CHUNK_BYTES - chunks->n_cut < n) && !add_chunk()) return NULL;
  void *p = (char *)chunks + chunks->n_cut;
  chunks->n_cut += (uint32_t)n;
  return p;
}

/* Takes the blocks of idle chunks from the free lists, then gives the chunks back. */
int64_t mem_reclaim(void) {
  for (int class_ = 1; class_ <= N_CLASSES; class_++)
    for (Free *f = free_lists[class_]; f; f = f->next)
      chunk_of(f)->n_free += (uint32_t)(class_ * ALIGN);
  for (int class_ = 1; class_ <= N_CLASSES; class_++)
    for (Free **f = &free_lists[class_]; *f;) {
      if (is_idle(chunk_of(*f))) *f = (*f)->next;
      else f = &(*f)->next;
    }
  int64_t n_bytes = 0;
  for (Chunk **at = &chunks; *at;) {
    Chunk *c = *at;
    if (is_idle(c)) {
      *at = c->next;
      free(c);
      n_bytes += CHUNK_BYTES;
    } else {
      c->n_free = 0;
      at = &c->next;
    }
  }
  return n_bytes;
}

#ifdef PG_CHECK_MEMORY
#include <sanitizer/lsan_interface.h>
int64_t mem_fuse;
bool mem_recycles;
#define REFUSED() (mem_fuse && --mem_fuse == 0)
#define RECYCLES() mem_recycles
#define IMMORTAL(p) __lsan_ignore_object(p)
#else
#define REFUSED() false
#define RECYCLES() true
#define IMMORTAL(p) (void)(p)
#endif

/* The guarded build: each block ends in a pattern that mem_free checks. */
#ifdef PG_GUARDED
enum { GUARD = ALIGN, GUARD_BYTE = 0xA5, FREED_BYTE = 0xDB };
static void guard_begin(char *p, size_t n_bytes) { memset(p + n_bytes, GUARD_BYTE, GUARD); }
static void guard_end(char *p, size_t n_bytes) {
  for (int i = 0; i < GUARD; i++)
    if ((uint8_t)p[n_bytes + (size_t)i] != GUARD_BYTE) __builtin_trap();
  memset(p, FREED_BYTE, n_bytes + GUARD);
}
#else
enum { GUARD = 0 };
#define guard_begin(p, n_bytes) (void)(p)
#define guard_end(p, n_bytes) (void)(p)
#endif

static size_t class_of(size_t n_bytes) {
  return RECYCLES() ? ((n_bytes ? n_bytes : 1) + GUARD + ALIGN - 1) / ALIGN : N_CLASSES + 1;
}

static void count_block(int64_t n_bytes) {
  live_blocks++;
  live_bytes += n_bytes;
  if (live_bytes > peak_bytes) peak_bytes = live_bytes;
}

static void discount_block(int64_t n_bytes) {
  live_blocks--;
  live_bytes -= n_bytes;
}

void *mem_alloc(size_t n_bytes) {
  if (REFUSED()) return out_of_memory(n_bytes);
  size_t class_ = class_of(n_bytes);
  void *p = class_ <= N_CLASSES ? small_alloc(class_) : large_alloc(n_bytes + GUARD, LINE);
  if (!p) return out_of_memory(n_bytes);
  guard_begin(p, n_bytes);
  count_block((int64_t)n_bytes);
  return p;
}

void *mem_alloc_paged(size_t n_bytes, size_t page) {
  size_t n = n_bytes > SMALL_MAX ? n_bytes : SMALL_MAX + 1;
  void *p = REFUSED() ? NULL : large_alloc(n + GUARD, page);
  if (!p) return out_of_memory(n);
  guard_begin(p, n);
  count_block((int64_t)n);
  return p;
}

/* Nodes and lists have a few words each, which this loop clears faster than a call of the
 * toolchain's memset. no_builtin keeps clang from turning the loop into that call. */
enum { FEW_BYTES = 512 };
typedef int64_t Pair __attribute__((vector_size(16)));
#ifdef __clang__
__attribute__((no_builtin("memset")))
#endif
void mem_clear(void *p, size_t n_bytes) {
  if (n_bytes > FEW_BYTES || n_bytes % sizeof(int64_t)) {
    memset(p, 0, n_bytes);
    return;
  }
  int64_t *at = p, *end = at + n_bytes / sizeof *at;
  for (; end - at >= 8; at += 8) {
    Pair *pairs = (Pair *)(void *)at;
    pairs[0] = pairs[1] = pairs[2] = pairs[3] = (Pair){0, 0};
  }
  for (; at < end; at++) *at = 0;
}

void *mem_alloc_zero(size_t n_bytes) {
  void *p = mem_alloc(n_bytes);
  if (p) mem_clear(p, n_bytes);
  return p;
}

void mem_free(void *p, size_t n_bytes) {
  if (!p) return;
  guard_end(p, n_bytes);
  discount_block((int64_t)n_bytes);
  size_t class_ = class_of(n_bytes);
  if (class_ > N_CLASSES) {
    large_free(p);
    return;
  }
  Free *f = p;
  f->next = free_lists[class_];
  free_lists[class_] = f;
}

void *mem_permanent(size_t n_bytes) {
  void *p = REFUSED() ? NULL : malloc(n_bytes);
  if (!p && mem_reclaim()) p = malloc(n_bytes);
  if (!p) return out_of_memory(n_bytes);
  memset(p, 0, n_bytes);
  IMMORTAL(p);
  return p;
}

int64_t mem_live_blocks(void) { return live_blocks; }
int64_t mem_live_bytes(void) { return live_bytes; }
int64_t mem_peak_bytes(void) { return peak_bytes; }
void mem_reset_peak(void) { peak_bytes = live_bytes; }

/* Scratch is a stack of blocks, each with its size. Blocks are cut from an arena while they fit,
 * and are then not counted; the builds that check memory allocate each block. */
typedef struct Scratch {
  struct Scratch *below;
  size_t n_bytes, depth;
} Scratch;
static Scratch *scratch_top;
enum { ARENA_BYTES = 64 * 1024 };
static _Alignas(ALIGN) char arena[ARENA_BYTES];
static size_t arena_used;

static bool is_in_arena(const Scratch *s) { return (uintptr_t)s - (uintptr_t)arena < ARENA_BYTES; }

static Scratch *take_from_arena(size_t n_bytes) {
  if (!RECYCLES() || GUARD > 0 || n_bytes > ARENA_BYTES - arena_used) return NULL;
  Scratch *s = (Scratch *)(void *)(arena + arena_used);
  arena_used += (n_bytes + ALIGN - 1) / ALIGN * ALIGN;
  return s;
}

void *scratch_alloc(size_t n_bytes) {
  if (n_bytes > SIZE_MAX - MEM_HEAD) return out_of_memory(n_bytes);
  size_t whole = n_bytes + MEM_HEAD;
  Scratch *s = take_from_arena(whole);
  if (!s) s = mem_alloc(whole);
  if (!s) return NULL;
  *s = (Scratch){scratch_top, whole, scratch_top ? scratch_top->depth + 1 : 1};
  scratch_top = s;
  return (char *)s + MEM_HEAD;
}

void *scratch_array(int64_t count, size_t size) {
  bool fits = count >= 0 && (uint64_t)count <= (SIZE_MAX / 2) / size;
  return fits ? scratch_alloc((size_t)count * size) : out_of_memory((uint64_t)count * size);
}

void *scratch_array_zero(int64_t count, size_t size) {
  void *array = scratch_array(count, size);
  if (array) mem_clear(array, (size_t)count * size);
  return array;
}

size_t scratch_mark(void) { return scratch_top ? scratch_top->depth : 0; }

void scratch_release(size_t mark) {
  while (scratch_top && scratch_top->depth > mark) {
    Scratch *s = scratch_top;
    scratch_top = s->below;
    if (is_in_arena(s)) arena_used = (size_t)((char *)s - arena);
    else mem_free(s, s->n_bytes);
  }
}

#if defined(__EMSCRIPTEN__)
/* Emscripten's malloc reports growth to its own JavaScript; no host here needs the report. */
void emscripten_notify_memory_growth(size_t index);
void emscripten_notify_memory_growth(size_t index) { (void)index; }
#endif
