// SPDX-License-Identifier: Apache-2.0
/* Which instructions the loops of this folder may use on this processor. */
#ifndef CLEAVE_KERNELS_INSTRUCTIONS_H
#define CLEAVE_KERNELS_INSTRUCTIONS_H

enum { KERNEL_PLAIN, KERNEL_AVX2, KERNEL_AVX512 };

/* The best that the processor has, at most `limit`. AVX2 comes with FMA; AVX-512 is F, BW, DQ and VL. */
static inline int kernel_instructions(int limit) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  if (limit >= KERNEL_AVX512 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("fma")) {
    return KERNEL_AVX512;
  }
  if (limit >= KERNEL_AVX2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return KERNEL_AVX2;
  }
#else
  (void)limit;
#endif
  return KERNEL_PLAIN;
}

#endif /* CLEAVE_KERNELS_INSTRUCTIONS_H */
