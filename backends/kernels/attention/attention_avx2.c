// SPDX-License-Identifier: Apache-2.0
// Attention for AVX2; what its instructions are is said in CMakeLists.txt.
#define LOOPS kernel_attention_avx2
#define LOOPS_TEXT "AVX2"

#include "kernels/attention/attention.inc"
