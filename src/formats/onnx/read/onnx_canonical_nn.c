// SPDX-License-Identifier: Apache-2.0
/* Canonical forms of normalisation, softmax, recurrent layers and resampling. */
#include <string.h>

#include "formats/onnx/read/onnx_canonical.h"

/* y = Reshape(op(Flatten(x, axis)), shape of x) */
static cleave_status_t flatten_around(cleave_onnx_call_t *call, int64_t axis, cleave_error_t *error) {
  cleave_graph_t *graph = call->builder->graph;
  cleave_value_t x = cleave_onnx_call_input(call, 0);
  cleave_value_t inputs[2] = {x, CLEAVE_VALUE_NONE};
  cleave_value_t flat;
  cleave_value_t y;
  cleave_node_t node;
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Flatten", inputs, 1, &node, &flat, error));
  CLEAVE_TRY(cleave_graph_set_int(graph, node, "axis", axis, error));
  CLEAVE_TRY(cleave_onnx_builder_infer(call->builder, node, error));
  CLEAVE_TRY(cleave_onnx_call_emit(call, call->op_type, &flat, 1, &node, &y, error));
  CLEAVE_TRY(cleave_graph_set_int(graph, node, "axis", -1, error));
  CLEAVE_TRY(cleave_onnx_builder_infer(call->builder, node, error));
  const cleave_value_record_t *record = cleave_graph_value(graph, x);
  bool is_known = record->rank >= 0;
  bool is_empty = false;
  for (int32_t d = 0; d < record->rank; d++) {
    is_known = is_known && record->dims[d] >= 0;
    is_empty = is_empty || record->dims[d] == 0;
  }
  inputs[0] = y;
  if (is_known) {
    CLEAVE_TRY(
        cleave_onnx_call_ints_constant(call, 1, record->dims, (uint32_t)record->rank, &inputs[1], error));
  } else {
    CLEAVE_TRY(cleave_onnx_call_emit(call, "Shape", &x, 1, &node, &inputs[1], error));
    CLEAVE_TRY(cleave_onnx_builder_infer(call->builder, node, error));
  }
  call->op_type = "Reshape";
  call->attributes.count = 0;
  if (is_empty) {
    CLEAVE_TRY(cleave_onnx_call_set_int(call, "allowzero", 1, error));
  }
  CLEAVE_TRY(cleave_onnx_call_set_input(call, 0, inputs[0], error));
  return cleave_onnx_call_set_input(call, 1, inputs[1], error);
}

/* Softmax, LogSoftmax and Hardmax < 13 see the input as a matrix, cut before `axis` (default 1). */
cleave_status_t cleave_onnx_rewrite_softmax(cleave_onnx_call_t *call, cleave_error_t *error) {
  int64_t axis = cleave_onnx_call_int(call, "axis", 1);
  int32_t rank = cleave_onnx_call_rank(call, cleave_onnx_call_input(call, 0));
  if (call->inputs.count != 1 || !cleave_value_exists(call->inputs.items[0])) {
    return CLEAVE_OK; /* the check of the schema says what is wrong */
  }
  if (axis == -1 || (rank > 0 && axis == rank - 1)) {
    return cleave_onnx_call_set_int(call, "axis", -1, error);
  }
  return flatten_around(call, axis, error);
}

/* BatchNormalization < 14. Training has five outputs; the last two are unused. */
cleave_status_t cleave_onnx_rewrite_batch_normalization(cleave_onnx_call_t *call, cleave_error_t *error) {
  bool is_training = false;
  if (call->version < 9 && cleave_onnx_call_int(call, "spatial", 1) == 0) {
    return cleave_onnx_call_refuse(call, "spatial = 0 is not supported", error);
  }
  for (uint32_t k = 1; k < 5; k++) {
    is_training = is_training || cleave_onnx_call_output_used(call, k);
  }
  if (cleave_onnx_call_output_used(call, 3) || cleave_onnx_call_output_used(call, 4)) {
    return cleave_onnx_call_refuse(call, "its outputs 'saved_mean' and 'saved_var' are used", error);
  }
  cleave_onnx_call_remove(call, "spatial");
  cleave_onnx_call_remove(call, "is_test");
  uint32_t wanted = is_training ? 3 : 1;
  call->output_count = call->output_count < wanted ? call->output_count : wanted;
  return is_training ? cleave_onnx_call_set_int(call, "training_mode", 1, error) : CLEAVE_OK;
}

/* One value per group -> one per channel: Reshape(Expand(Unsqueeze(v), [groups, channels / groups]), [-1]).
 */
