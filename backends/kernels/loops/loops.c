// SPDX-License-Identifier: Apache-2.0
// Which loops this processor runs.
#include "kernels/loops/loops.h"
#include "kernels/instructions.h"

extern const kernel_loops_t kernel_loops_plain;
extern const kernel_loops_t kernel_loops_avx2;
extern const kernel_loops_t kernel_loops_avx512;

const kernel_loops_t *kernel_loops_choose(int limit) {
  switch (kernel_instructions(limit)) {
    case KERNEL_AVX512: return &kernel_loops_avx512;
    case KERNEL_AVX2: return &kernel_loops_avx2;
    default: return &kernel_loops_plain;
  }
}
