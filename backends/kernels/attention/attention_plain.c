// SPDX-License-Identifier: Apache-2.0
// Attention for plain C; what its instructions are is said in CMakeLists.txt.
#define LOOPS kernel_attention_plain
#define LOOPS_TEXT "plain C"

#include "kernels/attention/attention.inc"
