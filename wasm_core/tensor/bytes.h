/* Bytes: the memory of storages, which is copy-on-write.
 *
 * A block is memory, owned by a storage that may write to it. A snapshot of the whole block shares
 * it: the first writer moves to a new block. A snapshot of less has a part: a stretch of a block
 * that must not change. The owner keeps its memory: before a write, bytes_make_way moves aside the
 * parts that the write would change, and no others. */
#ifndef PG_BYTES_H
#define PG_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct BytesPart BytesPart;

typedef struct Bytes {
  int32_t refs;    /* a block's: storages and parts; a part's: storages, and one for the block */
  int32_t n_parts; /* blocks: the number of parts */
  int32_t form; /* the form of tensors over it. FORM_ABSENT: `data` is no memory. FORM_HOSTED: the
                 * host has the elements, `data` holds none. Or 0 */
  int32_t
      page; /* blocks with whole pages of the host's memory for themselves: the size of a page */
  int64_t n_bytes;
  char *data;
  union {
    BytesPart *parts;        /* blocks: the root of a tree */
    struct Bytes *next_kept; /* blocks without references: see bytes_release_kept */
  };
} Bytes;

/* A set of addresses: [from, to). With a period, only the first `run` bytes of each consecutive
 * period from `from` on. */
typedef struct {
  uintptr_t from, to;
  int64_t run, period; /* period 0: all addresses */
} Reach;
bool bytes_reach_meets(const Reach *a, const Reach *b);
/* The reach of all bytes of b. */
Reach bytes_reach(const Bytes *b);

/* New blocks with one reference; NULL on OOM. Uninitialised: */
Bytes *bytes_new(int64_t n_bytes);
/* In whole pages of the host's memory, of a size that is a power of two, where nothing else is. */
Bytes *bytes_paged(int64_t n_bytes, int32_t page);
Bytes *bytes_clone(const Bytes *from);
Bytes *bytes_of_memory(const char *from, int64_t n_bytes, int32_t form);
/* A block without memory. */
Bytes *bytes_absent(int64_t n_bytes, int32_t form);
void bytes_release(Bytes *b); /* NULL is fine */
/* A loop that polls keeps addresses, so blocks that become unused during a poll stay allocated.
 * Frees them, but not within a poll. */
void bytes_release_kept(void);
bool bytes_any_kept(void);

/* A reference to the part of b at a reach; the same part for the same reach. */
Bytes *bytes_part(Bytes *b, const Reach *r);
bool bytes_are_part(const Bytes *b);
/* Whether a single reference holds the memory of b. */
bool bytes_sole(const Bytes *b);
/* Whether several storages share b. */
bool bytes_shared(const Bytes *b);
/* The block in which b lies: b itself if it is no part. */
const Bytes *bytes_block(const Bytes *b);
/* The number of bytes in parts of a block that meet a reach. */
int64_t bytes_in_way(const Bytes *block, const Reach *r);
/* Moves these parts aside. False on OOM, with some parts moved. */
bool bytes_make_way(Bytes *block, const Reach *r);

/* Copies `from` to `to`, of the same size, where they differ. */
void bytes_follow(Bytes *to, const Bytes *from);
void bytes_copy(char *to, const char *from, size_t n); /* memcpy, but faster for many bytes */
bool bytes_equal(const Bytes *a, const Bytes *b);

#endif
