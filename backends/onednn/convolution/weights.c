// SPDX-License-Identifier: Apache-2.0
// What a convolution node says about its window and its weights, and weights with a scale per output channel.
#include <string.h>

#include "onednn/convolution/convolution.h"
#include "onednn/units/windows.h"

cleave_status_t onednn_convolution_weights(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                           bool transposed, onednn_weights_view_t *view) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t own = onednn_plan_shape(plan, kernel->weights);
  onednn_shape_t x = onednn_plan_shape(plan, kernel->source);
  view->groups = cleave_view_int(node, "group", 1);
  if (own.rank < 3 || own.rank > 5 || x.rank != own.rank || view->groups < 1 ||
      own.dims[0] % view->groups != 0 || x.dims[1] % view->groups != 0 ||
      (transposed ? own.dims[0] != x.dims[1] : own.dims[1] * view->groups != x.dims[1])) {
    return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "%s '%s': its weights do not fit its data",
                       node->op, onednn_node_name(node));
  }
  int64_t area = 1;
  for (int32_t d = 2; d < own.rank; d++) {
    view->kernel[d - 2] = own.dims[d];
    area *= own.dims[d];
  }
  // Per group: outputs and inputs, and how far apart the model keeps them.
  int64_t outputs = transposed ? own.dims[1] : own.dims[0] / view->groups;
  int64_t inputs = transposed ? own.dims[0] / view->groups : own.dims[1];
  int64_t dims[3] = {view->groups, outputs, inputs};
  int64_t strides[3] = {outputs * inputs * area, transposed ? area : inputs * area,
                        transposed ? outputs * area : area};
  int32_t first = view->groups > 1 ? 0 : 1;
  view->outputs = outputs * view->groups;
  view->shape.rank = 0;
  for (int32_t k = first; k < 3; k++) {
    view->strides[view->shape.rank] = strides[k];
    view->shape.dims[view->shape.rank++] = dims[k];
  }
  for (int32_t d = 2; d < own.rank; d++) {
    area /= own.dims[d];
    view->strides[view->shape.rank] = area;
    view->shape.dims[view->shape.rank++] = own.dims[d];
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_convolution_window(onednn_plan_t *plan, const onednn_kernel_t *kernel, bool transposed,
                                          const onednn_shape_t *x, const onednn_shape_t *y,
                                          onednn_window_t *window) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_shape_t weights = onednn_plan_shape(plan, kernel->weights);
  int64_t pads[2 * CLEAVE_MAX_RANK];
  const int64_t *extra = NULL;
  if (kernel->pad_node != CLEAVE_INDEX_NONE) {
    if (!onednn_pads_of(plan->region, &plan->region->nodes[kernel->pad_node], x->rank, pads)) {
      return kernel_fail(plan->message, CLEAVE_ERROR_INTERNAL, "the pads of '%s' are missing",
                         onednn_node_name(node));
    }
    extra = pads + 2;
  }
  return transposed ? onednn_window_transposed(node, weights.dims + 2, x, y, window, plan->message)
                    : onednn_window_forward(node, weights.dims + 2, extra, x, y, window, plan->message);
}

// Multiplies every output channel of weights by its scale: each row has one scale, and the outputs of a group
// repeat if the model keeps inputs outside.
typedef struct scaling {
  const onednn_plan_t *plan;
  const cleave_value_view_t *weights;
  const float *scale;  // per output, group by group
  int64_t outputs;     // of a group
  int64_t repeats;     // rows of one output
  int64_t length;      // of a row
  float *out;
} scaling_t;

static void scale_rows(void *opaque, int64_t begin, int64_t end) {
  const scaling_t *scaling = opaque;
  size_t bytes = (size_t)scaling->length * sizeof(float);
  for (int64_t r = begin; r < end; r++) {
    int64_t group = r / (scaling->outputs * scaling->repeats);
    float scale = scaling->scale[group * scaling->outputs + r % scaling->outputs];
    float *row = scaling->out + r * scaling->length;
    memcpy(row, (const char *)scaling->weights->tensor.data + (size_t)r * bytes, bytes);
    for (int64_t k = 0; k < scaling->length; k++) {
      row[k] *= scale;
    }
  }
}

static void fill_scaled(const void *opaque, float *data) {
  const int64_t least_work = 16384;
  scaling_t scaling = *(const scaling_t *)opaque;
  int64_t count = cleave_view_element_count(&scaling.weights->tensor);
  scaling.out = data;
  scaling.plan->host->parallel_for(scaling.plan->threads, count / scaling.length,
                                   least_work / scaling.length + 1, scale_rows, &scaling);
}

cleave_status_t onednn_convolution_scaled(onednn_plan_t *plan, const onednn_kernel_t *kernel, bool transposed,
                                          const onednn_weights_view_t *view, const float *scale,
                                          onednn_tensor_t *out) {
  const cleave_value_view_t *weights = &plan->region->values[kernel->weights];
  scaling_t *scaling = kernel_arena_allocate(plan->arena, 1, sizeof(*scaling));
  if (scaling == NULL) {
    return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while packing weights");
  }
  int64_t outputs = view->outputs / view->groups;
  int64_t rest = onednn_shape_count(&view->shape) / view->outputs;
  int64_t inputs = view->shape.dims[view->groups > 1 ? 2 : 1];
  *scaling = (scaling_t){.plan = plan,
                         .weights = weights,
                         .scale = scale,
                         .outputs = outputs,
                         .repeats = transposed ? inputs : 1,
                         .length = transposed ? rest / inputs : rest};
  onednn_layout_t layout = onednn_layout_strided(&view->shape, view->strides);
  onednn_content_t content = onednn_content_of(weights);
  content = onednn_content_mix(&content, scale, (size_t)view->outputs * sizeof(float));
  ONEDNN_TRY(onednn_plan_lazy(plan, &layout, &content, fill_scaled, scaling, out));
  plan->buffers[out->buffer].source = weights;
  return CLEAVE_OK;
}
