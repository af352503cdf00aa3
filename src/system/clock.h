// SPDX-License-Identifier: Apache-2.0
/* The monotonic clock, in nanoseconds. */
#ifndef CLEAVE_SYSTEM_CLOCK_H
#define CLEAVE_SYSTEM_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t cleave_clock_now(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline double cleave_clock_ms(uint64_t start, uint64_t end) {
  return (double)(end - start) * 1e-6;
}

#endif /* CLEAVE_SYSTEM_CLOCK_H */
