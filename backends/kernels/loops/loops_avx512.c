// SPDX-License-Identifier: Apache-2.0
// Loops over tiles for AVX-512; what its instructions are is said in CMakeLists.txt.
#define LOOPS kernel_loops_avx512
#define LOOPS_TEXT "AVX-512"

#include "kernels/loops/loops.inc"
