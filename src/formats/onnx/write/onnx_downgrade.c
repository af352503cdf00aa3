// SPDX-License-Identifier: Apache-2.0
/*
 * From the canonical form to that of an older operator set: the changes of onnx_canonical.c, backwards. What
 * a node of the older set cannot say is refused, never approximated; onnx_lower.c may then say it with
 * several.
 */
#include <stdio.h>
#include <string.h>

#include "formats/onnx/write/onnx_write.h"
#include "ops/ops.h"

typedef cleave_status_t (*downgrade_t)(cleave_onnx_record_t *record, cleave_error_t *error);

static cleave_status_t refuse(cleave_onnx_record_t *record, const char *reason) {
  (void)snprintf(record->refusal, sizeof record->refusal, "%s", reason);
  return CLEAVE_OK;
}

static void drop_attribute(cleave_onnx_record_t *record, const char *name) {
  size_t kept = 0;
  for (size_t k = 0; k < record->attributes.count; k++) {
    if (strcmp(record->attributes.items[k].name, name) != 0) {
      record->attributes.items[kept++] = record->attributes.items[k];
    }
  }
  record->attributes.count = kept;
}

static int64_t int_of(const cleave_onnx_record_t *record, const char *name, int64_t fallback) {
  return cleave_op_int(record->writer->graph, record->node, name, fallback);
}

static bool text_is(const cleave_onnx_record_t *record, const char *name, const char *text) {
  return strcmp(cleave_op_text(record->writer->graph, record->node, name, ""), text) == 0;
}

static cleave_status_t set_text(cleave_onnx_record_t *record, const char *name, const char *text,
                                cleave_error_t *error) {
  cleave_attribute_t attribute = {
      .name = name, .kind = CLEAVE_ATTRIBUTE_STRING, .count = (uint32_t)strlen(text)};
  attribute.s = text;
  drop_attribute(record, name);
  CLEAVE_ARRAY_PUSH(&record->attributes, attribute, error);
  return CLEAVE_OK;
}

static bool all_ones(const cleave_onnx_record_t *record, const char *name) {
  uint32_t count = 0;
  const int64_t *values = cleave_op_ints(record->writer->graph, record->node, name, &count);
  for (uint32_t k = 0; k < count; k++) {
    if (values[k] != 1) {
      return false;
    }
  }
  return true;
}

static bool has_input(const cleave_onnx_record_t *record, size_t index) {
  return index < record->inputs.count && cleave_value_exists(record->inputs.items[index].value);
}

static const cleave_tensor_t *constant_input(const cleave_onnx_record_t *record, size_t index) {
  return has_input(record, index)
             ? cleave_graph_value(record->writer->graph, record->inputs.items[index].value)->tensor
             : NULL;
}

/* Other reductions than ReduceSum: axes were an attribute. */
static cleave_status_t reduce(cleave_onnx_record_t *record, cleave_error_t *error) {
  bool is_noop = int_of(record, "noop_with_empty_axes", 0) != 0;
  drop_attribute(record, "noop_with_empty_axes");
  if (!has_input(record, 1)) {
    return is_noop ? refuse(record, "it reduces nothing without axes") : CLEAVE_OK;
  }
  const cleave_tensor_t *tensor = constant_input(record, 1);
  if (tensor == NULL || tensor->count > CLEAVE_MAX_RANK || (tensor->count == 0 && is_noop)) {
    return refuse(record, "its axes are not constant");
  }
  for (int64_t k = 0; k < tensor->count; k++) {
    record->numbers[k] = cleave_tensor_get_int(tensor, k);
  }
  record->inputs.count = 1;
  if (tensor->count > 0) {
    cleave_attribute_t attribute = {
        .name = "axes", .kind = CLEAVE_ATTRIBUTE_INTS, .count = (uint32_t)tensor->count};
    attribute.ints = record->numbers;
    CLEAVE_ARRAY_PUSH(&record->attributes, attribute, error);
  }
  return CLEAVE_OK;
}

