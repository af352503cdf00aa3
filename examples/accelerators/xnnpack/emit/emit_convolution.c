// SPDX-License-Identifier: Apache-2.0
/*
 * Conv and ConvTranspose over height and width. Weights are packed once: from ONNX's order to XNNPACK's, with
 * the factors per output channel that were folded in.
 */
#include <string.h>

#include "operators.h"
#include "window.h"

static const cleave_tensor_view_t *tensor_of(const unit_t *unit, uint32_t input) {
  const cleave_value_view_t *value = cleave_view_input(unit->region, unit->head, input);
  return value == NULL ? NULL : &value->tensor;
}

/* Input of rank 4, constant weights of rank 4, a constant bias or none, a group that divides. */
static cleave_status_t check_operands(const unit_t *unit, cleave_message_t *reason) {
  const cleave_tensor_view_t *input = tensor_of(unit, 0);
  const cleave_tensor_view_t *weights = tensor_of(unit, 1);
  const cleave_tensor_view_t *bias = tensor_of(unit, 2);
  const char *op = unit->head->op;
  int64_t group = cleave_view_int(unit->head, "group", 1);
  if (input->rank != 4) {
    return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE, "%s: XNNPACK convolves over height and width only",
                          op);
  }
  if (weights == NULL || weights->data == NULL || weights->dtype != CLEAVE_DTYPE_F32 || weights->rank != 4 ||
      (bias != NULL && (bias->data == NULL || bias->dtype != CLEAVE_DTYPE_F32 || bias->rank != 1))) {
    return xnnpack_refuse(reason, CLEAVE_REASON_CONSTANT, "%s: weights and bias must be float32 constants",
                          op);
  }
  bool is_transposed = unit->operator->emit == xnnpack_emit_deconvolution;
  int64_t channels = is_transposed ? weights->dims[0] : weights->dims[1] * group;
  int64_t out = is_transposed ? weights->dims[1] * group : weights->dims[0];
  if (group < 1 || group > INT32_MAX || weights->dims[0] < 1 || weights->dims[0] % group != 0 ||
      input->dims[1] != channels || (bias != NULL && bias->dims[0] != out)) {
    return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE, "%s: channels, groups and weights do not fit together",
                          op);
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_check_convolution(const unit_t *unit, cleave_message_t *reason) {
  cleave_status_t status = check_operands(unit, reason);
  window_t window;
  return status != CLEAVE_OK ? status
                             : xnnpack_window_read(unit, &tensor_of(unit, 1)->dims[2], &window, reason);
}

/* weights[o][i][s], s over the kernel, at (o * group_inputs + i) * size + s, times scale[o], to [o][s][i], or
 * for depthwise ones, which have one input channel a group, to [s][o]. */
static void pack_filter(const cleave_tensor_view_t *weights, const float *scale, bool is_depthwise,
                        float *to) {
  int64_t outputs = weights->dims[0];
  int64_t inputs = weights->dims[1];
  int64_t size = weights->dims[2] * weights->dims[3];
  for (int64_t o = 0; o < outputs; o++) {
    for (int64_t i = 0; i < inputs; i++) {
      for (int64_t s = 0; s < size; s++) {
        int64_t place = is_depthwise ? s * outputs + o : (o * size + s) * inputs + i;
        to[place] = scale[o] * xnnpack_constant_at(weights, (o * inputs + i) * size + s);
      }
    }
  }
}

/* weights[i][o][s] of group g, which is i / group_inputs, to [g * group_outputs + o][s][i % group_inputs]. */
static void pack_transposed_filter(const cleave_tensor_view_t *weights, const float *scale, int64_t group,
                                   float *to) {
  int64_t inputs = weights->dims[0] / group;
  int64_t outputs = weights->dims[1];
  int64_t size = weights->dims[2] * weights->dims[3];
  for (int64_t k = 0; k < weights->dims[0]; k++) {
    int64_t g = k / inputs;
    for (int64_t o = 0; o < outputs; o++) {
      int64_t channel = g * outputs + o;
      for (int64_t s = 0; s < size; s++) {
        to[(channel * size + s) * inputs + k % inputs] =
            scale[channel] * xnnpack_constant_at(weights, (k * outputs + o) * size + s);
      }
    }
  }
}

