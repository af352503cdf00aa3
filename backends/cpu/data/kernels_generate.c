// SPDX-License-Identifier: Apache-2.0
// Tensors made from a few numbers: ConstantOfShape, Range, EyeLike, OneHot; and Trilu, which keeps a
// triangle.
#include <math.h>
#include <string.h>

#include "cpu/common/index.h"
#include "cpu/common/loop.h"
#include "kernels/convert.h"

/* ---- ConstantOfShape */

typedef struct constant_state {
  uint64_t bits; /* of one element */
} constant_state_t;

static cleave_status_t prepare_constant(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  constant_state_t *self = state;
  const cleave_attribute_view_t *value = cleave_view_attribute(prepare->node, "value");
  cleave_dtype_t dtype = cpu_output_dtype(prepare, 0);
  if (!cpu_dtype_is_plain(dtype)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "dtype %s is not supported", cpu_dtype_name(dtype));
  }
  if (value == NULL || value->tensor == NULL) {
    return CLEAVE_OK;
  }
  if (value->tensor->dtype != dtype || cleave_view_element_count(value->tensor) != 1 ||
      value->tensor->data == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "value is not one element of %s",
                       cpu_dtype_name(dtype));
  }
  memcpy(&self->bits, value->tensor->data, cleave_dtype_size(dtype));
  return CLEAVE_OK;
}

static cleave_status_t run_constant(const cpu_call_t *call, cleave_message_t *message) {
  const constant_state_t *state = call->state;
  const cpu_tensor_t *shape = call->inputs[0];
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  if (shape->rank > 1 || shape->count > CLEAVE_MAX_RANK) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "shape has %lld elements, at most %d",
                       (long long)shape->count, CLEAVE_MAX_RANK);
  }
  for (int64_t k = 0; k < shape->count; k++) {
    dims[k] = cpu_read_int(shape, k);
    if (dims[k] < 0) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "shape has %lld at dim %lld", (long long)dims[k],
                         (long long)k);
    }
  }
  cleave_status_t status = cpu_output_shape(call, 0, (int32_t)shape->count, dims, message);
  if (status == CLEAVE_OK) {
    const cpu_tensor_t *output = call->outputs[0];
    cpu_fill(call, output->data, &state->bits, cleave_dtype_size(output->dtype), output->count);
  }
  return status;
}

/* ---- Range */

static cleave_status_t prepare_range(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)state;
  cleave_dtype_t dtype = cpu_output_dtype(prepare, 0);
  bool is_number = cpu_dtype_is_float(dtype) || cpu_dtype_is_integer(dtype);
  for (uint32_t k = 0; k < 3; k++) {
    is_number = is_number && cpu_input_dtype(prepare, k) == dtype;
  }
  return is_number
             ? CLEAVE_OK
             : kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                           "inputs and output differ in dtype, or %s is not a number", cpu_dtype_name(dtype));
}

static cleave_status_t run_range(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *start = call->inputs[0];
  const cpu_tensor_t *limit = call->inputs[1];
  const cpu_tensor_t *delta = call->inputs[2];
  if (start->count != 1 || limit->count != 1 || delta->count != 1) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "start, limit and delta must be scalars");
  }
  bool is_float = cpu_dtype_is_float(start->dtype);
  int64_t count = 0;
  if (is_float) {
    double steps = ceil((cpu_read_float(limit, 0) - cpu_read_float(start, 0)) / cpu_read_float(delta, 0));
    if (!isfinite(steps) || steps > 0x1p56) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "the range has no finite number of steps");
    }
    count = steps > 0 ? (int64_t)steps : 0;
  } else {
    int64_t from = cpu_read_int(start, 0);
    int64_t to = cpu_read_int(limit, 0);
    int64_t step = cpu_read_int(delta, 0);
    int64_t distance = 0;
    if (step == 0 || __builtin_sub_overflow(to, from, &distance) || distance == INT64_MIN) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "delta is 0, or the range is too long");
    }
    count = step > 0 && distance > 0   ? (distance - 1) / step + 1
            : step < 0 && distance < 0 ? (distance + 1) / step + 1
                                       : 0;
  }
  CPU_TRY(cpu_output_shape(call, 0, 1, &count, message));
  cpu_tensor_t *output = call->outputs[0];
  size_t size = cleave_dtype_size(output->dtype);
  for (int64_t k = 0; k < count; k++) {
    if (is_float) {
      cpu_write_float(output, k, cpu_read_float(start, 0) + (double)k * cpu_read_float(delta, 0));
    } else {
      int64_t value =
          (int64_t)((uint64_t)cpu_read_int(start, 0) + (uint64_t)k * (uint64_t)cpu_read_int(delta, 0));
      cpu_convert(CLEAVE_DTYPE_I64, &value, output->dtype, (unsigned char *)output->data + (size_t)k * size,
                  1);
    }
  }
  return CLEAVE_OK;
}