/* Split: parts that are not equal need sizes. */
static cleave_status_t split(cleave_onnx_record_t *record, cleave_error_t *error) {
  const cleave_graph_t *graph = record->writer->graph;
  (void)error;
  drop_attribute(record, "num_outputs");
  if (has_input(record, 1) || record->inputs.count == 0) {
    return CLEAVE_OK;
  }
  const cleave_value_record_t *data = cleave_graph_value(graph, record->inputs.items[0].value);
  int64_t axis = int_of(record, "axis", 0);
  axis = axis < 0 ? axis + data->rank : axis;
  return data->rank <= 0 || axis < 0 || axis >= data->rank || data->dims[axis] < 0 ||
                 data->dims[axis] % cleave_node_output_count(graph, record->node) == 0
             ? CLEAVE_OK
             : refuse(record, "its parts are not equal");
}

static cleave_status_t pad(cleave_onnx_record_t *record, cleave_error_t *error) {
  (void)error;
  return text_is(record, "mode", "wrap") ? refuse(record, "its mode is wrap") : CLEAVE_OK;
}

static cleave_status_t resize(cleave_onnx_record_t *record, cleave_error_t *error) {
  (void)error;
  return text_is(record, "coordinate_transformation_mode", "half_pixel_symmetric")
             ? refuse(record, "its mode is half_pixel_symmetric")
             : CLEAVE_OK;
}

static cleave_status_t pool(cleave_onnx_record_t *record, cleave_error_t *error) {
  (void)error;
  if (!all_ones(record, "dilations")) {
    return refuse(record, "it is dilated");
  }
  drop_attribute(record, "dilations");
  return CLEAVE_OK;
}

/* It is about float8 types only, which cleave lacks. */
static cleave_status_t saturate(cleave_onnx_record_t *record, cleave_error_t *error) {
  (void)error;
  drop_attribute(record, "saturate");
  return CLEAVE_OK;
}

static cleave_status_t scatter(cleave_onnx_record_t *record, cleave_error_t *error) {
  (void)error;
  bool is_new = text_is(record, "reduction", "min") || text_is(record, "reduction", "max");
  return is_new ? refuse(record, "it reduces by min or max") : CLEAVE_OK;
}

/* Without zeros in the shape, allowzero says nothing. */
static cleave_status_t reshape(cleave_onnx_record_t *record, cleave_error_t *error) {
  const cleave_tensor_t *shape = constant_input(record, 1);
  (void)error;
  for (int64_t k = 0; shape != NULL && k < shape->count; k++) {
    if (cleave_tensor_get_int(shape, k) == 0) {
      return CLEAVE_OK;
    }
  }
  if (shape != NULL) {
    drop_attribute(record, "allowzero");
  }
  return CLEAVE_OK;
}

/* RoiAlign: what was meant has a name since opset 16, and is no longer the default. */
static cleave_status_t roi_align(cleave_onnx_record_t *record, cleave_error_t *error) {
  (void)error;
  if (!text_is(record, "coordinate_transformation_mode", "output_half_pixel")) {
    return refuse(record, "it takes regions by half_pixel");
  }
  drop_attribute(record, "coordinate_transformation_mode");
  return CLEAVE_OK;
}

static cleave_status_t group_normalization(cleave_onnx_record_t *record, cleave_error_t *error) {
  (void)error;
  return refuse(record, "its scale is one number per channel");
}

