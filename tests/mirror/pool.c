// SPDX-License-Identifier: Apache-2.0
// The range is reserved once, never moves, and has huge pages where the system can. Blocks stand in one
// sorted array: first fit, neighbours that are free are one block, and a pointer is found by bisection, which
// is what every tensor of every run needs.
#include "pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
  ALIGNMENT = 64,
  FIRST_ROOM = 64,
  RETURN_BYTES = 1 << 20,
  PAGE = 4096,
  HUGE_PAGE = 2 << 20,
  POISON = 0xa5
};

bool mirror_pool_init(mirror_pool_t *pool, size_t capacity) {
  *pool = (mirror_pool_t){.capacity = capacity / PAGE * PAGE};
  return pthread_mutex_init(&pool->lock, NULL) == 0;
}

void mirror_pool_deinit(mirror_pool_t *pool) {
  if (pool->base != NULL) {
    (void)munmap(pool->mapping, pool->capacity + HUGE_PAGE);
  }
  free(pool->blocks);
  (void)pthread_mutex_destroy(&pool->lock);
}

cleave_status_t mirror_pool_resize(mirror_pool_t *pool, size_t capacity) {
  (void)pthread_mutex_lock(&pool->lock);
  bool can = pool->base == NULL && capacity >= PAGE;
  if (can) {
    pool->capacity = capacity / PAGE * PAGE;
  }
  (void)pthread_mutex_unlock(&pool->lock);
  return can ? CLEAVE_OK : CLEAVE_ERROR_INVALID_ARGUMENT;
}

