// SPDX-License-Identifier: Apache-2.0
// Loops over tiles for AVX2; what its instructions are is said in CMakeLists.txt.
#define LOOPS kernel_loops_avx2
#define LOOPS_TEXT "AVX2"

#include "kernels/loops/loops.inc"
