// SPDX-License-Identifier: Apache-2.0
// Readers of nodes and values. Constants are read with memcpy: model files align nothing.
#include "onednn/library/values.h"

#include <string.h>

#include "kernels/convert.h"

const char *onednn_node_name(const cleave_node_view_t *node) {
  return node->name != NULL && node->name[0] != '\0' ? node->name : node->op;
}

bool onednn_node_is(const cleave_node_view_t *node, const char *op) {
  return strcmp(node->op, op) == 0 && node->domain[0] == '\0';
}

bool onednn_is_constant(const cleave_value_view_t *value) {
  return value != NULL && value->tensor.data != NULL;
}

onednn_shape_t onednn_shape_of(const cleave_value_view_t *value) {
  onednn_shape_t shape = {.rank = -1, .dims = {0}};
  if (value->tensor.rank < 0 || value->tensor.rank > CLEAVE_MAX_RANK) {
    return shape;
  }
  shape.rank = value->tensor.rank;
  for (int32_t d = 0; d < shape.rank; d++) {
    shape.dims[d] = value->tensor.dims[d];
  }
  return shape;
}

bool onednn_shape_known(const onednn_shape_t *shape) {
  for (int32_t d = 0; d < shape->rank; d++) {
    if (shape->dims[d] < 0) {
      return false;
    }
  }
  return shape->rank >= 0;
}

bool onednn_shape_equal(const onednn_shape_t *a, const onednn_shape_t *b) {
  if (a->rank != b->rank) {
    return false;
  }
  for (int32_t d = 0; d < a->rank; d++) {
    if (a->dims[d] != b->dims[d]) {
      return false;
    }
  }
  return true;
}

int64_t onednn_shape_count(const onednn_shape_t *shape) {
  int64_t count = 1;
  for (int32_t d = 0; d < shape->rank; d++) {
    count *= shape->dims[d];
  }
  return count;
}

bool onednn_shape_is_single(const onednn_shape_t *shape) {
  for (int32_t d = 0; d < shape->rank; d++) {
    if (shape->dims[d] != 1) {
      return false;
    }
  }
  return shape->rank >= 0;
}

bool onednn_shape_fits(const onednn_shape_t *operand, const onednn_shape_t *target) {
  if (operand->rank < 0 || target->rank < 0) {
    return true;
  }
  for (int32_t d = 0; d < operand->rank; d++) {
    int64_t a = operand->dims[operand->rank - 1 - d];
    int64_t b = d < target->rank ? target->dims[target->rank - 1 - d] : 1;
    if (a >= 0 && b >= 0 && a != 1 && a != b) {
      return false;
    }
  }
  return true;
}

static double element(const cleave_tensor_view_t *tensor, size_t index, bool *known) {
  const unsigned char *at = (const unsigned char *)tensor->data + index * cleave_dtype_size(tensor->dtype);
  *known = true;
  if (tensor->dtype == CLEAVE_DTYPE_F32) {
    float x = 0;
    memcpy(&x, at, sizeof(x));
    return (double)x;
  }
  if (tensor->dtype == CLEAVE_DTYPE_F64) {
    double x = 0;
    memcpy(&x, at, sizeof(x));
    return x;
  }
  if (tensor->dtype == CLEAVE_DTYPE_I64) {
    int64_t x = 0;
    memcpy(&x, at, sizeof(x));
    return (double)x;
  }
  if (tensor->dtype == CLEAVE_DTYPE_I32) {
    int32_t x = 0;
    memcpy(&x, at, sizeof(x));
    return (double)x;
  }
  *known = false;
  return 0;
}

bool onednn_scalar(const cleave_value_view_t *value, double *out) {
  bool known = false;
  if (!onednn_is_constant(value) || cleave_view_element_count(&value->tensor) != 1) {
    return false;
  }
  *out = element(&value->tensor, 0, &known);
  return known;
}

/* Length of a constant that is a short list, or -1. */
static int64_t list_length(const cleave_value_view_t *value) {
  if (!onednn_is_constant(value) || value->tensor.rank > 1) {
    return -1;
  }
  int64_t count = cleave_view_element_count(&value->tensor);
  return count <= CLEAVE_MAX_RANK ? count : -1;
}

bool onednn_integers(const cleave_value_view_t *value, int64_t out[CLEAVE_MAX_RANK], uint32_t *count) {
  int64_t length = list_length(value);
  if (length < 0 || (value->tensor.dtype != CLEAVE_DTYPE_I64 && value->tensor.dtype != CLEAVE_DTYPE_I32)) {
    return false;
  }
  *count = (uint32_t)length;
  if (value->tensor.dtype == CLEAVE_DTYPE_I64) {
    if (length > 0) {
      memcpy(out, value->tensor.data, (size_t)length * sizeof(int64_t));
    }
    return true;
  }
  for (int64_t k = 0; k < length; k++) {
    int32_t x = 0;
    memcpy(&x, (const unsigned char *)value->tensor.data + (size_t)k * sizeof(x), sizeof(x));
    out[k] = x;
  }
  return true;
}

bool onednn_numbers(const cleave_value_view_t *value, double out[CLEAVE_MAX_RANK], uint32_t *count) {
  int64_t length = list_length(value);
  if (length < 0 || (value->tensor.dtype != CLEAVE_DTYPE_F32 && value->tensor.dtype != CLEAVE_DTYPE_F64)) {
    return false;
  }
  *count = (uint32_t)length;
  for (int64_t k = 0; k < length; k++) {
    bool known = false;
    out[k] = element(&value->tensor, (size_t)k, &known);
  }
  return true;
}

bool onednn_is_short(const cleave_value_view_t *value) {
  return onednn_is_constant(value) && cpu_dtype_is_short_float(value->tensor.dtype);
}

void onednn_floats(const cleave_value_view_t *value, float *out, size_t count) {
  if (count > 0) {
    cpu_convert(value->tensor.dtype, value->tensor.data, CLEAVE_DTYPE_F32, out, (int64_t)count);
  }
}

cleave_status_t onednn_check_size(const cleave_value_view_t *value, cleave_message_t *message) {
  const int64_t limit = (int64_t)1 << 44;
  int64_t count = 1;
  if (value->tensor.rank < 0 || value->tensor.rank > CLEAVE_MAX_RANK) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "value '%s': expected a known rank up to %d",
                       value->name, CLEAVE_MAX_RANK);
  }
  for (int32_t d = 0; d < value->tensor.rank; d++) {
    int64_t dim = value->tensor.dims[d];
    if (dim < 0) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "value '%s': dimension %d is unknown",
                         value->name, (int)d);
    }
    if (dim == 0) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "value '%s': it has no elements", value->name);
    }
    if (dim > limit / count) {
      return kernel_fail(message, CLEAVE_ERROR_LIMIT, "value '%s': it has more than 2^44 elements",
                         value->name);
    }
    count *= dim;
  }
  return CLEAVE_OK;
}

int32_t onednn_axis(int64_t axis, int32_t rank) {
  if (axis < -(int64_t)rank || axis >= rank) {
    return -1;
  }
  return (int32_t)(axis < 0 ? axis + rank : axis);
}
