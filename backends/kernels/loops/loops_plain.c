// SPDX-License-Identifier: Apache-2.0
// Loops over tiles for plain C; what its instructions are is said in CMakeLists.txt.
#define LOOPS kernel_loops_plain
#define LOOPS_TEXT "plain C"

#include "kernels/loops/loops.inc"
