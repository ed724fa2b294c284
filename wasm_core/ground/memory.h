/* The one caller of the system allocator.
 *
 * Small blocks come from free lists by size class, large ones from malloc, both 16-byte aligned. An
 * owner that puts a header in a block uses its first MEM_HEAD bytes: in large blocks, the byte
 * after them begins a cache line. The caller passes the size again to free a block. Live blocks and
 * bytes are counted. */
#ifndef PG_MEMORY_H
#define PG_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MEM_HEAD = sizeof(void *) == 4 ? 32 : 64 }; /* a native build has wider pointers */

/* NULL and ERR_MEMORY if there is no room. Contents are undefined. */
void *mem_alloc(size_t n_bytes);
void *mem_alloc_zero(size_t n_bytes);
/* A large block. The byte after its head begins a page, whose size is a power of two. */
void *mem_alloc_paged(size_t n_bytes, size_t page);
/* memset to 0, fast for a few words. */
void mem_clear(void *p, size_t n_bytes);
void mem_free(void *p, size_t n_bytes);
/* Returns chunks without live blocks to malloc, for blocks of other sizes; returns the number of
 * bytes. Slow: called only when malloc fails. */
int64_t mem_reclaim(void);
/* For tables that live as long as the engine: not counted, never freed. */
void *mem_permanent(size_t n_bytes);

int64_t mem_live_blocks(void);
int64_t mem_live_bytes(void);
int64_t mem_peak_bytes(void);
void mem_reset_peak(void);

#ifdef PG_CHECK_MEMORY    /* the sanitizer build: every block comes from the system allocator */
extern int64_t mem_fuse;  /* the allocation to refuse, counted from 1; 0: none */
extern bool mem_recycles; /* use free lists nevertheless; set before the first allocation */
#endif

/* Scratch lives until the crossing (or the backward node) that asked for it ends. */
void *scratch_alloc(size_t n_bytes);
/* ERR_MEMORY also if the product exceeds the address space */
void *scratch_array(int64_t count, size_t size);
void *scratch_array_zero(int64_t count, size_t size);
size_t scratch_mark(void);
void scratch_release(size_t mark);

#endif
