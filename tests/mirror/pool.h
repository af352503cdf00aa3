// SPDX-License-Identifier: Apache-2.0
/*
 * Memory of one device: a range of addresses of its own, divided into blocks that are free or used. All
 * functions are thread-safe.
 *
 * With the guard on, the whole range is inaccessible except between `open` and `close`, which every call of
 * the library that works on device memory is wrapped in: a host that reads or writes it crashes on the spot.
 */
#ifndef MIRROR_POOL_H
#define MIRROR_POOL_H

#include <pthread.h>

#include "cleave/backend.h"

typedef struct mirror_block {
  size_t offset;
  size_t bytes; /* with the rest up to the next block */
  size_t asked; /* by the caller; 0: free */
  bool is_own;  /* of the library: weights, scratch memory */
} mirror_block_t;

typedef struct mirror_pool {
  pthread_mutex_t lock;
  void *mapping;
  unsigned char *base; /* NULL until the first allocation */
  size_t capacity;
  mirror_block_t *blocks; /* side by side from 0 to capacity, no two free ones in a row */
  size_t count;
  size_t room;
  uint64_t live; /* blocks of the host */
  uint64_t live_bytes;
  uint64_t own_bytes; /* of the library */
  uint32_t open;      /* calls at work */
  bool is_guarded;
} mirror_pool_t;

/* `capacity` in bytes; the memory itself is taken from the system as it is used. False: no lock. */
bool mirror_pool_init(mirror_pool_t *pool, size_t capacity);
void mirror_pool_deinit(mirror_pool_t *pool);

/* CLEAVE_ERROR_INVALID_ARGUMENT after the first allocation. */
CLEAVE_MUST_USE cleave_status_t mirror_pool_resize(mirror_pool_t *pool, size_t capacity);

/* 64-byte aligned. CLEAVE_ERROR_OUT_OF_MEMORY where the device is full, or the system is. While the guard is
 * on, new memory is full of 0xa5: nobody may count on zeros. */
CLEAVE_MUST_USE cleave_status_t mirror_pool_allocate(mirror_pool_t *pool, size_t bytes, bool is_own,
                                                     void **out_memory);
/* False where `memory` is no block of that kind. NULL is nothing. */
bool mirror_pool_free(mirror_pool_t *pool, void *memory, bool is_own);
/* All blocks of the host. */
void mirror_pool_release_all(mirror_pool_t *pool);

/* Are `bytes` at `memory` inside of one block of the host? */
bool mirror_pool_holds(mirror_pool_t *pool, const void *memory, size_t bytes);

/* Switches the guard. False: the system refused. */
bool mirror_pool_guard(mirror_pool_t *pool, bool is_guarded);
/* Calls nest and overlap. */
void mirror_pool_open(mirror_pool_t *pool);
void mirror_pool_close(mirror_pool_t *pool);

/* Copies of the counters. */
void mirror_pool_count(mirror_pool_t *pool, uint64_t *out_live, uint64_t *out_live_bytes,
                       uint64_t *out_own_bytes);

#endif /* MIRROR_POOL_H */
