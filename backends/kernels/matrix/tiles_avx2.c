// SPDX-License-Identifier: Apache-2.0
// Tiles for AVX2; what its instructions are is said in CMakeLists.txt.
#define KERNEL_LANES 8
#define PART kernel_matrix_part_avx2

#include "kernels/matrix/tiles.inc"