/* Bias of the head and what is folded: factors per channel, and the terms as a tensor. */
static cleave_status_t fold(const unit_t *unit, builder_t *builder, int64_t channels, float **scale,
                            uint32_t *bias_id) {
  const cleave_tensor_view_t *bias = tensor_of(unit, 2);
  float *shift = NULL;
  cleave_status_t status = xnnpack_builder_allocate(builder, channels, scale);
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_allocate(builder, channels, &shift);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  for (int64_t c = 0; c < channels; c++) {
    (*scale)[c] = 1.0f;
    shift[c] = bias == NULL ? 0.0f : xnnpack_constant_at(bias, c);
  }
  xnnpack_unit_fold(unit, channels, *scale, shift);
  return xnnpack_builder_static(builder, 1, (size_t[1]){(size_t)channels}, shift, bias_id);
}

/* The ids of input, bias and output; factors per channel; room for a filter, unless it stays as it is. */
typedef struct operands {
  float *scale, *packed;
  uint32_t input, bias, output;
} operands_t;

static cleave_status_t prepare(const unit_t *unit, builder_t *builder, int64_t channels, bool is_packed,
                               operands_t *operands) {
  cleave_status_t status = fold(unit, builder, channels, &operands->scale, &operands->bias);
  operands->packed = NULL;
  if (status == CLEAVE_OK && is_packed) {
    status =
        xnnpack_builder_allocate(builder, cleave_view_element_count(tensor_of(unit, 1)), &operands->packed);
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_use(builder, unit->input, FORM_LAST, &operands->input);
  }
  return status == CLEAVE_OK ? xnnpack_builder_output(builder, FORM_LAST, &operands->output) : status;
}

