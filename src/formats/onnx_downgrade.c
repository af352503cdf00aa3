/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the canonical form to opset 17: the changes of onnx_canonical.c of opsets 18 to 22, backwards. What
 * opset 17 cannot say is refused, never approximated.
 */
#include <string.h>

#include "formats/onnx_write.h"
#include "ops/ops.h"

typedef cleave_status_t (*downgrade_t)(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error);

static cleave_status_t refuse(const cleave_onnx_record_t *record, const char *reason, cleave_error_t *error) {
  char label[128];
  return cleave_error_set(
      error, CLEAVE_ERROR_UNSUPPORTED, "node '%s': operator '%s' cannot be written in opset 17: %s",
      cleave_node_label(record->writer->graph, record->node, label, sizeof label), record->op->name, reason);
}

static cleave_status_t refuse_new(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  (void)field;
  return refuse(record, "it came later", error);
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

static int64_t int_of(const cleave_onnx_record_t *record, const char *name, int64_t otherwise) {
  return cleave_op_int(record->writer->graph, record->node, name, otherwise);
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

/* Drops an integer attribute that opset 17 lacks, if it says what is the case there anyway. */
static cleave_status_t drop_default(cleave_onnx_record_t *record, const char *name, int64_t normal,
                                    const char *reason, cleave_error_t *error) {
  if (int_of(record, name, normal) != normal) {
    return refuse(record, reason, error);
  }
  drop_attribute(record, name);
  return CLEAVE_OK;
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
static cleave_status_t reduce(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  (void)field;
  bool is_noop = int_of(record, "noop_with_empty_axes", 0) != 0;
  drop_attribute(record, "noop_with_empty_axes");
  if (!has_input(record, 1)) {
    return is_noop ? refuse(record, "it reduces nothing without axes", error) : CLEAVE_OK;
  }
  const cleave_tensor_t *tensor = constant_input(record, 1);
  if (tensor == NULL || tensor->count > CLEAVE_MAX_RANK || (tensor->count == 0 && is_noop)) {
    return refuse(record, "its axes are no constant", error);
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
static cleave_status_t split(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  const cleave_graph_t *graph = record->writer->graph;
  drop_attribute(record, "num_outputs");
  if (has_input(record, 1) || record->inputs.count == 0) {
    return CLEAVE_OK;
  }
  const cleave_value_record_t *data = cleave_graph_value(graph, record->inputs.items[0].value);
  int64_t axis = int_of(record, "axis", 0);
  int64_t parts = cleave_node_output_count(graph, record->node);
  axis = axis < 0 ? axis + data->rank : axis;
  if (data->rank <= 0 || axis < 0 || axis >= data->rank || data->dims[axis] < 0 ||
      data->dims[axis] % parts == 0) {
    return CLEAVE_OK;
  }
  int64_t *sizes = cleave_allocate((size_t)parts, sizeof *sizes);
  if (sizes == NULL) {
    return cleave_error_out_of_memory(error);
  }
  int64_t each = (data->dims[axis] + parts - 1) / parts;
  int64_t left = data->dims[axis];
  for (int64_t k = 0; k < parts; k++) {
    sizes[k] = left < each ? left : each;
    left -= sizes[k];
  }
  cleave_onnx_input_t input = {.name = "", .value = CLEAVE_VALUE_NONE};
  cleave_status_t status = cleave_onnx_unique_name(record->writer, "split", &input.name, error);
  if (status == CLEAVE_OK) {
    cleave_onnx_put_constant(record->out, field, sizes, (size_t)parts, input.name);
    record->inputs.count = 1;
    status = cleave_array_reserve(&record->inputs, 1, error);
  }
  if (status == CLEAVE_OK) {
    cleave_array_push_reserved(&record->inputs, input);
  }
  cleave_free(sizes);
  return status;
}

static cleave_status_t pad(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  (void)field;
  if (has_input(record, 3)) {
    return refuse(record, "its axes are an input", error);
  }
  return text_is(record, "mode", "wrap") ? refuse(record, "its mode is wrap", error) : CLEAVE_OK;
}

static cleave_status_t resize(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  (void)field;
  uint32_t axes = 0;
  (void)cleave_op_ints(record->writer->graph, record->node, "axes", &axes);
  if (axes > 0 || !text_is(record, "keep_aspect_ratio_policy", "stretch") ||
      text_is(record, "coordinate_transformation_mode", "half_pixel_symmetric")) {
    return refuse(record, "it has axes, keeps the aspect ratio or is symmetric", error);
  }
  drop_attribute(record, "axes");
  drop_attribute(record, "keep_aspect_ratio_policy");
  return drop_default(record, "antialias", 0, "it smoothes", error);
}

static cleave_status_t pool(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  (void)field;
  if (!all_ones(record, "dilations")) {
    return refuse(record, "it is dilated", error);
  }
  drop_attribute(record, "dilations");
  return strcmp(record->op->name, "LpPool") == 0
             ? drop_default(record, "ceil_mode", 0, "it rounds sizes up", error)
             : CLEAVE_OK;
}

static cleave_status_t cast(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  (void)field;
  (void)error;
  drop_attribute(record, "saturate"); /* of float8 types only, which cleave lacks */
  return CLEAVE_OK;
}

static cleave_status_t quantize(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  (void)field;
  drop_attribute(record, "saturate");
  CLEAVE_TRY(drop_default(record, "output_dtype", 0, "it names its output type", error));
  return drop_default(record, "block_size", 0, "it is blocked", error);
}

static cleave_status_t scatter(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  (void)field;
  bool is_new = text_is(record, "reduction", "min") || text_is(record, "reduction", "max");
  return is_new ? refuse(record, "it reduces by min or max", error) : CLEAVE_OK;
}

static cleave_status_t grid_sample(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  (void)field;
  const cleave_value_record_t *data =
      record->inputs.count > 0 ? cleave_graph_value(record->writer->graph, record->inputs.items[0].value)
                               : NULL;
  if (data != NULL && data->rank > 4) {
    return refuse(record, "it samples a volume", error);
  }
  if (text_is(record, "mode", "linear")) {
    return set_text(record, "mode", "bilinear", error);
  }
  return text_is(record, "mode", "cubic") ? set_text(record, "mode", "bicubic", error) : CLEAVE_OK;
}

/* DFT: the axis was an attribute, counted from the front. */
static cleave_status_t dft(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  (void)field;
  const cleave_tensor_t *tensor = constant_input(record, 2);
  int64_t axis = -2;
  int32_t rank = record->inputs.count > 0
                     ? cleave_graph_value(record->writer->graph, record->inputs.items[0].value)->rank
                     : -1;
  if (has_input(record, 2)) {
    if (tensor == NULL || tensor->count != 1) {
      return refuse(record, "its axis is no constant", error);
    }
    axis = cleave_tensor_get_int(tensor, 0);
  }
  if (axis < 0 && (rank < 0 || axis + rank < 0)) {
    return refuse(record, "its axis counts from the back, and the rank is unknown", error);
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

static const struct {
  const char *op_type;
  downgrade_t downgrade;
} downgrades[] = {
    {"AffineGrid", refuse_new},
    {"Attention", refuse_new},
    {"BitwiseAnd", refuse_new},
    {"BitwiseNot", refuse_new},
    {"BitwiseOr", refuse_new},
    {"BitwiseXor", refuse_new},
    {"CenterCropPad", refuse_new},
    {"Col2Im", refuse_new},
    {"DeformConv", refuse_new},
    {"Gelu", refuse_new},
    {"GroupNormalization", refuse_new},
    {"Mish", refuse_new},
    {"RMSNormalization", refuse_new},
    {"Swish", refuse_new},
    {"AveragePool", pool},
    {"LpPool", pool},
    {"Cast", cast},
    {"CastLike", cast},
    {"DFT", dft},
    {"DequantizeLinear", quantize},
    {"QuantizeLinear", quantize},
    {"GridSample", grid_sample},
    {"Pad", pad},
    {"Resize", resize},
    {"ScatterElements", scatter},
    {"ScatterND", scatter},
    {"Split", split},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSumSquare", reduce},
};

cleave_status_t cleave_onnx_downgrade(cleave_onnx_record_t *record, uint32_t field, cleave_error_t *error) {
  for (size_t k = 0; k < sizeof downgrades / sizeof *downgrades; k++) {
    if (strcmp(downgrades[k].op_type, record->op->name) == 0) {
      return downgrades[k].downgrade(record, field, error);
    }
  }
  return CLEAVE_OK;
}
