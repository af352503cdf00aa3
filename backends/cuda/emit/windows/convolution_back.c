// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions: of the data, which is a ConvTranspose, and of the weights. By cuDNN; where it is
// missing or does not have one, a thread gathers what reaches an element of the data, and a block sums up an
// element of the weights.
#include <string.h>

#include "geometry.h"

enum { BLOCK = 256 };

/* `text` over x, w and y in an order of its own. */
static cleave_status_t by_kernel(cuda_plan_t *plan, const cuda_geometry_t *self, cuda_kernel_call_t *call) {
  char defines[448];
  cuda_window_defines(&self->window, self->dtype, defines, sizeof defines);
  call->label = self->label;
  call->defines = defines;
  call->pointer_count = 3;
  call->block = BLOCK;
  call->is_wide = call->threads > INT32_MAX - 1024 ||
                  self->images * self->channels * self->pixels > INT32_MAX - 1024 ||
                  self->images * self->outputs * self->places > INT32_MAX - 1024;
  cuda_window_numbers(&self->window, call);
  return cuda_plan_kernel(plan, call);
}

/* ---- data ---- */

static int64_t listed(const cleave_node_view_t *node, const char *name, int32_t index, int64_t otherwise) {
  uint32_t count = 0;
  const int64_t *ints = cleave_view_ints(node, name, &count);
  return (uint32_t)index < count ? ints[index] : otherwise;
}

/* Finds how much is cut off at the begin of the result: given sizes of the result determine it, and auto_pad
 * says which end has the odd element. */
static void find_border(const cleave_node_view_t *node, cuda_window_t *window) {
  const char *mode = cleave_view_string(node, "auto_pad", "NOTSET");
  bool is_given = strncmp(mode, "SAME", 4) == 0 || listed(node, "output_shape", 0, -1) >= 0;
  for (int32_t d = 0; d < window->axes; d++) {
    int64_t reach = (window->size[d] - 1) * window->dilation[d] + 1;
    int64_t whole = window->stride[d] * (window->out[d] - 1) + listed(node, "output_padding", d, 0) + reach;
    int64_t total = whole > window->in[d] ? whole - window->in[d] : 0;
    if (is_given) {
      window->before[d] = strcmp(mode, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
    } else {
      window->before[d] = strcmp(mode, "VALID") == 0 ? 0 : listed(node, "pads", d, 0);
    }
  }
}

static cleave_status_t emit_data(cuda_plan_t *plan, const cleave_node_view_t *node, uint32_t w, uint32_t to) {
  const cuda_geometry_tensors_t tensors = {cuda_output(plan, node, 0), cuda_input(plan, node, 1),
                                           cuda_input(plan, node, 0)};
  cuda_geometry_t self = {.direction = CUDA_DIRECTION_DATA, .x = to, .w = w, .y = node->inputs[0]};
  CUDA_TRY(cuda_geometry_read(plan, node, &tensors, &self));
  find_border(node, &self.window);
  if (cuda_geometry_is_for_library(plan, &self)) {
    return cuda_emit_library(plan, &self);
  }
  int64_t count = self.images * self.channels * self.pixels;
  cuda_kernel_call_t call = {
      .text = "convolution_data",
      .pointers = {{self.y, 0}, {self.w, 0}, {self.x, 0}},
      .number_count = 5,
      .numbers = {count, self.channels, self.outputs, self.per_group, self.group_outputs},
      .threads = count};
  return by_kernel(plan, &self, &call);
}

cleave_status_t cuda_emit_transposed_conv(cuda_plan_t *plan, const cleave_node_view_t *node) {
  return cuda_emit_biased(plan, node, emit_data);
}

/* ---- weights ---- */

cleave_status_t cuda_emit_conv_weights(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cuda_geometry_tensors_t tensors = {cuda_input(plan, node, 0), cuda_output(plan, node, 0),
                                           cuda_input(plan, node, 1)};
  cuda_geometry_t self = {
      .direction = CUDA_DIRECTION_WEIGHTS, .x = node->inputs[0], .w = node->outputs[0], .y = node->inputs[1]};
  CUDA_TRY(cuda_geometry_read(plan, node, &tensors, &self));
  if (cuda_geometry_is_for_library(plan, &self)) {
    return cuda_emit_library(plan, &self);
  }
  int64_t count = self.outputs * self.per_group * self.taps;
  cuda_kernel_call_t call = {
      .text = "convolution_weights",
      .pointers = {{self.x, 0}, {self.y, 0}, {self.w, 0}},
      .number_count = 5,
      .numbers = {self.images, self.channels, self.outputs, self.per_group, self.group_outputs},
      .threads = count * BLOCK};
  return by_kernel(plan, &self, &call);
}
