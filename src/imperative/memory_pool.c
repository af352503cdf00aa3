// SPDX-License-Identifier: Apache-2.0
#include "imperative/imperative.h"

#include <string.h>

enum { SMALLEST_BITS = 6 }; /* 64 bytes */

/* The class of a size, and the bytes of its blocks: four classes between a power of two and the next, so that
 * at most a fifth is wasted. */
static uint32_t class_of(size_t bytes, size_t *out_block) {
  uint32_t index = 0;
  for (uint32_t bits = SMALLEST_BITS; bits < 8 * sizeof(size_t) - 1; bits++) {
    size_t power = (size_t)1 << bits;
    for (size_t part = 0; part < 4; part++, index++) {
      size_t block = power + part * (power / 4);
      if (block >= bytes) {
        *out_block = block;
        return index;
      }
    }
  }
  *out_block = bytes;
  return MEMORY_POOL_CLASSES;
}

void memory_pool_init(memory_pool_t *pool, size_t limit) {
  memset(pool, 0, sizeof *pool);
  pool->limit = limit;
  pthread_mutex_init(&pool->lock, NULL);
}

void memory_pool_deinit(memory_pool_t *pool) {
  for (uint32_t k = 0; k < MEMORY_POOL_CLASSES; k++) {
    while (pool->free[k] != NULL) {
      void *block = pool->free[k];
      memcpy(&pool->free[k], block, sizeof block);
      cleave_free(block);
    }
  }
  pthread_mutex_destroy(&pool->lock);
}

void *memory_pool_take(memory_pool_t *pool, size_t bytes) {
  size_t block = 0;
  uint32_t index = class_of(bytes, &block);
  void *memory = NULL;
  pthread_mutex_lock(&pool->lock);
  if (index < MEMORY_POOL_CLASSES && pool->free[index] != NULL) {
    memory = pool->free[index];
    memcpy(&pool->free[index], memory, sizeof memory);
    pool->kept_bytes -= block;
  }
  pool->used_bytes += block;
  pthread_mutex_unlock(&pool->lock);
  if (memory == NULL) {
    memory = cleave_allocate_aligned(block);
  }
  if (memory == NULL) {
    pthread_mutex_lock(&pool->lock);
    pool->used_bytes -= block;
    pthread_mutex_unlock(&pool->lock);
  }
  return memory;
}

void memory_pool_give(memory_pool_t *pool, void *memory, size_t bytes) {
  if (memory == NULL) {
    return;
  }
  size_t block = 0;
  uint32_t index = class_of(bytes, &block);
  pthread_mutex_lock(&pool->lock);
  pool->used_bytes -= block;
  bool is_kept = index < MEMORY_POOL_CLASSES && pool->kept_bytes + block <= pool->limit;
  if (is_kept) {
    memcpy(memory, &pool->free[index], sizeof memory);
    pool->free[index] = memory;
    pool->kept_bytes += block;
  }
  pthread_mutex_unlock(&pool->lock);
  if (!is_kept) {
    cleave_free(memory);
  }
}

void memory_pool_count(memory_pool_t *pool, uint64_t *out_used, uint64_t *out_kept) {
  pthread_mutex_lock(&pool->lock);
  *out_used = pool->used_bytes;
  *out_kept = pool->kept_bytes;
  pthread_mutex_unlock(&pool->lock);
}
