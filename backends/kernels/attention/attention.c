// SPDX-License-Identifier: Apache-2.0
// Which loops this processor runs, and what a block of them needs.
#include "kernels/attention/attention.h"
#include "kernels/instructions.h"

extern const kernel_attention_loops_t kernel_attention_plain;
extern const kernel_attention_loops_t kernel_attention_avx2;
extern const kernel_attention_loops_t kernel_attention_avx512;

const kernel_attention_loops_t *kernel_attention_choose(int limit) {
  switch (kernel_instructions(limit)) {
    case KERNEL_AVX512: return &kernel_attention_avx512;
    case KERNEL_AVX2: return &kernel_attention_avx2;
    default: return &kernel_attention_plain;
  }
}

int64_t kernel_attention_items(const kernel_attention_t *attention) {
  int64_t blocks = (attention->queries - 1) / KERNEL_ATTENTION_ROWS + 1;
  return attention->batch * attention->heads * blocks;
}

size_t kernel_attention_scratch(const kernel_attention_t *attention) {
  const uint64_t fixed = KERNEL_ATTENTION_KEYS + 3;
  const uint64_t most = SIZE_MAX / 1024 / KERNEL_ATTENTION_ROWS / sizeof(float);
  uint64_t size = (uint64_t)attention->size;
  uint64_t value_size = (uint64_t)attention->value_size;
  return size < most && value_size < most ? (size_t)(size + value_size + fixed) * KERNEL_ATTENTION_ROWS : 0;
}