cleave_status_t xnnpack_emit_convolution(const unit_t *unit, builder_t *builder) {
  const cleave_tensor_view_t *weights = tensor_of(unit, 1);
  int64_t group = cleave_view_int(unit->head, "group", 1);
  int64_t channels = weights->dims[0];
  bool is_depthwise = group > 1 && weights->dims[1] == 1;
  /* With one weight per pair of channels, and no factors, ONNX's order is XNNPACK's. */
  bool is_as_it_is = !is_depthwise && weights->dims[2] * weights->dims[3] == 1 && unit->folded_count == 0;
  const float *filter_data = is_as_it_is ? xnnpack_constant_in_place(weights) : NULL;
  window_t window;
  operands_t operands;
  cleave_status_t status = xnnpack_window_read(unit, &weights->dims[2], &window, builder->message);
  if (status == CLEAVE_OK) {
    status = prepare(unit, builder, channels, filter_data == NULL, &operands);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  if (filter_data == NULL) {
    pack_filter(weights, operands.scale, is_depthwise, operands.packed);
    filter_data = operands.packed;
  }
  size_t dims[4] = {(size_t)channels, window.kernel[0], window.kernel[1], (size_t)weights->dims[1]};
  if (is_depthwise) {
    dims[0] = 1;
    dims[3] = (size_t)channels;
  }
  uint32_t filter;
  status = xnnpack_builder_static(builder, 4, dims, filter_data, &filter);
  if (status != CLEAVE_OK) {
    return status;
  }
  if (is_depthwise) {
    return xnnpack_builder_check(
        builder,
        xnn_define_depthwise_convolution_2d(
            builder->subgraph, window.begin[0], window.end[1], window.end[0], window.begin[1],
            window.kernel[0], window.kernel[1], window.stride[0], window.stride[1], window.dilation[0],
            window.dilation[1], (uint32_t)(channels / group), (size_t)group, unit->minimum, unit->maximum,
            operands.input, filter, operands.bias, operands.output, 0),
        "depthwise convolution");
  }
  return xnnpack_builder_check(
      builder,
      xnn_define_convolution_2d(builder->subgraph, window.begin[0], window.end[1], window.end[0],
                                window.begin[1], window.kernel[0], window.kernel[1], window.stride[0],
                                window.stride[1], window.dilation[0], window.dilation[1], (uint32_t)group,
                                (size_t)weights->dims[1], (size_t)(channels / group), unit->minimum,
                                unit->maximum, operands.input, filter, operands.bias, operands.output, 0),
      "convolution");
}

/* ---- ConvTranspose ---- */

/* Strides, dilations, output_padding and pads of a ConvTranspose, height first. */
typedef struct expansion {
  uint32_t stride[2], dilation[2], extra[2], begin[2], end[2];
} expansion_t;

/* Two numbers from `least` on; `fallback` where the model says nothing. */
static bool read_numbers(const cleave_node_view_t *node, const char *name, int64_t least, uint32_t fallback,
                         uint32_t first, uint32_t *to) {
  uint32_t count = 0;
  const int64_t *ints = cleave_view_ints(node, name, &count);
  for (uint32_t d = 0; d < 2; d++) {
    bool is_given = ints != NULL && first + d < count;
    if (is_given && (ints[first + d] < least || ints[first + d] > INT16_MAX)) {
      return false;
    }
    to[d] = is_given ? (uint32_t)ints[first + d] : fallback;
  }
  return true;
}

static cleave_status_t read_expansion(const unit_t *unit, expansion_t *expansion, cleave_message_t *reason) {
  const cleave_node_view_t *node = unit->head;
  const cleave_tensor_view_t *input = tensor_of(unit, 0);
  const cleave_tensor_view_t *weights = tensor_of(unit, 1);
  const cleave_tensor_view_t *output = &unit->region->values[node->outputs[0]].tensor;
  uint32_t count = 0;
  bool has_shape = cleave_view_ints(node, "output_shape", &count) != NULL && count > 0;
  if (has_shape || !cleave_view_text_equal(cleave_view_string(node, "auto_pad", "NOTSET"), "NOTSET") ||
      !read_numbers(node, "strides", 1, 1, 0, expansion->stride) ||
      !read_numbers(node, "dilations", 1, 1, 0, expansion->dilation) ||
      !read_numbers(node, "output_padding", 0, 0, 0, expansion->extra) ||
      !read_numbers(node, "pads", 0, 0, 0, expansion->begin) ||
      !read_numbers(node, "pads", 0, 0, 2, expansion->end)) {
    return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: only explicit padding runs here", node->op);
  }
  for (int d = 0; d < 2; d++) {
    if (weights->dims[2 + d] < 1 || weights->dims[2 + d] > INT16_MAX) {
      return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE, "%s: kernel out of range", node->op);
    }
    int64_t size = (input->dims[2 + d] - 1) * expansion->stride[d] +
                   (weights->dims[2 + d] - 1) * expansion->dilation[d] + 1 + expansion->extra[d] -
                   expansion->begin[d] - expansion->end[d];
    if (size != output->dims[2 + d] || expansion->extra[d] >= expansion->stride[d]) {
      return xnnpack_refuse(reason, CLEAVE_REASON_ATTRIBUTE, "%s: XNNPACK does not add %u to a stride of %u",
                            node->op, expansion->extra[d], expansion->stride[d]);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_check_deconvolution(const unit_t *unit, cleave_message_t *reason) {
  cleave_status_t status = check_operands(unit, reason);
  expansion_t expansion;
  return status != CLEAVE_OK ? status : read_expansion(unit, &expansion, reason);
}

cleave_status_t xnnpack_emit_deconvolution(const unit_t *unit, builder_t *builder) {
  const cleave_tensor_view_t *weights = tensor_of(unit, 1);
  int64_t group = cleave_view_int(unit->head, "group", 1);
  int64_t channels = weights->dims[1] * group;
  expansion_t expansion;
  operands_t operands;
  cleave_status_t status = read_expansion(unit, &expansion, builder->message);
  if (status == CLEAVE_OK) {
    status = prepare(unit, builder, channels, true, &operands);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  pack_transposed_filter(weights, operands.scale, group, operands.packed);
  size_t dims[4] = {(size_t)channels, (size_t)weights->dims[2], (size_t)weights->dims[3],
                    (size_t)(weights->dims[0] / group)};
  uint32_t filter;
  status = xnnpack_builder_static(builder, 4, dims, operands.packed, &filter);
  if (status != CLEAVE_OK) {
    return status;
  }
  return xnnpack_builder_check(
      builder,
      xnn_define_deconvolution_2d(builder->subgraph, expansion.begin[0], expansion.end[1], expansion.end[0],
                                  expansion.begin[1], expansion.extra[0], expansion.extra[1],
                                  (uint32_t)weights->dims[2], (uint32_t)weights->dims[3], expansion.stride[0],
                                  expansion.stride[1], expansion.dilation[0], expansion.dilation[1],
                                  (uint32_t)group, dims[3], (size_t)weights->dims[1], unit->minimum,
                                  unit->maximum, operands.input, filter, operands.bias, operands.output, 0),
      "deconvolution");
}
