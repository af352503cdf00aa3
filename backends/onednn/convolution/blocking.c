// SPDX-License-Identifier: Apache-2.0
// The layout of images, decided once per region: channels in blocks of 16, or oneDNN's choice, which is
// mostly channels last. Winograd's algorithm, which needs 2.25 to 4 times fewer multiplications for 3x3
// windows than the direct one, exists for blocks only; so blocks it is if enough of the arithmetic gains.
// Without it blocks are a little faster, as long as few channels are there only to fill one.
#include "onednn/convolution/convolution.h"

// Multiplications per pixel column below which transforming costs more than it saves.
enum { MIN_CHANNELS = 16, MIN_PIXELS = 49, BLOCK = 16 };

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

bool onednn_window_of_three(const onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  // It adds and subtracts neighbours: minus infinity would spread as NaN.
  if (kernel->kind != ONEDNN_CONVOLUTION || plan->care == ONEDNN_CARE_EXACT) {
    return false;
  }
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t w = onednn_plan_shape(plan, kernel->weights);
  onednn_shape_t y = onednn_plan_shape(plan, node->outputs[0]);
  return w.rank == 4 && y.rank == 4 && w.dims[2] == 3 && w.dims[3] == 3 &&
         cleave_view_int(node, "group", 1) == 1 && is_all(node, "strides", 1) &&
         is_all(node, "dilations", 1) && onednn_is_constant(&plan->region->values[kernel->weights]);
}

bool onednn_winograd_suits(const onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  if (!ONEDNN_LIBRARY_WINOGRAD || !onednn_window_of_three(plan, kernel)) {
    return false;
  }
  onednn_shape_t w = onednn_plan_shape(plan, kernel->weights);
  onednn_shape_t y = onednn_plan_shape(plan, plan->region->nodes[kernel->node].outputs[0]);
  int64_t outputs = w.dims[0];
  int64_t inputs = w.dims[1];
  // An odd number of blocks makes its kernels fall back to narrow ones when there are many.
  bool even = outputs % (2 * BLOCK) == 0 || outputs <= 4 * BLOCK;
  return outputs % BLOCK == 0 && inputs % BLOCK == 0 && even && outputs >= MIN_CHANNELS &&
         inputs >= MIN_CHANNELS && y.dims[2] * y.dims[3] >= MIN_PIXELS;
}

// Multiplications of a convolution, and how many there are when channels fill whole blocks.
typedef struct work {
  double needed;
  double blocked;
} work_t;

static double whole_blocks(int64_t channels) {
  return (double)((channels + BLOCK - 1) / BLOCK * BLOCK);
}

static work_t work_of(const onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t w = onednn_plan_shape(plan, kernel->weights);
  onednn_shape_t y = onednn_plan_shape(plan, node->outputs[0]);
  onednn_shape_t x = onednn_plan_shape(plan, kernel->source);
  work_t work = {.needed = 1, .blocked = 1};
  for (int32_t d = 1; d < w.rank; d++) {
    work.needed *= (double)w.dims[d];
  }
  for (int32_t d = 0; d < y.rank; d++) {
    work.needed *= (double)y.dims[d];
  }
  work.blocked = work.needed * whole_blocks(y.dims[1]) / (double)y.dims[1];
  // The few channels of a first convolution are read as they are.
  if (cleave_view_int(node, "group", 1) == 1 && x.dims[1] >= BLOCK) {
    work.blocked *= whole_blocks(x.dims[1]) / (double)x.dims[1];
  }
  return work;
}

static bool touches_transpose(const onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_region_view_t *region = plan->region;
  uint32_t producer = region->values[kernel->source].producer;
  if (producer != CLEAVE_INDEX_NONE && onednn_node_is(&region->nodes[producer], "Transpose")) {
    return true;
  }
  for (uint32_t k = plan->analysis->use_starts[kernel->output];
       k < plan->analysis->use_starts[kernel->output + 1]; k++) {
    if (onednn_node_is(&region->nodes[plan->analysis->uses[k]], "Transpose")) {
      return true;
    }
  }
  return false;
}

// Groups of 8 channels are computed in blocks of 8, so that images in blocks of 16 are copied before each of
// them and after. With channels last nothing is: RegNetY-400MF takes 0.81 of the time. If there are
// smaller groups, as in ResNeXt-50, the copies are worth it.
static bool has_groups_of_8_alone(const onednn_plan_t *plan) {
  uint32_t eights = 0;
  uint32_t others = 0;
  for (uint32_t k = 0; k < plan->analysis->kernel_count; k++) {
    const onednn_kernel_t *kernel = &plan->analysis->kernels[k];
    if (kernel->kind == ONEDNN_CONVOLUTION) {
      int64_t groups = cleave_view_int(&plan->region->nodes[kernel->node], "group", 1);
      int64_t channels = onednn_plan_shape(plan, kernel->source).dims[1];
      eights += groups > 1 && channels == 8 * groups ? 1 : 0;
      others += groups > 1 && channels < 8 * groups && channels > groups ? 1 : 0;
    }
  }
  return eights > 0 && others == 0;
}

bool onednn_blocks_pay(const onednn_plan_t *plan) {
  work_t whole = {.needed = 0, .blocked = 0};
  double gaining = 0;
  bool transposed = false;
  for (uint32_t k = 0; k < plan->analysis->kernel_count; k++) {
    const onednn_kernel_t *kernel = &plan->analysis->kernels[k];
    if (kernel->kind != ONEDNN_CONVOLUTION && kernel->kind != ONEDNN_DECONVOLUTION) {
      continue;
    }
    work_t work = work_of(plan, kernel);
    whole.needed += work.needed;
    whole.blocked += work.blocked;
    gaining += onednn_winograd_suits(plan, kernel) ? work.needed : 0;
    transposed = transposed || touches_transpose(plan, kernel);
  }
  return gaining > 0.15 * whole.needed ||
         (!transposed && !has_groups_of_8_alone(plan) && whole.blocked < 1.12 * whole.needed);
}

bool onednn_keeps_channels_last(const onednn_plan_t *plan) {
  for (uint32_t k = 0; k < plan->analysis->kernel_count; k++) {
    if (plan->analysis->kernels[k].kind == ONEDNN_SHUFFLE) {
      return true;
    }
  }
  return has_groups_of_8_alone(plan);
}
