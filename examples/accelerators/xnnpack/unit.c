// SPDX-License-Identifier: Apache-2.0
/* Reads nodes and fusions as units: the types that XNNPACK takes, then the operator's own check. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "operators.h"

cleave_status_t xnnpack_refuse(cleave_message_t *reason, cleave_reason_code_t code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  reason->code = code;
  (void)vsnprintf(reason->text, sizeof reason->text, format, arguments);
  va_end(arguments);
  return CLEAVE_ERROR_UNSUPPORTED;
}

float xnnpack_constant_at(const cleave_tensor_view_t *tensor, int64_t index) {
  float value;
  memcpy(&value, (const unsigned char *)tensor->data + (size_t)index * sizeof value, sizeof value);
  return value;
}

const float *xnnpack_constant_in_place(const cleave_tensor_view_t *tensor) {
  return (uintptr_t)tensor->data % sizeof(float) == 0 ? tensor->data : NULL;
}

int32_t xnnpack_read_integers(const unit_t *unit, const char *name, uint32_t input, int32_t room,
                              int64_t *to) {
  uint32_t count = 0;
  const int64_t *ints = cleave_view_ints(unit->head, name, &count);
  const cleave_value_view_t *value = cleave_view_input(unit->region, unit->head, input);
  if (value != NULL) {
    int64_t elements = cleave_view_element_count(&value->tensor);
    if (value->tensor.data == NULL || value->tensor.dtype != CLEAVE_DTYPE_I64 || elements < 0 ||
        elements > room) {
      return -1;
    }
    memcpy(to, value->tensor.data, (size_t)elements * sizeof *to);
    return (int32_t)elements;
  }
  if (count > (uint32_t)room) {
    return -1;
  }
  for (uint32_t k = 0; k < count; k++) {
    to[k] = ints[k];
  }
  return (int32_t)count;
}

/* A tensor of run time: float32, of a rank and with sizes that XNNPACK takes. */
static cleave_status_t check_tensor(const cleave_value_view_t *value, bool open, cleave_message_t *reason) {
  const cleave_tensor_view_t *tensor = &value->tensor;
  if (tensor->dtype != CLEAVE_DTYPE_F32) {
    return xnnpack_refuse(reason, CLEAVE_REASON_DTYPE, "'%s': only float32 runs here", value->name);
  }
  if (tensor->rank < 0 || tensor->rank > XNNPACK_MAX_RANK) {
    return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE, "'%s': expected a known rank of at most %d",
                          value->name, XNNPACK_MAX_RANK);
  }
  for (int32_t d = 0; d < tensor->rank; d++) {
    bool is_open = tensor->dims[d] < 0;
    if (tensor->dims[d] == 0 || tensor->dims[d] > INT32_MAX || (is_open && !(open && d == 0))) {
      return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE, "'%s': size %d is %s", value->name, (int)d,
                            is_open ? "not known" : "out of range");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t check_types(const cleave_region_view_t *region, const cleave_node_view_t *node,
                                   bool open, cleave_message_t *reason) {
  for (uint32_t k = 0; k < node->input_count; k++) {
    const cleave_value_view_t *value = cleave_view_input(region, node, k);
    if (value != NULL && value->tensor.data == NULL) {
      cleave_status_t status = check_tensor(value, open, reason);
      if (status != CLEAVE_OK) {
        return status;
      }
    }
  }
  if (cleave_view_output(region, node, 0) == NULL) {
    return xnnpack_refuse(reason, CLEAVE_REASON_OPERATOR, "%s: nobody uses its first output", node->op);
  }
  for (uint32_t k = 1; k < node->output_count; k++) {
    if (node->outputs[k] != CLEAVE_INDEX_NONE) {
      return xnnpack_refuse(reason, CLEAVE_REASON_OPERATOR, "%s: XNNPACK gives its first output only",
                            node->op);
    }
  }
  return check_tensor(cleave_view_output(region, node, 0), open, reason);
}

static bool is_constant(const cleave_value_view_t *value) {
  return value != NULL && value->tensor.data != NULL && value->tensor.dtype == CLEAVE_DTYPE_F32;
}

cleave_status_t xnnpack_read_bounds(const cleave_region_view_t *region, const cleave_node_view_t *node,
                                    float *minimum, float *maximum, cleave_message_t *reason) {
  *minimum = cleave_view_text_equal(node->op, "Relu") ? 0.0f : -INFINITY;
  *maximum = INFINITY;
  if (cleave_view_text_equal(node->op, "Clip")) {
    float *bounds[2] = {minimum, maximum};
    if (node->opset_version < 11) {
      *minimum = (float)cleave_view_float(node, "min", -INFINITY);
      *maximum = (float)cleave_view_float(node, "max", INFINITY);
    }
    for (uint32_t k = 1; k < 3; k++) {
      const cleave_value_view_t *value = cleave_view_input(region, node, k);
      if (value == NULL) {
        continue;
      }
      if (!is_constant(value) || cleave_view_element_count(&value->tensor) != 1) {
        return xnnpack_refuse(reason, CLEAVE_REASON_CONSTANT, "Clip: bounds must be constants");
      }
      *bounds[k - 1] = xnnpack_constant_at(&value->tensor, 0);
    }
  }
  if (!(*minimum < *maximum)) {
    return xnnpack_refuse(reason, CLEAVE_REASON_CONSTANT,
                          "Clip: XNNPACK wants the lower bound below the upper");
  }
  return CLEAVE_OK;
}

static bool is_bounding(const cleave_node_view_t *node) {
  return cleave_view_text_equal(node->op, "Relu") || cleave_view_text_equal(node->op, "Clip");
}

/* Is the constant a number, or one per channel of a tensor of this rank? */
static bool is_per_channel(const cleave_tensor_view_t *tensor, int32_t rank, int32_t axis, int64_t channels) {
  if (tensor->rank > rank) {
    return false;
  }
  for (int32_t d = 0; d < tensor->rank; d++) {
    bool is_axis = d + rank - tensor->rank == axis;
    if (tensor->dims[d] != 1 && !(is_axis && tensor->dims[d] == channels)) {
      return false;
    }
  }
  return true;
}

int64_t xnnpack_unit_channels(const unit_t *unit) {
  const cleave_tensor_view_t *weights = &unit->region->values[unit->head->inputs[1]].tensor;
  const char *op = unit->head->op;
  if (cleave_view_text_equal(op, "Conv")) {
    return weights->dims[0];
  }
  if (cleave_view_text_equal(op, "ConvTranspose")) {
    return weights->dims[1] * cleave_view_int(unit->head, "group", 1);
  }
  return weights->dims[cleave_view_int(unit->head, "transB", 0) != 0 ? 0 : 1];
}

/* May this node, which reads `previous`, be folded into the weights of the head? */
static cleave_status_t check_foldable(const unit_t *unit, const cleave_node_view_t *node, uint32_t previous,
                                      cleave_message_t *reason) {
  const cleave_region_view_t *region = unit->region;
  int64_t channels = xnnpack_unit_channels(unit);
  int32_t rank = region->values[previous].tensor.rank;
  int32_t axis = unit->operator->class == CLASS_SPATIAL ? 1 : rank - 1;
  if (cleave_view_text_equal(node->op, "BatchNormalization")) {
    unit_t norm = {.region = region, .head = node, .input = previous, .output = node->outputs[0]};
    if (axis != 1 || node->inputs[0] != previous) {
      return xnnpack_refuse(reason, CLEAVE_REASON_SHAPE,
                            "BatchNormalization: not over the output channels of %s", unit->head->op);
    }
    return xnnpack_check_batch_norm(&norm, reason);
  }
  bool is_divide = cleave_view_text_equal(node->op, "Div");
  if (!is_divide && !cleave_view_text_equal(node->op, "Add") && !cleave_view_text_equal(node->op, "Sub") &&
      !cleave_view_text_equal(node->op, "Mul")) {
    return xnnpack_refuse(reason, CLEAVE_REASON_OPERATOR, "%s: cannot be folded into %s", node->op,
                          unit->head->op);
  }
  uint32_t other = node->inputs[0] == previous ? 1 : 0;
  const cleave_value_view_t *operand = cleave_view_input(region, node, other);
  if (!is_constant(operand) || (is_divide && other == 0) ||
      !is_per_channel(&operand->tensor, rank, axis, channels)) {
    return xnnpack_refuse(reason, CLEAVE_REASON_CONSTANT,
                          "%s: only constants per output channel can be folded into %s", node->op,
                          unit->head->op);
  }
  return CLEAVE_OK;
}

/* Nodes 1 and on of a fusion: a chain, each reading what the one before wrote and nobody else reads. */
static cleave_status_t read_chain(const cleave_region_view_t *region, const uint32_t *nodes, uint32_t count,
                                  bool open, unit_t *unit, cleave_message_t *reason) {
  for (uint32_t k = 1; k < count; k++) {
    const cleave_node_view_t *node = &region->nodes[nodes[k]];
    uint32_t uses = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
      uses += node->inputs[i] == unit->output ? 1 : 0;
    }
    if (uses != 1 || region->values[unit->output].is_output || node->domain[0] != '\0') {
      return xnnpack_refuse(reason, CLEAVE_REASON_OPERATOR, "%s: is not the only reader of what %s computes",
                            node->op, unit->head->op);
    }
    cleave_status_t status = check_types(region, node, open, reason);
    if (status != CLEAVE_OK) {
      return status;
    }
    if (is_bounding(node)) {
      status = k + 1 == count && unit->operator->has_bounds && node->inputs[0] == unit->output
                   ? xnnpack_read_bounds(region, node, &unit->minimum, &unit->maximum, reason)
                   : xnnpack_refuse(reason, CLEAVE_REASON_OPERATOR,
                                    "%s: XNNPACK cannot clip what %s computes", node->op, unit->head->op);
    } else if (!unit->operator->has_weights || unit->folded_count == UNIT_MAX_FOLDED) {
      status = xnnpack_refuse(reason, CLEAVE_REASON_OPERATOR, "%s: cannot be folded into %s", node->op,
                              unit->head->op);
    } else {
      status = check_foldable(unit, node, unit->output, reason);
      unit->folded[unit->folded_count++] = node;
    }
    if (status != CLEAVE_OK) {
      return status;
    }
    unit->output = node->outputs[0];
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_unit_read(const cleave_region_view_t *region, const uint32_t *nodes, uint32_t count,
                                  bool open, unit_t *out_unit, cleave_message_t *reason) {
  const cleave_node_view_t *head = &region->nodes[nodes[0]];
  *out_unit = (unit_t){.region = region, .head = head, .minimum = -INFINITY, .maximum = INFINITY};
  out_unit->operator= head->domain[0] == '\0' ? xnnpack_operator_find(head->op) : NULL;
  if (out_unit->operator== NULL) {
    return xnnpack_refuse(reason, CLEAVE_REASON_OPERATOR, "%s: this XNNPACK has no such operator", head->op);
  }
  if (head->input_count == 0 || head->inputs[0] == CLEAVE_INDEX_NONE) {
    return xnnpack_refuse(reason, CLEAVE_REASON_OPERATOR, "%s: has no input", head->op);
  }
  cleave_status_t status = check_types(region, head, open, reason);
  if (status != CLEAVE_OK) {
    return status;
  }
  out_unit->input = head->inputs[0];
  out_unit->output = head->outputs[0];
  status = out_unit->operator->check(out_unit, reason);
  return status != CLEAVE_OK ? status : read_chain(region, nodes, count, open, out_unit, reason);
}

void xnnpack_batch_norm_at(const cleave_region_view_t *region, const cleave_node_view_t *node,
                           int64_t channel, float *factor, float *term) {
  double values[4];
  for (uint32_t k = 0; k < 4; k++) { /* scale, shift, mean, variance */
    values[k] = xnnpack_constant_at(&region->values[node->inputs[k + 1]].tensor, channel);
  }
  double scale = values[0] / sqrt(values[3] + cleave_view_float(node, "epsilon", 1e-5));
  *factor = (float)scale;
  *term = (float)(values[1] - values[2] * scale);
}

/* One factor or term: y = scale * product + shift goes through `node`. */
static void fold_operand(const unit_t *unit, const cleave_node_view_t *node, uint32_t previous,
                         int64_t channels, float *scale, float *shift) {
  uint32_t other = node->inputs[0] == previous ? 1 : 0;
  const cleave_tensor_view_t *operand = &unit->region->values[node->inputs[other]].tensor;
  bool is_one = cleave_view_element_count(operand) == 1;
  for (int64_t c = 0; c < channels; c++) {
    float value = xnnpack_constant_at(operand, is_one ? 0 : c);
    switch (node->op[0]) {
      case 'A': shift[c] += value; break;
      case 'D':
        scale[c] /= value;
        shift[c] /= value;
        break;
      case 'M':
        scale[c] *= value;
        shift[c] *= value;
        break;
      default: /* Sub: constant - x, or x - constant */
        scale[c] = other == 0 ? -scale[c] : scale[c];
        shift[c] = other == 0 ? value - shift[c] : shift[c] - value;
        break;
    }
  }
}

void xnnpack_unit_fold(const unit_t *unit, int64_t channels, float *scale, float *shift) {
  uint32_t previous = unit->head->outputs[0];
  for (uint32_t k = 0; k < unit->folded_count; k++) {
    const cleave_node_view_t *node = unit->folded[k];
    if (node->op[0] == 'B') {
      for (int64_t c = 0; c < channels; c++) {
        float factor = 1.0f;
        float term = 0.0f;
        xnnpack_batch_norm_at(unit->region, node, c, &factor, &term);
        scale[c] *= factor;
        shift[c] = shift[c] * factor + term;
      }
    } else {
      fold_operand(unit, node, previous, channels, scale, shift);
    }
    previous = node->outputs[0];
  }
}
