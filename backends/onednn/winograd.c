// SPDX-License-Identifier: Apache-2.0
// Which convolutions are worth Winograd's algorithm, which needs 2.25 to 4 times fewer multiplications for
// 3x3 windows than the direct one. oneDNN has it for channels in blocks of 16 only, so a region uses it where
// enough of its arithmetic gains, and then keeps all its images in that layout.
#include "emit.h"

// Multiplications per pixel column below which transforming costs more than it saves.
enum { LEAST_CHANNELS = 16, LEAST_PIXELS = 49, BLOCK = 16 };

static bool is_all(const cleave_node_view_t *node, const char *name, int64_t value) {
  uint32_t count = 0;
  const int64_t *list = cleave_view_ints(node, name, &count);
  for (uint32_t k = 0; k < count; k++) {
    if (list[k] != value) {
      return false;
    }
  }
  return true;
}

bool onednn_winograd_suits(const onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  if (kernel->kind != ONEDNN_CONVOLUTION) {
    return false;
  }
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t w = onednn_plan_shape(plan, kernel->weights);
  onednn_shape_t y = onednn_plan_shape(plan, node->outputs[0]);
  if (w.rank != 4 || y.rank != 4 || w.dims[2] != 3 || w.dims[3] != 3 ||
      cleave_view_int(node, "group", 1) != 1 || !is_all(node, "strides", 1) ||
      !is_all(node, "dilations", 1) || !onednn_is_constant(&plan->region->values[kernel->weights])) {
    return false;
  }
  int64_t outputs = w.dims[0];
  int64_t inputs = w.dims[1];
  // An odd number of blocks makes its kernels fall back to narrow ones when there are many.
  bool even = outputs % (2 * BLOCK) == 0 || outputs <= 4 * BLOCK;
  return outputs % BLOCK == 0 && inputs % BLOCK == 0 && even && outputs >= LEAST_CHANNELS &&
         inputs >= LEAST_CHANNELS && y.dims[2] * y.dims[3] >= LEAST_PIXELS;
}

bool onednn_winograd_pays(const onednn_plan_t *plan) {
  double whole = 0;
  double gaining = 0;
  for (uint32_t k = 0; k < plan->analysis->kernel_count; k++) {
    const onednn_kernel_t *kernel = &plan->analysis->kernels[k];
    if (kernel->kind != ONEDNN_CONVOLUTION && kernel->kind != ONEDNN_DECONVOLUTION) {
      continue;
    }
    onednn_shape_t w = onednn_plan_shape(plan, kernel->weights);
    onednn_shape_t y = onednn_plan_shape(plan, plan->region->nodes[kernel->node].outputs[0]);
    double work = 1;
    for (int32_t d = 1; d < w.rank; d++) {
      work *= (double)w.dims[d];
    }
    for (int32_t d = 0; d < y.rank; d++) {
      work *= (double)y.dims[d];
    }
    whole += work;
    gaining += onednn_winograd_suits(plan, kernel) ? work : 0;
  }
  return gaining > 0.15 * whole;
}
