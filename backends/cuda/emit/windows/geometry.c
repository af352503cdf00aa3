// SPDX-License-Identifier: Apache-2.0
// Convolutions in any direction, and their steps of cuDNN.
#include "geometry.h"

#include "kernels/convert.h"

cleave_status_t cuda_geometry_read(cuda_plan_t *plan, const cleave_node_view_t *node,
                                   const cuda_geometry_tensors_t *tensors, cuda_geometry_t *out_geometry) {
  const cleave_tensor_view_t *x = tensors->x;
  const cleave_tensor_view_t *w = tensors->w;
  const cleave_tensor_view_t *y = tensors->y;
  cuda_geometry_t *out = out_geometry;
  if (!cpu_dtype_is_float(x->dtype) || w->dtype != x->dtype || w->rank != x->rank || y->dtype != x->dtype) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "expected floating-point operands of one dtype");
  }
  CUDA_TRY(cuda_window_between(plan, node, x, y, w->dims + 2, &out->window));
  out->label = node->op;
  out->dtype = x->dtype;
  out->images = x->dims[0];
  out->channels = x->dims[1];
  out->outputs = w->dims[0];
  out->groups = cleave_view_int(node, "group", 1);
  out->per_group = w->dims[1];
  if (out->groups < 1 || out->per_group * out->groups != out->channels || out->outputs % out->groups != 0) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its groups are not of one size");
  }
  if (y->dims[0] != out->images || y->dims[1] != out->outputs) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its shapes do not fit");
  }
  out->group_outputs = out->outputs / out->groups;
  out->taps = cuda_product_of(out->window.size, out->window.axes);
  out->places = cuda_product_of(out->window.out, out->window.axes);
  out->pixels = cuda_product_of(out->window.in, out->window.axes);
  return CLEAVE_OK;
}

bool cuda_geometry_is_for_library(const cuda_plan_t *plan, const cuda_geometry_t *self) {
  return plan->options.has_dnn && self->images * self->channels * self->pixels < INT32_MAX &&
         self->images * self->outputs * self->places < INT32_MAX && self->images > 0 && self->pixels > 0 &&
         self->places > 0 && self->per_group > 0 && self->outputs > 0 && self->taps > 0 &&
         cuda_window_is_even(&self->window);
}

/* The step's images, weights and residual with channels last. */
static cleave_status_t find_last(cuda_plan_t *plan, const cuda_geometry_t *self, cuda_pointer_t *pointers) {
  const int64_t *in = self->window.in;
  const int64_t *out = self->window.out;
  const int64_t x[4] = {self->images, self->channels, in[0], in[1]};
  const int64_t w[4] = {self->outputs, self->per_group, self->window.size[0], self->window.size[1]};
  const int64_t y[4] = {self->images, self->outputs, out[0], out[1]};
  uint32_t *residual = self->epilogue != NULL ? &pointers[CUDA_RESIDUAL_POINTER].slot : NULL;
  CUDA_TRY(cuda_layout_read_last(plan, self->x, self->dtype, x, &pointers[0].slot));
  CUDA_TRY(cuda_layout_read_last(plan, self->w, self->dtype, w, &pointers[1].slot));
  if (residual != NULL && *residual != CUDA_NO_SLOT) {
    CUDA_TRY(cuda_layout_read_last(plan, *residual, self->dtype, y, residual));
  }
  return cuda_layout_write_last(plan, self->y, self->dtype, y, &pointers[2].slot);
}

/* Callers of backward convolutions have seen to it. */
static cleave_status_t need_plain(cuda_plan_t *plan, const cuda_geometry_t *self) {
  if (self->direction != CUDA_DIRECTION_FORWARD) {
    return CLEAVE_OK;
  }
  CUDA_TRY(cuda_layout_need(plan, self->x));
  CUDA_TRY(cuda_layout_need(plan, self->w));
  return self->epilogue != NULL && self->epilogue->residual != CUDA_NO_SLOT
             ? cuda_layout_need(plan, self->epilogue->residual)
             : CLEAVE_OK;
}

/* One spatial axis counts as two, the first of size 1. */
cleave_status_t cuda_emit_library(cuda_plan_t *plan, const cuda_geometry_t *self) {
  cuda_step_t *step = NULL;
  const cuda_epilogue_t *epilogue = self->epilogue;
  cuda_pointer_t pointers[6] = {{self->x, 0}, {self->w, 0}, {self->y, 0}};
  if (epilogue != NULL) {
    pointers[CUDA_BIAS_POINTER] = (cuda_pointer_t){epilogue->bias, 0};
    pointers[CUDA_RESIDUAL_POINTER] = (cuda_pointer_t){epilogue->residual, 0};
  }
  bool is_last = self->direction == CUDA_DIRECTION_FORWARD && self->window.axes == 2 &&
                 cuda_layout_wants_last(plan, self->dtype);
  CUDA_TRY(is_last ? find_last(plan, self, pointers) : need_plain(plan, self));
  CUDA_TRY(cuda_plan_scratch(plan, 0, &pointers[CUDA_WORKSPACE_POINTER].slot));
  CUDA_TRY(
      cuda_plan_step(plan, CUDA_STEP_CONVOLUTION, self->label, pointers, epilogue != NULL ? 6 : 4, &step));
  cuda_convolution_t *own = cuda_plan_allocate(plan, 1, sizeof *own);
  if (own == NULL) {
    return cuda_plan_no_memory(plan);
  }
  int32_t more = self->window.axes == 1 ? 1 : 0;
  own->direction = self->direction;
  own->dtype = self->dtype;
  own->spatial = self->window.axes + more;
  own->groups = (int32_t)self->groups;
  own->uses_tf32 = plan->options.tf32;
  own->is_last = is_last;
  own->whole = epilogue == NULL            ? CUDA_WHOLE_NOT
               : epilogue->activation != 0 ? CUDA_WHOLE_RELU
                                           : CUDA_WHOLE_PLAIN;
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
