// SPDX-License-Identifier: Apache-2.0
/* Every block has its size in front of it, in a head as large as the alignment. The counter of a thread hangs
 * on a pthread key, not on thread-local storage, which leak checkers lose sight of in libraries loaded at run
 * time. */
#include "memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int has_key;

static void make_key(void) {
  has_key = pthread_key_create(&key, NULL) == 0;
}

static size_t *counter(void) {
  (void)pthread_once(&key_once, make_key);
  return has_key ? pthread_getspecific(key) : NULL;
}

void xnnpack_memory_count(size_t *to) {
  (void)pthread_once(&key_once, make_key);
  if (has_key) {
    (void)pthread_setspecific(key, to);
  }
}

static void *allocate(void *context, size_t bytes) {
  (void)context;
  if (bytes > SIZE_MAX - 2 * ALIGNMENT) {
    return NULL;
  }
  size_t whole = ALIGNMENT + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  unsigned char *block = aligned_alloc(ALIGNMENT, whole);
  if (block == NULL) {
    return NULL;
  }
  memcpy(block, &bytes, sizeof bytes);
  size_t *used = counter();
  if (used != NULL) {
    *used += bytes;
  }
  return block + ALIGNMENT;
}

static size_t size_of(const void *memory) {
  size_t bytes;
  memcpy(&bytes, (const unsigned char *)memory - ALIGNMENT, sizeof bytes);
  return bytes;
}

static void deallocate(void *context, void *memory) {
  (void)context;
  if (memory != NULL) {
    size_t *used = counter();
    if (used != NULL) {
      *used -= size_of(memory);
    }
    free((unsigned char *)memory - ALIGNMENT);
  }
}

static void *reallocate(void *context, void *memory, size_t bytes) {
  void *moved = allocate(context, bytes);
  if (moved != NULL && memory != NULL) {
    size_t before = size_of(memory);
    memcpy(moved, memory, before < bytes ? before : bytes);
    deallocate(context, memory);
  }
  return moved;
}

static void *aligned_allocate(void *context, size_t alignment, size_t bytes) {
  return alignment <= ALIGNMENT ? allocate(context, bytes) : NULL;
}

const struct xnn_allocator *xnnpack_memory_allocator(void) {
  static const struct xnn_allocator allocator = {NULL,       allocate,         reallocate,
                                                 deallocate, aligned_allocate, deallocate};
  return &allocator;
}

void *xnnpack_memory_allocate(size_t bytes) {
  void *memory = allocate(NULL, bytes);
  if (memory != NULL) {
    memset(memory, 0, bytes);
  }
  return memory;
}

void xnnpack_memory_free(void *memory) {
  deallocate(NULL, memory);
}

void *xnnpack_memory_grow(void *items, size_t *capacity, size_t count, size_t item_size) {
  if (count < *capacity) {
    return items;
  }
  size_t larger = *capacity == 0 ? 16 : *capacity * 2;
  void *moved = larger > SIZE_MAX / item_size ? NULL : realloc(items, larger * item_size);
  if (moved != NULL) {
    *capacity = larger;
  }
  return moved;
}
