// SPDX-License-Identifier: Apache-2.0
// Gradients of poolings, and of Relu. That of averages is cuDNN's if it has such windows, or a kernel. That
// of the largest is a kernel: which of equal elements gets all would be cuDNN's choice, and here the first
// does.
#include <stdio.h>
#include <string.h>

#include "kernels/convert.h"
#include "windows.h"

enum { BLOCK = 256 };

typedef struct pooling {
  const cleave_node_view_t *node;
  cuda_window_t window;
  cleave_dtype_t dtype;
  bool is_max;
  bool counts_border;
} pooling_t;

/* cuDNN has borders of one size at both ends, counts the whole window or none of the border, and is not said
 * to have bfloat16 here. */
static bool is_for_library(const cuda_plan_t *plan, const pooling_t *self) {
  const cuda_window_t *window = &self->window;
  int64_t count = cleave_view_element_count(cuda_output(plan, self->node, 0));
  bool is_it = plan->options.has_dnn && !self->is_max && self->dtype != CLEAVE_DTYPE_BF16 && count > 0 &&
               count < INT32_MAX && cleave_view_element_count(cuda_input(plan, self->node, 0)) < INT32_MAX &&
               cuda_window_is_even(window);
  for (int32_t d = 0; is_it && d < window->axes; d++) {
    int64_t end = (window->out[d] - 1) * window->stride[d] - window->before[d] + window->size[d];
    is_it = window->out[d] > 0 && window->dilation[d] == 1 && window->before[d] < window->size[d] &&
            window->size[d] < INT32_MAX && window->stride[d] < INT32_MAX &&
            (!self->counts_border || end <= window->in[d] + window->after[d]);
  }
  return is_it;
}

/* One spatial axis counts as two, the first of size 1. */
static cleave_status_t emit_library(cuda_plan_t *plan, const pooling_t *self) {
  const cleave_tensor_view_t *dx = cuda_output(plan, self->node, 0);
  const cuda_pointer_t pointers[2] = {{self->node->inputs[0], 0}, {self->node->outputs[0], 0}};
  const cuda_window_t *window = &self->window;
  int32_t more = window->axes == 1 ? 1 : 0;
  cuda_step_t *step = NULL;
  CUDA_TRY(cuda_plan_step(plan, CUDA_STEP_POOL_BACK, self->node->op, pointers, 2, &step));
  cuda_pooling_t *own = cuda_plan_allocate(plan, 1, sizeof *own);
  if (own == NULL) {
    return cuda_plan_no_memory(plan);
  }
  own->dtype = self->dtype;
  own->spatial = window->axes + more;
  own->counts_border = self->counts_border;
  own->x[0] = own->y[0] = (int32_t)dx->dims[0];
  own->x[1] = own->y[1] = (int32_t)dx->dims[1];
  own->x[2] = own->y[2] = own->sizes[0] = own->strides[0] = 1;
  for (int32_t d = 0; d < window->axes; d++) {
    own->x[2 + more + d] = (int32_t)window->in[d];
    own->y[2 + more + d] = (int32_t)window->out[d];
    own->sizes[more + d] = (int32_t)window->size[d];
    own->pads[more + d] = (int32_t)window->before[d];
    own->strides[more + d] = (int32_t)window->stride[d];
  }
  step->pooling = own;
  return CLEAVE_OK;
}

static cleave_status_t emit_kernel(cuda_plan_t *plan, const pooling_t *self) {
  const cleave_node_view_t *node = self->node;
  char types[448];
  char defines[512];
  cuda_window_defines(&self->window, self->dtype, types, sizeof types);
  (void)snprintf(defines, sizeof defines, "%s#define MODE %d\n#define COUNTS_BORDER %d\n", types,
                 self->is_max ? 0 : 1, self->counts_border ? 1 : 0);
  cuda_kernel_call_t call = {
      .text = "pool_back",
      .label = node->op,
      .defines = defines,
      .pointer_count = 3,
      .pointers = {{node->inputs[0], 0}, {node->inputs[self->is_max ? 1 : 0], 0}, {node->outputs[0], 0}},
      .block = BLOCK};
  call.threads = cleave_view_element_count(cuda_output(plan, node, 0));
  call.is_wide = call.threads > INT32_MAX - 1024 ||
                 cleave_view_element_count(cuda_input(plan, node, 0)) > INT32_MAX - 1024;
  call.numbers[call.number_count++] = call.threads;
  cuda_window_numbers(&self->window, &call);
  cuda_window_axes(&self->window, self->window.after, &call);
  return cuda_plan_kernel(plan, &call);
}

