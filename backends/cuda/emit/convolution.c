// SPDX-License-Identifier: Apache-2.0
// Convolutions: by cuDNN; where it is missing or does not have one, windows become the columns of a product,
// or, with few channels per group, a kernel computes output by output.
#include <stdio.h>
#include <string.h>

#include "kernels/convert.h"
#include "windows.h"

enum { BLOCK = 256, FEW = 16 };
static const int64_t most_columns = INT64_C(1) << 28; /* bytes of columns at a time */

typedef struct convolution {
  const cleave_node_view_t *node;
  cuda_window_t window;
  int64_t images, channels, outputs, groups, per_group, group_outputs;
  int64_t taps, places, pixels;
  cleave_dtype_t dtype;
  uint32_t w;
  uint32_t to;
} convolution_t;

static cleave_status_t describe(cuda_plan_t *plan, const cleave_node_view_t *node, convolution_t *out) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *w = cuda_input(plan, node, 1);
  if (!cpu_dtype_is_float(x->dtype) || w->dtype != x->dtype || w->rank != x->rank) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "floats of one dtype alone are supported");
  }
  CUDA_TRY(cuda_window_read(plan, node, w->dims + 2, &out->window));
  out->node = node;
  out->dtype = x->dtype;
  out->images = x->dims[0];
  out->channels = x->dims[1];
  out->outputs = w->dims[0];
  out->groups = cleave_view_int(node, "group", 1);
  out->per_group = w->dims[1];
  if (out->groups < 1 || out->per_group * out->groups != out->channels || out->outputs % out->groups != 0) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its groups are not of one size");
  }
  out->group_outputs = out->outputs / out->groups;
  out->taps = cuda_product_of(out->window.size, out->window.axes);
  out->places = cuda_product_of(out->window.out, out->window.axes);
  out->pixels = cuda_product_of(out->window.in, out->window.axes);
  return CLEAVE_OK;
}

/* ---- cuDNN ---- */

static bool fits_library(const cuda_plan_t *plan, const convolution_t *self) {
  bool fits = plan->options.has_dnn && self->images * self->channels * self->pixels < INT32_MAX &&
              self->images * self->outputs * self->places < INT32_MAX && self->images > 0 &&
              self->places > 0 && self->per_group > 0 && self->taps > 0;
  for (int32_t d = 0; d < self->window.axes; d++) {
    int64_t reach = (self->window.size[d] - 1) * self->window.dilation[d] + 1;
    fits = fits && self->window.before[d] == self->window.after[d] && self->window.before[d] >= 0 &&
           self->window.out[d] ==
               (self->window.in[d] + 2 * self->window.before[d] - reach) / self->window.stride[d] + 1;
  }
  return fits;
}

/* One spatial axis counts as two, the first of size 1. */
static cleave_status_t by_library(cuda_plan_t *plan, const convolution_t *self) {
  cuda_step_t *step = NULL;
  cuda_pointer_t pointers[4] = {{self->node->inputs[0], 0}, {self->w, 0}, {self->to, 0}, {0, 0}};
  CUDA_TRY(cuda_plan_scratch(plan, 0, &pointers[CUDA_WORKSPACE_POINTER].slot));
  CUDA_TRY(cuda_plan_step(plan, CUDA_STEP_CONVOLUTION, self->node->op, pointers, 4, &step));
  cuda_convolution_t *own = cuda_plan_allocate(plan, 1, sizeof *own);
  if (own == NULL) {
    return cuda_plan_no_memory(plan);
  }
  int32_t more = self->window.axes == 1 ? 1 : 0;
  own->dtype = self->dtype;
  own->spatial = self->window.axes + more;
  own->groups = (int32_t)self->groups;
  own->uses_tf32 = plan->options.tf32;
  own->x[0] = own->y[0] = (int32_t)self->images;
  own->x[1] = (int32_t)self->channels;
  own->y[1] = own->w[0] = (int32_t)self->outputs;
  own->w[1] = (int32_t)self->per_group;
  own->x[2] = own->y[2] = own->w[2] = 1;
  own->strides[0] = own->dilations[0] = 1;
  for (int32_t d = 0; d < self->window.axes; d++) {
    own->x[2 + more + d] = (int32_t)self->window.in[d];
    own->y[2 + more + d] = (int32_t)self->window.out[d];
    own->w[2 + more + d] = (int32_t)self->window.size[d];
    own->pads[more + d] = (int32_t)self->window.before[d];
    own->strides[more + d] = (int32_t)self->window.stride[d];
    own->dilations[more + d] = (int32_t)self->window.dilation[d];
  }
  step->convolution = own;
  return CLEAVE_OK;
}

/* ---- our own ---- */

