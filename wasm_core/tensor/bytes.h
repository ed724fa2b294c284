/* Bytes: the memory of storages, which is copy-on-write.
 *
 * A block is memory. Its owner, a storage, may write to it. A snapshot of all of it shares the
 * block: who writes first moves to another. A snapshot of less has a part: a stretch of a block,
 * which stays as it is. The owner keeps its place: before it writes, bytes_make_way moves those
 * parts aside that the write would change, and no other. */
#ifndef PG_BYTES_H
#define PG_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct BytesPart BytesPart;

typedef struct {
  int32_t refs; /* of a block: storages and its parts; of a part: storages, and the block's one */
  int32_t n_parts; /* of a block */
  int32_t form; /* of the tensors over it: of FORM_ABSENT, and `data` is no memory; FORM_HOSTED, and
                 * what is there are no elements: they are hidden, the host has them; or 0 */
  int64_t n_bytes;
  char *data;
  BytesPart *parts; /* of a block: the root of a tree */
} Bytes;

/* A set of addresses: [from, to). With a period, only the first `run` bytes of each of the periods
 * that follow one another from `from` on. */
typedef struct {
  uintptr_t from, to;
  int64_t run, period; /* period 0: everywhere */
} Reach;
bool reach_meets(const Reach *a, const Reach *b);
/* The reach of all of b. */
Reach reach_of_bytes(const Bytes *b);

/* New blocks with one reference; NULL on OOM. Uninitialised: */
Bytes *bytes_new(int64_t n_bytes);
Bytes *bytes_clone(const Bytes *from);
Bytes *bytes_of_memory(const char *from, int64_t n_bytes, int32_t form);
/* A block without memory. */
Bytes *bytes_absent(int64_t n_bytes, int32_t form);
void bytes_release(Bytes *b); /* NULL is fine */

/* A reference to the part of b at a reach; the same part for the same reach. */
Bytes *bytes_part(Bytes *b, const Reach *r);
bool bytes_are_part(const Bytes *b);
/* Whether one reference to b is all that holds its memory. */
bool bytes_sole(const Bytes *b);
/* Whether storages share b. */
bool bytes_shared(const Bytes *b);
/* The block in which b lies: b itself if it is no part. */
const Bytes *bytes_block(const Bytes *b);
/* The number of bytes in parts of a block that meet a reach. */
int64_t bytes_in_way(const Bytes *block, const Reach *r);
/* Moves those parts aside. False on OOM; then each is where it was or aside. */
bool bytes_make_way(Bytes *block, const Reach *r);

/* Makes `to` equal to `from`, which is as large, where it differs. */
void bytes_follow(Bytes *to, const Bytes *from);
void bytes_copy(char *to, const char *from, size_t n); /* memcpy, but faster for many bytes */
bool bytes_equal(const Bytes *a, const Bytes *b);

#endif
