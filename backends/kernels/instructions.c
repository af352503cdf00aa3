// SPDX-License-Identifier: Apache-2.0
#include "kernels/instructions.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>

int kernel_instructions_allowed(void) {
  static _Atomic int once = -1;
  int allowed = atomic_load_explicit(&once, memory_order_relaxed);
  if (allowed < 0) {
    const char *wanted = getenv("CLEAVE_INSTRUCTIONS");
    static const char *const names[] = {
        [KERNEL_PLAIN] = "plain", [KERNEL_AVX2] = "avx2", [KERNEL_AVX512] = "avx512"};
    allowed = KERNEL_AMX;
    for (int k = KERNEL_PLAIN; wanted != NULL && k < KERNEL_AMX; k++) {
      allowed = strcasecmp(wanted, names[k]) == 0 ? k : allowed;
    }
    atomic_store_explicit(&once, allowed, memory_order_relaxed);
  }
  return allowed;
}

int kernel_instructions(int limit) {
  int allowed = kernel_instructions_allowed();
  limit = limit < allowed ? limit : allowed;
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (limit >= KERNEL_AVX512 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
    return KERNEL_AVX512;
  }
  if (limit >= KERNEL_AVX2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c")) {
    return KERNEL_AVX2;
  }
#else
  (void)limit;
#endif
  return KERNEL_PLAIN;
}

bool kernel_gains_by_fetching(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  return !__builtin_cpu_is("amdfam19h");
#else
  return true;
#endif
}

bool kernel_is_intel(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}