/* Makes the range accessible where a call is at work or nobody guards. */
static bool protect(mirror_pool_t *pool) {
  bool is_open = !pool->is_guarded || pool->open > 0;
  return pool->base == NULL ||
         mprotect(pool->base, pool->capacity, is_open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0;
}

static bool reserve(mirror_pool_t *pool) {
  if (pool->base != NULL) {
    return true;
  }
  pool->blocks = calloc(FIRST_ROOM, sizeof *pool->blocks);
  if (pool->blocks == NULL) {
    return false;
  }
  void *mapping =
      mmap(NULL, pool->capacity + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping != MAP_FAILED) {
    pool->mapping = mapping;
    pool->base = (unsigned char *)mapping + (HUGE_PAGE - (uintptr_t)mapping % HUGE_PAGE) % HUGE_PAGE;
    if (protect(pool)) {
#ifdef MADV_HUGEPAGE
      (void)madvise(pool->base, pool->capacity, MADV_HUGEPAGE);
#endif
      pool->room = FIRST_ROOM;
      pool->blocks[0] = (mirror_block_t){.bytes = pool->capacity};
      pool->count = 1;
      return true;
    }
    (void)munmap(mapping, pool->capacity + HUGE_PAGE);
    pool->base = NULL;
  }
  free(pool->blocks);
  pool->blocks = NULL;
  return false;
}

/* Room for one more block. */
static bool grow(mirror_pool_t *pool) {
  if (pool->count < pool->room) {
    return true;
  }
  mirror_block_t *blocks = realloc(pool->blocks, 2 * pool->room * sizeof *blocks);
  if (blocks == NULL) {
    return false;
  }
  pool->blocks = blocks;
  pool->room *= 2;
  return true;
}

/* Block of an offset below the capacity. */
static size_t find(const mirror_pool_t *pool, size_t offset) {
  size_t low = 0;
  size_t high = pool->count - 1;
  while (low < high) {
    size_t middle = (low + high + 1) / 2;
    if (pool->blocks[middle].offset <= offset) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

static bool take(mirror_pool_t *pool, size_t bytes, bool is_own, void **out_memory) {
  size_t asked = bytes == 0 ? 1 : bytes;
  if (asked > pool->capacity || !reserve(pool) || !grow(pool)) {
    return false;
  }
  size_t whole = (asked + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  size_t at = 0;
  while (at < pool->count && (pool->blocks[at].asked > 0 || pool->blocks[at].bytes < whole)) {
    at++;
  }
  if (at == pool->count) {
    return false;
  }
  mirror_block_t *block = &pool->blocks[at];
  if (block->bytes > whole) {
    memmove(block + 2, block + 1, (pool->count - at - 1) * sizeof *block);
    block[1] = (mirror_block_t){.offset = block->offset + whole, .bytes = block->bytes - whole};
    block->bytes = whole;
    pool->count++;
  }
  block->asked = asked;
  block->is_own = is_own;
  pool->live += !is_own;
  *(is_own ? &pool->own_bytes : &pool->live_bytes) += asked;
  *out_memory = pool->base + block->offset;
  return true;
}

/* Large blocks go back to the system. */
static void give_back(mirror_pool_t *pool, size_t at) {
  mirror_block_t *block = &pool->blocks[at];
  pool->live -= !block->is_own;
  *(block->is_own ? &pool->own_bytes : &pool->live_bytes) -= block->asked;
  size_t from = (block->offset + PAGE - 1) / PAGE * PAGE;
  size_t to = (block->offset + block->bytes) / PAGE * PAGE;
  if (block->bytes >= RETURN_BYTES && to > from) {
    (void)madvise(pool->base + from, to - from, MADV_DONTNEED);
  }
  block->asked = 0;
  size_t first = at > 0 && block[-1].asked == 0 ? at - 1 : at;
  size_t end = at + 1 < pool->count && block[1].asked == 0 ? at + 2 : at + 1;
  for (size_t k = first + 1; k < end; k++) {
    pool->blocks[first].bytes += pool->blocks[k].bytes;
  }
  memmove(&pool->blocks[first + 1], &pool->blocks[end], (pool->count - end) * sizeof *block);
  pool->count -= end - first - 1;
}

cleave_status_t mirror_pool_allocate(mirror_pool_t *pool, size_t bytes, bool is_own, void **out_memory) {
  *out_memory = NULL;
  (void)pthread_mutex_lock(&pool->lock);
  bool is_there = take(pool, bytes, is_own, out_memory);
  bool poisons = is_there && pool->is_guarded;
  (void)pthread_mutex_unlock(&pool->lock);
  if (poisons) {
    mirror_pool_open(pool);
    memset(*out_memory, POISON, bytes);
    mirror_pool_close(pool);
  }
  return is_there ? CLEAVE_OK : CLEAVE_ERROR_OUT_OF_MEMORY;
}

bool mirror_pool_free(mirror_pool_t *pool, void *memory, bool is_own) {
  if (memory == NULL) {
    return true;
  }
  (void)pthread_mutex_lock(&pool->lock);
  size_t offset = (size_t)((uintptr_t)memory - (uintptr_t)pool->base);
  bool is_inside = pool->base != NULL && offset < pool->capacity;
  size_t at = is_inside ? find(pool, offset) : 0;
  bool is_block = is_inside && pool->blocks[at].offset == offset && pool->blocks[at].asked > 0 &&
                  pool->blocks[at].is_own == is_own;
  if (is_block) {
    give_back(pool, at);
  }
  (void)pthread_mutex_unlock(&pool->lock);
  return is_block;
}

void mirror_pool_release_all(mirror_pool_t *pool) {
  (void)pthread_mutex_lock(&pool->lock);
  for (size_t k = pool->count; k-- > 0;) {
    if (k < pool->count && pool->blocks[k].asked > 0 && !pool->blocks[k].is_own) {
      give_back(pool, k);
    }
  }
  (void)pthread_mutex_unlock(&pool->lock);
}

bool mirror_pool_holds(mirror_pool_t *pool, const void *memory, size_t bytes) {
  (void)pthread_mutex_lock(&pool->lock);
  size_t offset = (size_t)((uintptr_t)memory - (uintptr_t)pool->base);
  bool holds = false;
  if (pool->base != NULL && offset < pool->capacity) {
    const mirror_block_t *block = &pool->blocks[find(pool, offset)];
    size_t begin = offset - block->offset;
    holds = block->asked > 0 && !block->is_own && begin <= block->asked && bytes <= block->asked - begin;
  }
  (void)pthread_mutex_unlock(&pool->lock);
  return holds;
}

bool mirror_pool_guard(mirror_pool_t *pool, bool is_guarded) {
  (void)pthread_mutex_lock(&pool->lock);
  bool was = pool->is_guarded;
  pool->is_guarded = is_guarded;
  bool done = protect(pool);
  pool->is_guarded = done ? is_guarded : was;
  (void)pthread_mutex_unlock(&pool->lock);
  return done;
}

/* Nothing can be done where the system refuses here: the access that follows crashes, as it should. */
void mirror_pool_open(mirror_pool_t *pool) {
  (void)pthread_mutex_lock(&pool->lock);
  if (pool->open++ == 0 && pool->is_guarded) {
    (void)protect(pool);
  }
  (void)pthread_mutex_unlock(&pool->lock);
}

void mirror_pool_close(mirror_pool_t *pool) {
  (void)pthread_mutex_lock(&pool->lock);
  if (--pool->open == 0 && pool->is_guarded) {
    (void)protect(pool);
  }
  (void)pthread_mutex_unlock(&pool->lock);
}

void mirror_pool_count(mirror_pool_t *pool, uint64_t *out_live, uint64_t *out_live_bytes,
                       uint64_t *out_own_bytes) {
  (void)pthread_mutex_lock(&pool->lock);
  *out_live += pool->live;
  *out_live_bytes += pool->live_bytes;
  *out_own_bytes += pool->own_bytes;
  (void)pthread_mutex_unlock(&pool->lock);
}
