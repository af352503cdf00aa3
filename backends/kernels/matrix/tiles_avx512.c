// SPDX-License-Identifier: Apache-2.0
// Tiles for AVX-512; what its instructions are is said in CMakeLists.txt.
#define KERNEL_LANES 16
#define PART kernel_matrix_part_avx512

#include "kernels/matrix/tiles.inc"
