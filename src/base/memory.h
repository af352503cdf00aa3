// SPDX-License-Identifier: Apache-2.0
/* Memory: all of the library's allocations pass here, with sizes that cannot overflow. */
#ifndef CLEAVE_BASE_MEMORY_H
#define CLEAVE_BASE_MEMORY_H

#include "base/status.h"

/* malloc, calloc, realloc and free of `count` elements of `size` bytes. NULL if the product overflows or
 * there is no memory. A count of 0 gives a pointer that may be freed. */
void *cleave_allocate(size_t count, size_t size) __attribute__((malloc, warn_unused_result));
void *cleave_allocate_zeroed(size_t count, size_t size) __attribute__((malloc, warn_unused_result));
void *cleave_reallocate(void *memory, size_t count, size_t size) __attribute__((warn_unused_result));
void cleave_free(void *memory);

/* 64-byte aligned memory, for tensor data; from 2 MiB on aligned to, and asking for, large pages. Freed with
 * cleave_free. */
void *cleave_allocate_aligned(size_t bytes) __attribute__((malloc, warn_unused_result));

/* Copy of a string of `length` bytes, ended by NUL. */
char *cleave_copy_text(const char *text, size_t length) __attribute__((warn_unused_result));

/* *out = a * b or a + b; false on overflow. */
static inline bool cleave_size_multiply(size_t a, size_t b, size_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool cleave_size_add(size_t a, size_t b, size_t *out) {
  return !__builtin_add_overflow(a, b, out);
}

/* Gives memory that is free back to the system, where malloc would keep it for later. For programs: what runs
 * beside cleave in a process has the same malloc. */
void cleave_memory_trim(void);

/* Memory that is kept from one use to the next for the whole process: `end` frees it when nobody in the
 * process uses cleave any more. Registering a function again changes nothing. Any thread. */
void cleave_memory_at_end(void (*end)(void));
/* Calls these functions. No other thread uses what they free. */
void cleave_memory_end(void);

/* For tests: allocation number `countdown` from now fails, and all after it (0: the next one); a negative
 * number lets all pass. Per thread. Returns how many allocations passed since the last call. */
int64_t cleave_memory_fail_after(int64_t countdown);

#endif /* CLEAVE_BASE_MEMORY_H */
