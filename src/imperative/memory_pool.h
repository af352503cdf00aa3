// SPDX-License-Identifier: Apache-2.0
/* Memory of arrays: blocks of released ones are kept for the next of about the same size. Any thread. */
#ifndef CLEAVE_IMPERATIVE_MEMORY_POOL_H
#define CLEAVE_IMPERATIVE_MEMORY_POOL_H

#include <pthread.h>

#include "base/memory.h"

enum { MEMORY_POOL_CLASSES = 4 * 58 };

typedef struct memory_pool {
  pthread_mutex_t lock;
  void *free[MEMORY_POOL_CLASSES]; /* lists; a block begins with the next one */
  size_t limit;                    /* of bytes that are kept */
  size_t kept_bytes;
  size_t used_bytes;
} memory_pool_t;

void memory_pool_init(memory_pool_t *pool, size_t limit);
/* Every block is back. */
void memory_pool_deinit(memory_pool_t *pool);

/* 64-byte aligned memory for at least `bytes`, not zeroed; NULL: there is none. */
void *memory_pool_take(memory_pool_t *pool, size_t bytes);
/* `bytes` as they were asked for. NULL is a no-op. */
void memory_pool_give(memory_pool_t *pool, void *memory, size_t bytes);

void memory_pool_count(memory_pool_t *pool, uint64_t *out_used, uint64_t *out_kept);

#endif /* CLEAVE_IMPERATIVE_MEMORY_POOL_H */
