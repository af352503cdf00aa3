// SPDX-License-Identifier: Apache-2.0
// Attention for AVX-512; what its instructions are is said in CMakeLists.txt.
#define LOOPS kernel_attention_avx512
#define LOOPS_TEXT "AVX-512"

#include "kernels/attention/attention.inc"
