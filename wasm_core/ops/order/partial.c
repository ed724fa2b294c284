/* The first items of an order that is not stable: topk and kthvalue.
 *
 * PyTorch promises no order among equal elements, but programs see one: that of libstdc++'s
 * partial_sort, nth_element and sort in topk, and of PyTorch's own quickselect in kthvalue. These
 * functions take the same steps, so that equal items end at the same places. */
#include "ops/order/partial.h"

#include "ground/poll.h"

static void swap_items(Item *a, Item *b) {
  Item item = *a;
  *a = *b;
  *b = item;
}

void order_insertion_sort(Item *v, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    Item item = v[i];
    int64_t j = i;
    for (; j > 0 && v[j - 1].key > item.key; j--) v[j] = v[j - 1];
    v[j] = item;
  }
}

static int log2_floor(int64_t n) { return 63 - __builtin_clzll((uint64_t)n); }

/* ------------------------------------------------------------ heaps, the largest first */

/* Puts an item into a hole: down along the larger children, then up to where it belongs. */
static void sift(Item *heap, int64_t n, int64_t hole, Item item) {
  const int64_t top = hole;
  while (2 * hole + 2 < n) {
    int64_t child = 2 * hole + 2;
    child -= heap[child].key < heap[child - 1].key;
    heap[hole] = heap[child];
    hole = child;
  }
  if (2 * hole + 2 == n) {
    heap[hole] = heap[n - 1];
    hole = n - 1;
  }
  for (; hole > top && heap[(hole - 1) / 2].key < item.key; hole = (hole - 1) / 2)
    heap[hole] = heap[(hole - 1) / 2];
  heap[hole] = item;
}

/* Moves the least m of n items to the front, as a heap; others may be lost. */
static void heap_of_least(Item *v, int64_t m, int64_t n) {
  for (int64_t parent = m / 2 - 1; parent >= 0; parent--) sift(v, m, parent, v[parent]);
  for (int64_t i = m; i < n && m; i++)
    if (v[i].key < v[0].key) sift(v, m, 0, v[i]);
}

static void partial_sort(Item *v, int64_t m, int64_t n) {
  heap_of_least(v, m, n);
  while (--m > 0) {
    Item item = v[m];
    v[m] = v[0];
    sift(v, m, 0, item);
  }
}

/* ------------------------------------------------------------ by partitions */

enum { SPLIT_LEAST = 4, SORT_LEAST = 17 };

/* The median of three items. */
static Item *median_of(Item *a, Item *b, Item *c) {
  if (a->key < b->key) {
    if (b->key < c->key) return b;
    return a->key < c->key ? c : a;
  }
  if (a->key < c->key) return a;
  return b->key < c->key ? c : b;
}

/* Splits n items by the median of three, which goes first; returns where the second part begins. */
static int64_t split(Item *v, int64_t n) {
  swap_items(v, median_of(v + 1, v + n / 2, v + n - 1));
  const uint64_t pivot = v[0].key;
  for (int64_t i = 1, j = n;; i++) {
    while (v[i].key < pivot) i++;
    do j--;
    while (pivot < v[j].key);
    if (i >= j) return i;
    swap_items(v + i, v + j);
  }
}

/* Moves item k of the order to place k, with none before it greater; others may be lost. */
static void place_nth(Item *v, int64_t n, int64_t k) {
  for (int splits = 2 * log2_floor(n); n >= SPLIT_LEAST; splits--) {
    if (!splits) {
      heap_of_least(v, k + 1, n);
      swap_items(v, v + k);
      return;
    }
    int64_t second = split(v, n);
    if (second > k) n = second;
    else v += second, n -= second, k -= second;
  }
  order_insertion_sort(v, n);
}

/* Sorts by partitions. Parts too short to be split stay unsorted. */
static void sort_parts(Item *v, int64_t n, int splits) {
  for (; n >= SORT_LEAST; splits--) {
    if (!splits) {
      partial_sort(v, n, n);
      return;
    }
    int64_t second = split(v, n);
    sort_parts(v + second, n - second, splits - 1);
    n = second;
  }
}

void order_first_items(Item *v, int64_t n, int64_t m, bool sorted) {
  enum { FEW = 64 }; /* m is few if n has as many times m */
  if (FEW * m <= n) {
    partial_sort(v, m, n);
    return;
  }
  place_nth(v, n, m - 1);
  if (!sorted || m < 2) return;
  sort_parts(v, m - 1, 2 * log2_floor(m - 1));
  order_insertion_sort(v, m - 1);
}

/* Quickselect with the median of three as pivot. */
Item order_nth_item(Item *v, int64_t n, int64_t k) {
  int64_t low = 0, high = n - 1;
  while (high > low + 1 && !poll_stops(4 * (high - low))) {
    swap_items(v + low + (high - low) / 2, v + low + 1);
    if (v[low + 1].key > v[high].key) swap_items(v + low + 1, v + high);
    if (v[low].key > v[high].key) swap_items(v + low, v + high);
    if (v[low + 1].key > v[low].key) swap_items(v + low + 1, v + low);
    const uint64_t pivot = v[low].key;
    int64_t i = low + 1, j = high;
    for (;;) {
      do i++;
      while (pivot > v[i].key);
      do j--;
      while (v[j].key > pivot);
      if (j < i) break;
      swap_items(v + i, v + j);
    }
    swap_items(v + low, v + j);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
  if (high == low + 1 && v[low].key > v[high].key) swap_items(v + low, v + high);
  return v[k];
}
