// SPDX-License-Identifier: Apache-2.0
// Convolutions: by cuDNN; where it is missing or does not have one, windows become the columns of a product,
// or, with few channels per group, a kernel computes output by output.
#include <string.h>

#include "geometry.h"

enum { BLOCK = 256, FEW = 16 };
static const int64_t most_columns = INT64_C(1) << 28; /* bytes of columns at a time */

/* ---- our own ---- */

static cleave_status_t by_kernel(cuda_plan_t *plan, const cuda_geometry_t *self) {
  char defines[448];
  cuda_window_defines(&self->window, self->dtype, defines, sizeof defines);
  int64_t count = self->images * self->outputs * self->places;
  cuda_kernel_call_t call = {
      .text = "convolution",
      .label = self->label,
      .defines = defines,
      .pointer_count = 3,
      .pointers = {{self->x, 0}, {self->w, 0}, {self->y, 0}},
      .number_count = 5,
      .numbers = {count, self->channels, self->outputs, self->per_group, self->group_outputs},
      .threads = count,
      .block = BLOCK};
  call.is_wide = count > INT32_MAX - 1024 || self->images * self->channels * self->pixels > INT32_MAX - 1024;
  cuda_window_numbers(&self->window, &call);
  return cuda_plan_kernel(plan, &call);
}

static bool is_pointwise(const cuda_geometry_t *self) {
  bool is = self->taps == 1;
  for (int32_t d = 0; d < self->window.axes; d++) {
    is = is && self->window.stride[d] == 1 && self->window.before[d] == 0 && self->window.after[d] == 0;
  }
  return is;
}

/* Columns of `images` images of a group, into `columns`. */
static cleave_status_t emit_columns(cuda_plan_t *plan, const cuda_geometry_t *self, int64_t image,
                                    int64_t images, int64_t group, uint32_t columns) {
  char defines[448];
  int64_t size = (int64_t)cleave_dtype_size(self->dtype);
  cuda_window_defines(&self->window, self->dtype, defines, sizeof defines);
  int64_t from = (image * self->channels + group * self->per_group) * self->pixels * size;
  int64_t count = images * self->per_group * self->taps * self->places;
  cuda_kernel_call_t call = {.text = "im2col",
                             .label = self->label,
                             .defines = defines,
                             .pointer_count = 2,
                             .pointers = {{self->x, from}, {columns, 0}},
                             .number_count = 4,
                             .numbers = {count, self->channels, self->per_group, self->places},
                             .threads = count,
                             .block = BLOCK};
  call.is_wide = count > INT32_MAX - 1024 || images * self->channels * self->pixels > INT32_MAX - 1024;
  cuda_window_numbers(&self->window, &call);
  return cuda_plan_kernel(plan, &call);
}

static cleave_status_t emit_part(cuda_plan_t *plan, const cuda_geometry_t *self, int64_t image,
                                 int64_t images, int64_t group) {
  int64_t size = (int64_t)cleave_dtype_size(self->dtype);
  int64_t depth = self->per_group * self->taps;
  cuda_pointer_t b = {self->x, (image * self->channels + group * self->per_group) * self->pixels * size};
  int64_t b_batch = self->channels * self->pixels;
  if (!is_pointwise(self)) {
    b.offset = 0;
    b_batch = depth * self->places;
    CUDA_TRY(cuda_plan_scratch(plan, images * b_batch * size, &b.slot));
    CUDA_TRY(emit_columns(plan, self, image, images, group, b.slot));
  }
  const cuda_product_t product = {.dtype = self->dtype,
                                  .rows = self->group_outputs,
                                  .columns = self->places,
                                  .inner = depth,
                                  .strides = {depth, self->places, self->places},
                                  .batch_strides = {0, b_batch, self->outputs * self->places},
                                  .batches = images,
                                  .alpha = 1.0};
  const cuda_pointer_t a = {self->w, group * self->group_outputs * depth * size};
  const cuda_pointer_t d = {self->y,
                            (image * self->outputs + group * self->group_outputs) * self->places * size};
  return cuda_emit_product(plan, self->label, &product, a, b, d, (cuda_pointer_t){CUDA_NO_SLOT, 0});
}

