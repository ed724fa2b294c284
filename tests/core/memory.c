/* The allocator: size classes, counts, scratch; and an allocation refused at every possible
 * place. */
#include "check.h"
#include "walk/walk.h"

static void blocks_are_aligned_and_counted(void) {
  static const size_t sizes[] = {0, 1, 16, 17, 1024, 1025, 100000};
  void *blocks[COUNT(sizes)];
  int64_t n_blocks = mem_live_blocks(), n_bytes = mem_live_bytes();
  for (int i = 0; i < COUNT(sizes); i++) {
    blocks[i] = mem_alloc(sizes[i]);
    CHECK(blocks[i] && (uintptr_t)blocks[i] % 16 == 0);
    memset(blocks[i], 0xab, sizes[i]);
  }
  CHECK(mem_live_blocks() == n_blocks + COUNT(sizes));
  CHECK(mem_live_bytes() == n_bytes + 0 + 1 + 16 + 17 + 1024 + 1025 + 100000);
  for (int i = 0; i < COUNT(sizes); i++) mem_free(blocks[i], sizes[i]);
  CHECK(mem_live_blocks() == n_blocks && mem_live_bytes() == n_bytes);
}

/* Of those that are not from free lists. */
static void large_blocks_begin_a_line_behind_their_head(void) {
  for (size_t n_bytes = 1025; n_bytes < 5000; n_bytes += 17) {
    char *block = mem_alloc(n_bytes);
    CHECK(block && (uintptr_t)(block + MEM_HEAD) % 64 == 0);
    mem_free(block, n_bytes);
  }
}

static void a_freed_block_serves_its_size_class_again(void) {
  void *a = mem_alloc(33); /* the class of 33 to 48 bytes */
  mem_free(a, 33);
  void *smaller = mem_alloc(32), *larger = mem_alloc(49);
  CHECK(smaller != a && larger != a);
  void *b = mem_alloc(48);
  CHECK(b == a);
  mem_free(smaller, 32);
  mem_free(larger, 49);
  mem_free(b, 48);
}

static void chunks_without_live_blocks_are_given_back(void) {
  enum { N = 3000 };
  static void *blocks[N];
  mem_reclaim();
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < N; i++)
      memset(blocks[i] = mem_alloc((size_t)(16 + i % 1000)), i, (size_t)(16 + i % 1000));
    for (int i = 0; i < N; i++)
      if (i != N / 2) mem_free(blocks[i], (size_t)(16 + i % 1000));
    int64_t n_bytes = mem_reclaim();
    CHECK(n_bytes > N / 2 * 500 && n_bytes < N * 560);
    CHECK(mem_reclaim() == 0);
    const unsigned char *kept = blocks[N / 2];
    for (int i = 0; i < 16 + N / 2 % 1000; i++) CHECK(kept[i] == (N / 2) % 256);
    mem_free(blocks[N / 2], (size_t)(16 + N / 2 % 1000));
  }
  CHECK(mem_reclaim() > 0);
}

static void zeroed_blocks_are_zero(void) {
  char *a = mem_alloc(64);
  memset(a, 1, 64);
  mem_free(a, 64);
  char *b = mem_alloc_zero(64);
  for (int i = 0; i < 64; i++) CHECK(b[i] == 0);
  mem_free(b, 64);
}

static void the_peak_is_remembered_until_reset(void) {
  mem_reset_peak();
  int64_t base = mem_live_bytes();
  void *a = mem_alloc(5000);
  mem_free(a, 5000);
  CHECK(mem_peak_bytes() == base + 5000);
  mem_reset_peak();
  CHECK(mem_peak_bytes() == base);
}

/* What lies in the arena is no block of its own. */
static void scratch_is_freed_down_to_the_mark(void) {
  int64_t n_blocks = mem_live_blocks();
  CHECK(scratch_alloc(10));
  size_t mark = scratch_mark();
  const char *second = scratch_alloc(20);
  CHECK(second && scratch_alloc(3000));
  scratch_release(mark);
  CHECK(scratch_mark() == mark && mem_live_blocks() == n_blocks + !mem_recycles);
  CHECK(!mem_recycles || scratch_alloc(20) == second);
  scratch_release(mark - 1);
  CHECK(mem_live_blocks() == n_blocks);
}

