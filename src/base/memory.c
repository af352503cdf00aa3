/* SPDX-License-Identifier: Apache-2.0 */
/* The one gate to malloc: sizes are checked, and tests can make any allocation fail. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CACHE_LINE ((size_t)64)
#define LARGE_PAGE ((size_t)2 << 20)

static _Thread_local int64_t fail_countdown = -1;
static _Thread_local int64_t passed_count;

int64_t cleave_memory_fail_after(int64_t countdown) {
  int64_t passed = passed_count;
  passed_count = 0;
  fail_countdown = countdown;
  return passed;
}

static bool may_allocate(void) {
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
  return malloc(bytes > 0 ? bytes : 1);
}

void *cleave_allocate_zeroed(size_t count, size_t size) {
  size_t bytes = 0;
  if (!cleave_size_multiply(count, size, &bytes) || bytes > PTRDIFF_MAX || !may_allocate()) {
    return NULL;
  }
  return calloc(bytes > 0 ? bytes : 1, 1);
}

void *cleave_reallocate(void *memory, size_t count, size_t size) {
  size_t bytes = 0;
  if (!cleave_size_multiply(count, size, &bytes) || bytes > PTRDIFF_MAX || !may_allocate()) {
    return NULL;
  }
  return realloc(memory, bytes > 0 ? bytes : 1);
}

void cleave_free(void *memory) {
  free(memory);
}

void *cleave_allocate_aligned(size_t bytes) {
  size_t alignment = bytes >= LARGE_PAGE ? LARGE_PAGE : CACHE_LINE;
  size_t rounded = 0;
  if (!cleave_size_add(bytes > 0 ? bytes : 1, alignment - 1, &rounded) || rounded > PTRDIFF_MAX ||
      !may_allocate()) {
    return NULL;
  }
  rounded &= ~(alignment - 1);
  void *memory = aligned_alloc(alignment, rounded);
#ifdef MADV_HUGEPAGE
  if (memory != NULL && alignment == LARGE_PAGE) {
    (void)madvise(memory, rounded, MADV_HUGEPAGE);
  }
#endif
  return memory;
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