/* ---- EyeLike */

typedef struct eye_state {
  int64_t k;
} eye_state_t;

static cleave_status_t prepare_eye(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  ((eye_state_t *)state)->k = cleave_view_int(prepare->node, "k", 0);
  cleave_dtype_t dtype = cpu_output_dtype(prepare, 0);
  return cpu_dtype_is_plain(dtype) ? CLEAVE_OK
                                   : kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                                                 "dtype %s is not supported", cpu_dtype_name(dtype));
}

static cleave_status_t run_eye(const cpu_call_t *call, cleave_message_t *message) {
  const eye_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  if (data->rank != 2) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "rank is %d, expected 2", (int)data->rank);
  }
  CPU_TRY(cpu_output_shape(call, 0, 2, data->dims, message));
  cpu_tensor_t *output = call->outputs[0];
  static const uint64_t zero = 0;
  cpu_fill(call, output->data, &zero, cleave_dtype_size(output->dtype), output->count);
  for (int64_t row = 0; row < data->dims[0]; row++) {
    if (state->k < data->dims[1] && row + state->k >= 0 && state->k > -data->dims[0] &&
        row + state->k < data->dims[1]) {
      cpu_write_float(output, row * data->dims[1] + row + state->k, 1.0);
    }
  }
  return CLEAVE_OK;
}

/* ---- OneHot */

typedef struct one_hot_state {
  int64_t axis;
} one_hot_state_t;

static cleave_status_t prepare_one_hot(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  ((one_hot_state_t *)state)->axis = cleave_view_int(prepare->node, "axis", -1);
  if (!cpu_dtype_is_plain(cpu_input_dtype(prepare, 0)) || !cpu_dtype_is_plain(cpu_input_dtype(prepare, 1)) ||
      cpu_input_dtype(prepare, 2) != cpu_output_dtype(prepare, 0)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "values of %s to %s are not supported",
                       cpu_dtype_name(cpu_input_dtype(prepare, 2)),
                       cpu_dtype_name(cpu_output_dtype(prepare, 0)));
  }
  return CLEAVE_OK;
}

static cleave_status_t run_one_hot(const cpu_call_t *call, cleave_message_t *message) {
  const one_hot_state_t *state = call->state;
  const cpu_tensor_t *indices = call->inputs[0];
  const cpu_tensor_t *depth_input = call->inputs[1];
  const cpu_tensor_t *values = call->inputs[2];
  int32_t axis = 0;
  if (indices->rank == CLEAVE_MAX_RANK || !cpu_axis(state->axis, indices->rank + 1, &axis) ||
      depth_input->count != 1 || values->count != 2 || cpu_read_int(depth_input, 0) < 0) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis %lld, depth and the two values do not fit rank %d",
                       (long long)state->axis, (int)indices->rank);
  }
  int64_t depth = cpu_read_int(depth_input, 0);
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  for (int32_t d = 0; d <= indices->rank; d++) {
    dims[d] = d < axis ? indices->dims[d] : d == axis ? depth : indices->dims[d - 1];
  }
  cleave_status_t status = cpu_output_shape(call, 0, indices->rank + 1, dims, message);
  if (status != CLEAVE_OK || call->outputs[0]->count == 0) {
    return status;
  }
  const cpu_tensor_t *output = call->outputs[0];
  size_t size = cleave_dtype_size(output->dtype);
  const unsigned char *on = (const unsigned char *)values->data + size;
  int64_t inner = cpu_count(indices->rank - axis, indices->dims + axis);
  cpu_fill(call, output->data, values->data, size, output->count);
  for (int64_t k = 0; k < indices->count; k++) {
    int64_t index = cpu_read_int(indices, k);
    if (index < -depth || index >= depth) {
      continue;
    }
    index = cpu_wrap_index(index, depth);
    int64_t place = (k / inner * depth + index) * inner + k % inner;
    memcpy((unsigned char *)output->data + (size_t)place * size, on, size);
  }
  return CLEAVE_OK;
}