static cleave_status_t spread_groups(cleave_onnx_call_t *call, uint32_t index, cleave_error_t *error) {
  cleave_graph_t *graph = call->builder->graph;
  cleave_value_t x = cleave_onnx_call_input(call, 0);
  cleave_value_t value = cleave_onnx_call_input(call, index);
  cleave_node_t node;
  int64_t one = 1;
  int64_t all = -1;
  cleave_value_t groups;
  cleave_value_t channels;
  cleave_value_t sizes[2];
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Shape", &value, 1, &node, &groups, error));
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Shape", &x, 1, &node, &channels, error));
  CLEAVE_TRY(cleave_graph_set_int(graph, node, "start", 1, error));
  CLEAVE_TRY(cleave_graph_set_int(graph, node, "end", 2, error));
  sizes[0] = channels;
  sizes[1] = groups;
  cleave_value_t each;
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Div", sizes, 2, &node, &each, error));
  sizes[0] = groups;
  sizes[1] = each;
  cleave_value_t shape;
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Concat", sizes, 2, &node, &shape, error));
  CLEAVE_TRY(cleave_graph_set_int(graph, node, "axis", 0, error));
  cleave_value_t inputs[2] = {value, CLEAVE_VALUE_NONE};
  CLEAVE_TRY(cleave_onnx_call_ints_constant(call, 1, &one, 1, &inputs[1], error));
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Unsqueeze", inputs, 2, &node, &value, error));
  inputs[0] = value;
  inputs[1] = shape;
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Expand", inputs, 2, &node, &value, error));
  inputs[0] = value;
  CLEAVE_TRY(cleave_onnx_call_ints_constant(call, 1, &all, 1, &inputs[1], error));
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Reshape", inputs, 2, &node, &value, error));
  return cleave_onnx_call_set_input(call, index, value, error);
}

/* GroupNormalization 18: scale and bias were per group. */
cleave_status_t cleave_onnx_rewrite_group_normalization(cleave_onnx_call_t *call, cleave_error_t *error) {
  for (uint32_t k = 0; k < 3; k++) {
    if (!cleave_value_exists(cleave_onnx_call_input(call, k))) {
      return CLEAVE_OK;
    }
  }
  CLEAVE_TRY(spread_groups(call, 1, error));
  return spread_groups(call, 2, error);
}

static cleave_status_t set_asymmetric(cleave_onnx_call_t *call, cleave_error_t *error) {
  CLEAVE_TRY(cleave_onnx_call_set_text(call, "coordinate_transformation_mode", "asymmetric", error));
  return cleave_onnx_call_set_text(call, "nearest_mode", "floor", error);
}

/* Which axes a Resize makes smaller, which larger: both, as far as its scales are not known. */
static void find_directions(const cleave_onnx_call_t *call, cleave_value_t scales, bool *out_shrinks,
                            bool *out_grows) {
  const cleave_tensor_t *tensor =
      cleave_value_exists(scales) ? cleave_graph_value(call->builder->graph, scales)->tensor : NULL;
  *out_shrinks = tensor == NULL;
  *out_grows = tensor == NULL;
  for (int64_t k = 0; tensor != NULL && k < tensor->count; k++) {
    *out_shrinks = *out_shrinks || cleave_tensor_get_float(tensor, k) < 1.0;
    *out_grows = *out_grows || cleave_tensor_get_float(tensor, k) > 1.0;
  }
}

/* Makes what shrinks a Resize of its own in front of the call, and leaves what grows. */
static cleave_status_t shrink_before(cleave_onnx_call_t *call, cleave_value_t *scales,
                                     cleave_error_t *error) {
  cleave_graph_t *graph = call->builder->graph;
  cleave_value_t factors[2] = {*scales, CLEAVE_VALUE_NONE};
  cleave_value_t inputs[3] = {cleave_onnx_call_input(call, 0), CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE};
  cleave_node_t node;
  CLEAVE_TRY(cleave_onnx_call_number(call, CLEAVE_DTYPE_F32, 1.0, &factors[1], error));
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Min", factors, 2, &node, &inputs[2], error));
  CLEAVE_TRY(cleave_onnx_builder_infer(call->builder, node, error));
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Max", factors, 2, &node, scales, error));
  CLEAVE_TRY(cleave_onnx_builder_infer(call->builder, node, error));
  CLEAVE_TRY(cleave_onnx_call_emit(call, "Resize", inputs, 3, &node, &call->inputs.items[0], error));
  CLEAVE_TRY(cleave_graph_set_text(graph, node, "coordinate_transformation_mode", "asymmetric", error));
  CLEAVE_TRY(cleave_graph_set_text(graph, node, "nearest_mode", "ceil", error));
  return cleave_onnx_builder_infer(call->builder, node, error);
}

/* Resize 10 is Resize(X, scales), asymmetric; nearest rounds up along axes that shrink, and down along
 * others. */
cleave_status_t cleave_onnx_rewrite_resize_10(cleave_onnx_call_t *call, cleave_error_t *error) {
  cleave_value_t scales = cleave_onnx_call_input(call, 1);
  bool shrinks = false;
  bool grows = false;
  find_directions(call, scales, &shrinks, &grows);
  shrinks = shrinks && strcmp(cleave_onnx_call_text(call, "mode", "nearest"), "nearest") == 0;
  if (shrinks && grows && cleave_value_exists(scales)) {
    CLEAVE_TRY(shrink_before(call, &scales, error));
  }
  CLEAVE_TRY(cleave_onnx_call_set_input(call, 1, CLEAVE_VALUE_NONE, error));
  CLEAVE_TRY(cleave_onnx_call_set_input(call, 2, scales, error));
  CLEAVE_TRY(set_asymmetric(call, error));
  return shrinks && !grows ? cleave_onnx_call_set_text(call, "nearest_mode", "ceil", error) : CLEAVE_OK;
}