/* BatchNormalization: one element type for all. */
static cleave_status_t batch_normalization(cleave_onnx_record_t *record, cleave_error_t *error) {
  const cleave_graph_t *graph = record->writer->graph;
  (void)error;
  for (size_t k = 1; k < record->inputs.count; k++) {
    if (has_input(record, 0) && has_input(record, k) &&
        cleave_graph_value(graph, record->inputs.items[k].value)->dtype !=
            cleave_graph_value(graph, record->inputs.items[0].value)->dtype) {
      return refuse(record, "its element types differ");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t grid_sample(cleave_onnx_record_t *record, cleave_error_t *error) {
  const cleave_value_record_t *data =
      record->inputs.count > 0 ? cleave_graph_value(record->writer->graph, record->inputs.items[0].value)
                               : NULL;
  if (data != NULL && data->rank > 4) {
    return refuse(record, "it samples a volume");
  }
  if (text_is(record, "mode", "linear")) {
    return set_text(record, "mode", "bilinear", error);
  }
  return text_is(record, "mode", "cubic") ? set_text(record, "mode", "bicubic", error) : CLEAVE_OK;
}

/* DFT: the axis was an attribute, counted from the front. */
static cleave_status_t dft(cleave_onnx_record_t *record, cleave_error_t *error) {
  const cleave_tensor_t *tensor = constant_input(record, 2);
  int64_t axis = -2;
  int32_t rank = record->inputs.count > 0
                     ? cleave_graph_value(record->writer->graph, record->inputs.items[0].value)->rank
                     : -1;
  if (has_input(record, 2)) {
    if (tensor == NULL || tensor->count != 1) {
      return refuse(record, "its axis is not constant");
    }
    axis = cleave_tensor_get_int(tensor, 0);
  }
  if (axis < 0 && (rank < 0 || axis + rank < 0)) {
    return refuse(record, "its axis counts from the back, and the rank is unknown");
  }
  cleave_attribute_t attribute = {.name = "axis", .kind = CLEAVE_ATTRIBUTE_INT};
  attribute.i = axis < 0 ? axis + rank : axis;
  CLEAVE_ARRAY_PUSH(&record->attributes, attribute, error);
  record->inputs.count = record->inputs.count > 2 ? 2 : record->inputs.count;
  if (record->inputs.count == 2 && !has_input(record, 1)) {
    record->inputs.count = 1;
  }
  return CLEAVE_OK;
}

/* Operator sets up to `last` have the old form. */
static const struct {
  cleave_op_id_t op;
  int32_t last;
  downgrade_t downgrade;
} downgrades[] = {
    {CLEAVE_OP_AveragePool, 18, pool},
    {CLEAVE_OP_BatchNormalization, 14, batch_normalization},
    {CLEAVE_OP_Cast, 18, saturate},
    {CLEAVE_OP_CastLike, 18, saturate},
    {CLEAVE_OP_DFT, 19, dft},
    {CLEAVE_OP_GridSample, 19, grid_sample},
    {CLEAVE_OP_GroupNormalization, 20, group_normalization},
    {CLEAVE_OP_LpPool, 17, pool},
    {CLEAVE_OP_Pad, 18, pad},
    {CLEAVE_OP_QuantizeLinear, 18, saturate},
    {CLEAVE_OP_ReduceL1, 17, reduce},
    {CLEAVE_OP_ReduceL2, 17, reduce},
    {CLEAVE_OP_ReduceLogSum, 17, reduce},
    {CLEAVE_OP_ReduceLogSumExp, 17, reduce},
    {CLEAVE_OP_ReduceMax, 17, reduce},
    {CLEAVE_OP_ReduceMean, 17, reduce},
    {CLEAVE_OP_ReduceMin, 17, reduce},
    {CLEAVE_OP_ReduceProd, 17, reduce},
    {CLEAVE_OP_ReduceSumSquare, 17, reduce},
    {CLEAVE_OP_Reshape, 13, reshape},
    {CLEAVE_OP_Resize, 18, resize},
    {CLEAVE_OP_RoiAlign, 15, roi_align},
    {CLEAVE_OP_ScatterElements, 17, scatter},
    {CLEAVE_OP_ScatterND, 17, scatter},
    {CLEAVE_OP_Split, 17, split},
};

cleave_status_t cleave_onnx_downgrade(cleave_onnx_record_t *record, cleave_error_t *error) {
  for (size_t k = 0; k < sizeof downgrades / sizeof *downgrades; k++) {
    if (downgrades[k].op == record->op->id && record->writer->opset_version <= downgrades[k].last) {
      CLEAVE_TRY(downgrades[k].downgrade(record, error));
    }
  }
  if (record->refusal[0] == '\0') {
    cleave_onnx_check_form(record);
  }
  return CLEAVE_OK;
}
