// SPDX-License-Identifier: Apache-2.0
// Which loops this processor runs.
#include "kernels/execute/loops.h"

extern const kernel_loops_t kernel_loops_plain;
extern const kernel_loops_t kernel_loops_avx2;
extern const kernel_loops_t kernel_loops_avx512;

const kernel_loops_t *kernel_loops_choose(int limit) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (limit >= 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("fma")) {
    return &kernel_loops_avx512;
  }
  if (limit >= 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return &kernel_loops_avx2;
  }
#else
  (void)limit;
#endif
  return &kernel_loops_plain;
}