static cleave_status_t scales_constant(cleave_onnx_call_t *call, const float *scales, uint32_t count,
                                       cleave_value_t *out_value, cleave_error_t *error) {
  cleave_tensor_t *tensor = NULL;
  int64_t dim = count;
  CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_F32, 1, &dim, &tensor, error));
  if (count > 0) {
    memcpy(tensor->data, scales, count * sizeof *scales);
  }
  cleave_status_t status = cleave_graph_add_constant(call->builder->graph, NULL, tensor, out_value, error);
  cleave_tensor_release(tensor);
  return status;
}

/* Upsample 1 (two factors), 7 (attribute `scales`), 9 (input) -> Resize. */
cleave_status_t cleave_onnx_rewrite_upsample(cleave_onnx_call_t *call, cleave_error_t *error) {
  cleave_value_t scales = cleave_onnx_call_input(call, 1);
  const cleave_attribute_t *list = cleave_onnx_call_attribute(call, "scales");
  if (call->version < 7) {
    const float factors[4] = {1.0f, 1.0f, (float)cleave_onnx_call_float(call, "height_scale", 1.0),
                              (float)cleave_onnx_call_float(call, "width_scale", 1.0)};
    CLEAVE_TRY(scales_constant(call, factors, 4, &scales, error));
    cleave_onnx_call_remove(call, "height_scale");
    cleave_onnx_call_remove(call, "width_scale");
  } else if (call->version < 9 && list != NULL && list->kind == CLEAVE_ATTRIBUTE_FLOATS) {
    CLEAVE_TRY(scales_constant(call, list->floats, list->count, &scales, error));
    cleave_onnx_call_remove(call, "scales");
  }
  if (strcmp(cleave_onnx_call_text(call, "mode", "nearest"), "bilinear") == 0) {
    CLEAVE_TRY(cleave_onnx_call_set_text(call, "mode", "linear", error));
  }
  call->op_type = "Resize";
  CLEAVE_TRY(cleave_onnx_call_set_input(call, 1, CLEAVE_VALUE_NONE, error));
  CLEAVE_TRY(cleave_onnx_call_set_input(call, 2, scales, error));
  return set_asymmetric(call, error);
}

/* Resize 11 spelled inputs that are left out as empty tensors. */
cleave_status_t cleave_onnx_rewrite_resize(cleave_onnx_call_t *call, cleave_error_t *error) {
  (void)error;
  for (size_t k = 1; k < call->inputs.count; k++) {
    cleave_value_t input = call->inputs.items[k];
    const cleave_tensor_t *tensor =
        cleave_value_exists(input) ? cleave_graph_value(call->builder->graph, input)->tensor : NULL;
    if (tensor != NULL && tensor->count == 0) {
      call->inputs.items[k] = CLEAVE_VALUE_NONE;
    }
  }
  return CLEAVE_OK;
}

/* GridSample 16 said bilinear and bicubic. */
cleave_status_t cleave_onnx_rewrite_grid_sample(cleave_onnx_call_t *call, cleave_error_t *error) {
  const char *mode = cleave_onnx_call_text(call, "mode", "bilinear");
  if (strcmp(mode, "bilinear") == 0) {
    return cleave_onnx_call_set_text(call, "mode", "linear", error);
  }
  return strcmp(mode, "bicubic") == 0 ? cleave_onnx_call_set_text(call, "mode", "cubic", error) : CLEAVE_OK;
}

/* RoiAlign 10 had no half-pixel shift. */
cleave_status_t cleave_onnx_rewrite_roi_align(cleave_onnx_call_t *call, cleave_error_t *error) {
  return cleave_onnx_call_set_text(call, "coordinate_transformation_mode", "output_half_pixel", error);
}

/* LpPool 1 and GlobalLpPool 1: p was a float. */
cleave_status_t cleave_onnx_rewrite_norm_order(cleave_onnx_call_t *call, cleave_error_t *error) {
  const cleave_attribute_t *p = cleave_onnx_call_attribute(call, "p");
  if (p == NULL || p->kind != CLEAVE_ATTRIBUTE_FLOAT) {
    return CLEAVE_OK;
  }
  if (!(p->f >= 1.0 && p->f <= 1024.0) || p->f != (double)(int64_t)p->f) {
    return cleave_onnx_call_refuse(call, "its norm is not an integer", error);
  }
  return cleave_onnx_call_set_int(call, "p", (int64_t)p->f, error);
}

/* RNN, GRU and LSTM 1: whether the sequence is an output shows in the outputs. */
cleave_status_t cleave_onnx_rewrite_recurrent(cleave_onnx_call_t *call, cleave_error_t *error) {
  (void)error;
  cleave_onnx_call_remove(call, "output_sequence");
  return CLEAVE_OK;
}