static void scratch_beyond_the_arena_is_separate(void) {
  int64_t n_blocks = mem_live_blocks();
  char *blocks[6];
  for (int i = 0; i < 6; i++) { /* the fourth and the fifth find no room, the sixth does */
    size_t n_bytes = i < 5 ? 20000 : 1000;
    blocks[i] = scratch_alloc(n_bytes);
    CHECK(blocks[i] && (uintptr_t)blocks[i] % 16 == 0);
    memset(blocks[i], i, n_bytes);
  }
  for (int i = 0; i < 6; i++)
    CHECK(blocks[i][0] == i && blocks[i][999] == i && (i == 5 || blocks[i][19999] == i));
  scratch_release(scratch_mark() - 3);
  char *again = scratch_alloc(1000);
  CHECK(!mem_recycles || again == blocks[2] + 20000 + MEM_HEAD);
  scratch_release(scratch_mark() - 4);
  CHECK(mem_live_blocks() == n_blocks);
  CHECK(scratch_alloc(SIZE_MAX) == NULL && status_now == ERR_MEMORY);
  status_clear();
}

static void a_refused_block_is_an_error_and_no_more(void) {
  mem_fuse = 1;
  CHECK(tensor_empty(SIZES(10), DT_F32) == NULL);
  CHECK(status_now == ERR_MEMORY);
  CHECK(strstr(status_message(), "can't allocate memory") != NULL);
  CHECK(t_add_f(VECTOR(DT_F32, 1), 1) == NULL); /* nothing runs while the error stands */
  status_clear();
  CHECK_VALUES(t_add_f(VECTOR(DT_F32, 1), 1), 2);
}

static void a_tensor_of_more_than_all_memory_is_refused(void) {
  CHECK(tensor_empty(SIZES((int64_t)1 << 60), DT_U8) == NULL);
  CHECK(status_now == ERR_MEMORY);
  status_clear();
}

/* Forward, in place, views, backward with a graph of its own, a second backward. */
static void program(void) {
  Tensor *x = leaf(VECTOR(DT_F64, 1, 2, 3, 4)), *w = leaf(VECTOR(DT_F64, 2, 2, 2, 2));
  Tensor *y = t_mul(t_exp(t_mul(x, w)), t_sigmoid(x));
  Tensor *m = t_view(y, SIZES(2, 2));
  Tensor *buffer = t_clone(m);
  Tensor *row = t_select(buffer, 0, 0), *rows = t_mul(row, t_exp(row));
  t_copy_(t_select(buffer, 0, 0), rows, false);
  Tensor *z = t_sum_all(t_mul(t_softmax(buffer, 1, DT_NONE), t_transpose(m, 0, 1)));
  Tensor *inputs[] = {x, w}, *first[2] = {0}, *second[2] = {0};
  if (walk_backward(1, &z, NULL, true, true, 2, inputs, false, false, first)) {
    Tensor *s = t_sum_all(t_mul(first[0], first[1]));
    walk_backward(1, &s, NULL, true, false, 2, inputs, false, true, second);
  }
  walk_backward(1, &z, NULL, false, false, 0, NULL, true, true, NULL);
}

static void memory_may_end_at_any_allocation(void) {
  program(); /* what is allocated once and kept is there from now on */
  CHECK(!failed());
  pool_release(0, NULL);
  int64_t live = pg_live_count(), n_bytes = mem_live_bytes();
  bool done = false;
  int k = 0;
  while (!done && k < 10000) {
    mem_fuse = ++k;
    program();
    done = mem_fuse > 0; /* never came to it */
    mem_fuse = 0;
    CHECK(done ? !failed() : status_now == ERR_MEMORY);
    status_clear();
    scratch_release(0);
    pool_release(0, NULL);
    CHECK(pg_live_count() == live);
    CHECK(mem_live_bytes() == n_bytes);
    if (n_failed) break;
  }
  CHECK(done && k > 100);
}

/* Once with the free lists that hosts get, once with every block from the system, which the
 * sanitizer sees. */
int main(void) {
  for (int i = 0; i < 2; i++) {
    mem_recycles = i == 0;
    if (mem_recycles) {
      RUN(a_freed_block_serves_its_size_class_again);
      RUN(chunks_without_live_blocks_are_given_back);
    }
    RUN(blocks_are_aligned_and_counted);
    RUN(large_blocks_begin_a_line_behind_their_head);
    RUN(zeroed_blocks_are_zero);
    RUN(the_peak_is_remembered_until_reset);
    RUN(scratch_is_freed_down_to_the_mark);
    RUN(scratch_beyond_the_arena_is_separate);
    RUN(a_refused_block_is_an_error_and_no_more);
    RUN(a_tensor_of_more_than_all_memory_is_refused);
    RUN(memory_may_end_at_any_allocation);
  }
  return finish();
}