static cleave_status_t by_product(cuda_plan_t *plan, const cuda_geometry_t *self) {
  int64_t each = self->per_group * self->taps * self->places * (int64_t)cleave_dtype_size(self->dtype);
  int64_t together = is_pointwise(self) || each == 0 ? self->images : most_columns / each;
  together = together < 1 ? 1 : together;
  for (int64_t image = 0; image < self->images; image += together) {
    int64_t images = self->images - image < together ? self->images - image : together;
    for (int64_t group = 0; group < self->groups; group++) {
      CUDA_TRY(emit_part(plan, self, image, images, group));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t read_forward(cuda_plan_t *plan, const cleave_node_view_t *node, cuda_geometry_t *out) {
  const cuda_geometry_tensors_t tensors = {cuda_input(plan, node, 0), cuda_input(plan, node, 1),
                                           cuda_output(plan, node, 0)};
  return cuda_geometry_read(plan, node, &tensors, out);
}

cleave_status_t cuda_emit_convolution(cuda_plan_t *plan, const cleave_node_view_t *node, uint32_t w,
                                      uint32_t to) {
  cuda_geometry_t self = {.x = node->inputs[0], .w = w, .y = to};
  CUDA_TRY(read_forward(plan, node, &self));
  if (cuda_geometry_is_for_library(plan, &self)) {
    return cuda_emit_library(plan, &self);
  }
  CUDA_TRY(cuda_layout_need(plan, self.x));
  bool has_few = self.groups > 1 && (self.per_group < FEW || self.group_outputs < FEW);
  return has_few ? by_kernel(plan, &self) : by_product(plan, &self);
}

/* ---- with what follows ---- */

/* cuDNN's depthwise convolutions take twenty times as long with anything behind them; bfloat16 is not said to
 * have it. */
bool cuda_convolution_is_whole(cuda_plan_t *plan, const cleave_node_view_t *node) {
  cuda_geometry_t self = {0};
  return plan->options.has_whole && read_forward(plan, node, &self) == CLEAVE_OK && self.groups == 1 &&
         self.dtype != CLEAVE_DTYPE_BF16 && cuda_geometry_is_for_library(plan, &self);
}

/* cuDNN wants a bias. */
static cleave_status_t make_zeros(cuda_plan_t *plan, int64_t count, cleave_dtype_t dtype,
                                  uint32_t *out_slot) {
  int64_t bytes = count * (int64_t)cleave_dtype_size(dtype);
  void *zeros = cuda_plan_allocate(plan, (size_t)bytes, 1);
  return zeros == NULL ? cuda_plan_no_memory(plan) : cuda_plan_constant(plan, zeros, bytes, out_slot);
}

cleave_status_t cuda_emit_whole_convolution(cuda_plan_t *plan, const cleave_node_view_t *node, uint32_t w,
                                            const cuda_epilogue_t *epilogue) {
  cuda_epilogue_t own = *epilogue;
  cuda_geometry_t self = {.x = node->inputs[0], .w = w, .y = own.result, .epilogue = &own};
  CUDA_TRY(read_forward(plan, node, &self));
  if (own.bias == CUDA_NO_SLOT) {
    CUDA_TRY(make_zeros(plan, self.outputs, self.dtype, &own.bias));
  }
  return cuda_emit_library(plan, &self);
}

static cleave_status_t build_bias(cuda_builder_t *builder, const cleave_node_view_t *node, uint32_t from) {
  int8_t all[CLEAVE_MAX_RANK];
  int8_t channel[CLEAVE_MAX_RANK];
  const cuda_plan_t *plan = builder->plan;
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  const cleave_tensor_view_t *bias = cuda_input(plan, node, 2);
  uint32_t value = 0;
  uint32_t other = 0;
  for (int32_t d = 0; d < y->rank; d++) {
    all[d] = (int8_t)d;
    channel[d] = d == 1 ? 0 : -1;
  }
  CUDA_TRY(cuda_builder_load(builder, y->dtype, (cuda_pointer_t){from, 0}, all, y->rank, y->dims, &value));
  CUDA_TRY(cuda_builder_load(builder, bias->dtype, (cuda_pointer_t){node->inputs[2], 0}, channel, 1,
                             bias->dims, &other));
  CUDA_TRY(cuda_builder_apply(builder, KERNEL_Add, value, other, &value));
  return cuda_builder_store(builder, y->dtype, value, (cuda_pointer_t){node->outputs[0], 0});
}

cleave_status_t cuda_emit_biased(cuda_plan_t *plan, const cleave_node_view_t *node, cuda_unbiased_t emit) {
  const cleave_tensor_view_t *bias = cuda_input(plan, node, 2);
  uint32_t to = node->outputs[0];
  if (bias == NULL) {
    return emit(plan, node, node->inputs[1], to);
  }
  CUDA_TRY(cuda_plan_scratch(plan, plan->slots[node->outputs[0]].bytes, &to));
  CUDA_TRY(emit(plan, node, node->inputs[1], to));
  cuda_builder_t builder;
  cleave_status_t status =
      cuda_builder_init(&builder, plan, "Conv: bias", cuda_output(plan, node, 0)->rank, 0);
  status = status == CLEAVE_OK ? build_bias(&builder, node, to) : status;
  status = status == CLEAVE_OK ? cuda_emit_program(plan, builder.call) : status;
  cuda_builder_deinit(&builder);
  return status;
}

cleave_status_t cuda_emit_conv(cuda_plan_t *plan, const cleave_node_view_t *node) {
  if (cuda_input(plan, node, 2) != NULL && cuda_convolution_is_whole(plan, node)) {
    const cuda_epilogue_t epilogue = {
        .bias = node->inputs[2], .residual = CUDA_NO_SLOT, .result = node->outputs[0]};
    return cuda_emit_whole_convolution(plan, node, node->inputs[1], &epilogue);
  }
  return cuda_emit_biased(plan, node, cuda_emit_convolution);
}
