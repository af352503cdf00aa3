// SPDX-License-Identifier: Apache-2.0
/* The one gate to malloc, or to the allocator of whoever embeds cleave: sizes are checked, and tests can make
 * any allocation fail. */
#include "base/memory.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/sized.h"

#define CACHE_LINE ((size_t)64)
#define LARGE_PAGE ((size_t)2 << 20)

enum { MIN_ALIGNMENT = 16 };

/* Set once, before anything is allocated; read by all threads. */
static cleave_allocator_t allocator;
static bool has_allocator;
static atomic_bool is_used;

static _Thread_local int64_t fail_countdown = -1;
static _Thread_local int64_t passed_count;

int64_t cleave_memory_fail_after(int64_t countdown) {
  int64_t passed = passed_count;
  passed_count = 0;
  fail_countdown = countdown;
  return passed;
}

cleave_status_t cleave_set_allocator(const cleave_allocator_t *wanted, cleave_error_t *error) {
  cleave_allocator_t own = {.size = sizeof own};
  CLEAVE_TRY(CLEAVE_SIZED_IN(cleave_allocator_t, wanted, &own, error));
  if (own.allocate == NULL || own.reallocate == NULL || own.free == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "the allocator is not complete: expected allocate, reallocate and free");
  }
  if (atomic_load(&is_used)) {
    return cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                            "the allocator must be set before cleave allocates memory");
  }
  allocator = own;
  has_allocator = true;
  return CLEAVE_OK;
}

static void *take(size_t bytes, size_t alignment) {
  if (has_allocator) {
    return allocator.allocate(allocator.context, bytes, alignment);
  }
  return alignment > MIN_ALIGNMENT ? aligned_alloc(alignment, bytes) : malloc(bytes);
}

static bool may_allocate(void) {
  if (!atomic_load_explicit(&is_used, memory_order_relaxed)) {
    atomic_store_explicit(&is_used, true, memory_order_relaxed);
  }
  if (fail_countdown == 0) {
    return false;
  }
  if (fail_countdown > 0) {
    fail_countdown--;
  }
  passed_count++;
  return true;
}

void *cleave_allocate(size_t count, size_t size) {
  size_t bytes = 0;
  if (!cleave_size_multiply(count, size, &bytes) || bytes > PTRDIFF_MAX || !may_allocate()) {
    return NULL;
  }
  return take(bytes > 0 ? bytes : 1, MIN_ALIGNMENT);
}

void *cleave_allocate_zeroed(size_t count, size_t size) {
  size_t bytes = 0;
  if (!cleave_size_multiply(count, size, &bytes) || bytes > PTRDIFF_MAX || !may_allocate()) {
    return NULL;
  }
  bytes = bytes > 0 ? bytes : 1;
  if (!has_allocator) {
    return calloc(bytes, 1);
  }
  void *memory = take(bytes, MIN_ALIGNMENT);
  return memory == NULL ? NULL : memset(memory, 0, bytes);
}

void *cleave_reallocate(void *memory, size_t count, size_t size) {
  size_t bytes = 0;
  if (!cleave_size_multiply(count, size, &bytes) || bytes > PTRDIFF_MAX || !may_allocate()) {
    return NULL;
  }
  bytes = bytes > 0 ? bytes : 1;
  if (has_allocator) {
    return memory == NULL ? take(bytes, MIN_ALIGNMENT)
                          : allocator.reallocate(allocator.context, memory, bytes);
  }
  return realloc(memory, bytes);
}

void cleave_free(void *memory) {
  if (!has_allocator) {
    free(memory);
  } else if (memory != NULL) {
    allocator.free(allocator.context, memory);
  }
}

void *cleave_allocate_aligned(size_t bytes) {
  size_t alignment = bytes >= LARGE_PAGE ? LARGE_PAGE : CACHE_LINE;
  size_t rounded = 0;
  if (!cleave_size_add(bytes > 0 ? bytes : 1, alignment - 1, &rounded) || rounded > PTRDIFF_MAX ||
      !may_allocate()) {
    return NULL;
  }
  rounded &= ~(alignment - 1);
  void *memory = take(rounded, alignment);
#ifdef MADV_HUGEPAGE
  if (memory != NULL && alignment == LARGE_PAGE && !has_allocator) {
    // The last one, only if most of it is needed: all of it would be resident.
    size_t large = (bytes + LARGE_PAGE / 2) & ~(LARGE_PAGE - 1);
    (void)madvise(memory, large, MADV_HUGEPAGE);
  }
#endif
  return memory;
}

void cleave_memory_trim(void) {
#ifdef __GLIBC__
  bool is_worth_it = true; /* each stretch of pages that goes back stops all threads */
#if __GLIBC_PREREQ(2, 33)
  enum { FREE_BYTES = 4 << 20 };
  is_worth_it = mallinfo2().fordblks >= FREE_BYTES;
#endif
  if (!has_allocator && is_worth_it) {
    (void)malloc_trim(0);
  }
#endif
}

char *cleave_copy_text(const char *text, size_t length) {
  char *copy = length < SIZE_MAX ? cleave_allocate(length + 1, 1) : NULL;
  if (copy != NULL) {
    if (length > 0) {
      memcpy(copy, text, length);
    }
    copy[length] = '\0';
  }
  return copy;
}

enum { MAX_ENDS = 8 };

typedef void (*end_function_t)(void);

static _Atomic(end_function_t) ends[MAX_ENDS];

void cleave_memory_at_end(void (*end)(void)) {
  for (size_t k = 0; k < MAX_ENDS; k++) {
    end_function_t there = NULL;
    if (atomic_compare_exchange_strong(&ends[k], &there, end) || there == end) {
      return;
    }
  }
  assert(false); /* MAX_ENDS is too small */
}

void cleave_memory_end(void) {
  for (size_t k = 0; k < MAX_ENDS; k++) {
    end_function_t function = atomic_load(&ends[k]);
    if (function != NULL) {
      function();
    }
  }
}