/* ---- Trilu */

typedef struct trilu_state {
  bool upper;
} trilu_state_t;

static cleave_status_t prepare_trilu(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  ((trilu_state_t *)state)->upper = cleave_view_int(prepare->node, "upper", 1) != 0;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  return cpu_dtype_is_plain(dtype) ? CLEAVE_OK
                                   : kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                                                 "dtype %s is not supported", cpu_dtype_name(dtype));
}

typedef struct trilu_work {
  unsigned char *to;
  const unsigned char *from;
  int64_t rows;
  int64_t columns;
  int64_t k;
  int64_t size;
  bool upper;
} trilu_work_t;

/* Row r keeps columns from r + k on (upper), or up to r + k (lower). */
static void trilu_units(void *context, int64_t begin, int64_t end) {
  const trilu_work_t *work = context;
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t row = unit % work->rows;
    int64_t split = row + work->k + (work->upper ? 0 : 1);
    split = split < 0 ? 0 : split > work->columns ? work->columns : split;
    unsigned char *to = work->to + unit * work->columns * work->size;
    const unsigned char *from = work->from + unit * work->columns * work->size;
    size_t head = (size_t)(split * work->size);
    size_t tail = (size_t)((work->columns - split) * work->size);
    if (work->upper) {
      memset(to, 0, head);
      memmove(to + head, from + head, tail);
    } else {
      memmove(to, from, head);
      memset(to + head, 0, tail);
    }
  }
}

static cleave_status_t run_trilu(const cpu_call_t *call, cleave_message_t *message) {
  const trilu_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *k = cpu_input(call, 1);
  if (data->rank < 2 || (k != NULL && k->count != 1)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "rank is %d, expected at least 2, and k one number",
                       (int)data->rank);
  }
  cleave_status_t status = cpu_output_shape(call, 0, data->rank, data->dims, message);
  if (status != CLEAVE_OK || data->count == 0) {
    return status;
  }
  trilu_work_t work = {.to = call->outputs[0]->data,
                       .from = data->data,
                       .rows = data->dims[data->rank - 2],
                       .columns = data->dims[data->rank - 1],
                       .size = (int64_t)cleave_dtype_size(data->dtype),
                       .upper = state->upper};
  int64_t diagonal = k == NULL ? 0 : cpu_read_int(k, 0);
  work.k = diagonal < -work.rows - 1     ? -work.rows - 1
           : diagonal > work.columns + 1 ? work.columns + 1
                                         : diagonal;
  cpu_parallel(call, data->count / work.columns, 2 * CPU_WORK_GRAIN / (work.columns * work.size) + 1,
               trilu_units, &work);
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_generate[] = {
    CPU_KERNEL("ConstantOfShape", 1, .state_size = sizeof(constant_state_t), .prepare = prepare_constant,
               .run = run_constant),
    CPU_KERNEL("Range", 3, .prepare = prepare_range, .run = run_range),
    CPU_KERNEL("EyeLike", 1, .state_size = sizeof(eye_state_t), .prepare = prepare_eye, .run = run_eye),
    CPU_KERNEL("OneHot", 3, .state_size = sizeof(one_hot_state_t), .prepare = prepare_one_hot,
               .run = run_one_hot),
    CPU_KERNEL("Trilu", 1, .state_size = sizeof(trilu_state_t), .prepare = prepare_trilu, .run = run_trilu,
               .inplace = 1),
    {0},
};