static cleave_status_t by_kernel(cuda_plan_t *plan, const convolution_t *self) {
  char types[256];
  char defines[320];
  (void)cuda_text_defines(self->dtype, types, sizeof types);
  (void)snprintf(defines, sizeof defines, "%s#define AXES %d\n", types, (int)self->window.axes);
  int64_t count = self->images * self->outputs * self->places;
  cuda_kernel_call_t call = {
      .text = "convolution",
      .label = self->node->op,
      .defines = defines,
      .pointer_count = 3,
      .pointers = {{self->node->inputs[0], 0}, {self->w, 0}, {self->to, 0}},
      .number_count = 5,
      .numbers = {count, self->channels, self->outputs, self->per_group, self->group_outputs},
      .threads = count,
      .block = BLOCK};
  call.is_wide = count > INT32_MAX - 1024 || self->images * self->channels * self->pixels > INT32_MAX - 1024;
  cuda_window_numbers(&self->window, &call);
  return cuda_plan_kernel(plan, &call);
}

static bool is_pointwise(const convolution_t *self) {
  bool is = self->taps == 1;
  for (int32_t d = 0; d < self->window.axes; d++) {
    is = is && self->window.stride[d] == 1 && self->window.before[d] == 0 && self->window.after[d] == 0;
  }
  return is;
}

/* Columns of `images` images of a group, into `columns`. */
static cleave_status_t emit_columns(cuda_plan_t *plan, const convolution_t *self, int64_t image,
                                    int64_t images, int64_t group, uint32_t columns) {
  char types[256];
  char defines[320];
  int64_t size = (int64_t)cleave_dtype_size(self->dtype);
  (void)cuda_text_defines(self->dtype, types, sizeof types);
  (void)snprintf(defines, sizeof defines, "%s#define AXES %d\n", types, (int)self->window.axes);
  int64_t from = (image * self->channels + group * self->per_group) * self->pixels * size;
  int64_t count = images * self->per_group * self->taps * self->places;
  cuda_kernel_call_t call = {.text = "im2col",
                             .label = self->node->op,
                             .defines = defines,
                             .pointer_count = 2,
                             .pointers = {{self->node->inputs[0], from}, {columns, 0}},
                             .number_count = 4,
                             .numbers = {count, self->channels, self->per_group, self->places},
                             .threads = count,
                             .block = BLOCK};
  call.is_wide = count > INT32_MAX - 1024 || images * self->channels * self->pixels > INT32_MAX - 1024;
  cuda_window_numbers(&self->window, &call);
  return cuda_plan_kernel(plan, &call);
}

static cleave_status_t emit_part(cuda_plan_t *plan, const convolution_t *self, int64_t image, int64_t images,
                                 int64_t group) {
  int64_t size = (int64_t)cleave_dtype_size(self->dtype);
  int64_t depth = self->per_group * self->taps;
  cuda_pointer_t b = {self->node->inputs[0],
                      (image * self->channels + group * self->per_group) * self->pixels * size};
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
  const cuda_pointer_t d = {self->to,
                            (image * self->outputs + group * self->group_outputs) * self->places * size};
  return cuda_emit_product(plan, self->node->op, &product, a, b, d, (cuda_pointer_t){CUDA_NO_SLOT, 0});
}

static cleave_status_t by_product(cuda_plan_t *plan, const convolution_t *self) {
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

cleave_status_t cuda_emit_convolution(cuda_plan_t *plan, const cleave_node_view_t *node, uint32_t w,
                                      uint32_t to) {
  convolution_t self = {.w = w, .to = to};
  CUDA_TRY(describe(plan, node, &self));
  if (fits_library(plan, &self)) {
    return by_library(plan, &self);
  }
  bool has_few = self.groups > 1 && (self.per_group < FEW || self.group_outputs < FEW);
  return has_few ? by_kernel(plan, &self) : by_product(plan, &self);
}

/* ---- with a bias ---- */

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

cleave_status_t cuda_emit_conv(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *bias = cuda_input(plan, node, 2);
  uint32_t to = node->outputs[0];
  if (bias == NULL) {
    return cuda_emit_convolution(plan, node, node->inputs[1], to);
  }
  CUDA_TRY(cuda_plan_scratch(plan, plan->slots[node->outputs[0]].bytes, &to));
  CUDA_TRY(cuda_emit_convolution(plan, node, node->inputs[1], to));
  cuda_builder_t builder;
  cleave_status_t status =
      cuda_builder_init(&builder, plan, "Conv: bias", cuda_output(plan, node, 0)->rank, 0);
  status = status == CLEAVE_OK ? build_bias(&builder, node, to) : status;
  status = status == CLEAVE_OK ? cuda_plan_program(plan, builder.call) : status;
  cuda_builder_deinit(&builder);
  return status;
}