cleave_status_t cuda_emit_pool_back(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *dy = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *dx = cuda_output(plan, node, 0);
  pooling_t self = {.node = node,
                    .dtype = dx->dtype,
                    .is_max = strcmp(node->op, "MaxPoolGrad") == 0,
                    .counts_border = cleave_view_int(node, "count_include_pad", 0) != 0};
  uint32_t count = 0;
  const int64_t *sizes = cleave_view_ints(node, "kernel_shape", &count);
  if (!cpu_dtype_is_float(dx->dtype) || dy->dtype != dx->dtype) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "expected floating-point operands of one dtype");
  }
  if (dx->rank < 3 || count != (uint32_t)(dx->rank - 2)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE,
                            "kernel_shape does not have an entry for each spatial axis");
  }
  CUDA_TRY(cuda_window_between(plan, node, dx, dy, sizes, &self.window));
  return is_for_library(plan, &self) ? emit_library(plan, &self) : emit_kernel(plan, &self);
}

/* ---- Relu ---- */

static cleave_status_t build_relu(cuda_builder_t *builder, const cleave_node_view_t *node) {
  const cuda_plan_t *plan = builder->plan;
  const cleave_tensor_view_t *dy = cuda_input(plan, node, 0);
  cleave_dtype_t dtype = kernel_compute_dtype(dy->dtype);
  int8_t axes[CLEAVE_MAX_RANK];
  uint32_t values[2];
  uint32_t zero = 0;
  uint32_t is_positive = 0;
  for (int32_t d = 0; d < dy->rank; d++) {
    axes[d] = (int8_t)d;
  }
  for (uint32_t k = 0; k < 2; k++) {
    CUDA_TRY(cuda_builder_load(builder, dy->dtype, (cuda_pointer_t){node->inputs[k], 0}, axes, dy->rank,
                               dy->dims, &values[k]));
    CUDA_TRY(kernel_program_cast(builder->program, dtype, values[k], &values[k], plan->message));
  }
  CUDA_TRY(cuda_builder_number(builder, dtype, 0.0, &zero));
  CUDA_TRY(cuda_builder_apply(builder, KERNEL_Greater, values[1], zero, &is_positive));
  const uint32_t operands[3] = {is_positive, values[0], zero};
  CUDA_TRY(kernel_program_apply(builder->program, KERNEL_WHERE, operands, 0, 0, &values[0], plan->message));
  return cuda_builder_store(builder, dy->dtype, values[0], (cuda_pointer_t){node->outputs[0], 0});
}

cleave_status_t cuda_emit_relu_back(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *dy = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_input(plan, node, 1);
  bool is_sound = cpu_dtype_is_float(dy->dtype) && y->dtype == dy->dtype && y->rank == dy->rank;
  for (int32_t d = 0; is_sound && d < dy->rank; d++) {
    is_sound = y->dims[d] == dy->dims[d];
  }
  if (!is_sound) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE,
                            "expected floating-point operands of one dtype and shape");
  }
  cuda_builder_t builder;
  cleave_status_t status = cuda_builder_init(&builder, plan, node->op, dy->rank, 0);
  status = status == CLEAVE_OK ? build_relu(&builder, node) : status;
  status = status == CLEAVE_OK ? cuda_plan_program(plan, builder.call) : status;
  cuda_builder_deinit(&builder);
  return status;
}
