// SPDX-License-Identifier: Apache-2.0
// Operators that keep every element where it is, or only tell shapes: Identity, After, Dropout (inference),
// Reshape, Flatten, Squeeze, Unsqueeze, Shape, Size.
#include <string.h>

#include "cpu/common/loop.h"

static int64_t byte_count(const cpu_tensor_t *tensor) {
  return tensor->count * (int64_t)cleave_dtype_size(tensor->dtype);
}

static cleave_status_t move(const cpu_call_t *call, int32_t rank, const int64_t *dims,
                            cleave_message_t *message) {
  const cpu_tensor_t *from = call->inputs[0];
  CPU_TRY(cpu_output_shape(call, 0, rank, dims, message));
  if (call->outputs[0]->dtype != from->dtype || call->outputs[0]->count != from->count) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%lld element%s of %s cannot become %lld of %s",
                       (long long)from->count, KERNEL_PLURAL(from->count), cpu_dtype_name(from->dtype),
                       (long long)call->outputs[0]->count, cpu_dtype_name(call->outputs[0]->dtype));
  }
  cpu_copy(call, call->outputs[0]->data, from->data, byte_count(from));
  return CLEAVE_OK;
}

static cleave_status_t run_identity(const cpu_call_t *call, cleave_message_t *message) {
  return move(call, call->inputs[0]->rank, call->inputs[0]->dims, message);
}

/* Training is refused when it is asked for: its random numbers are not reproducible. */
static cleave_status_t run_dropout(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *ratio = cpu_input(call, 1);
  const cpu_tensor_t *training = cpu_input(call, 2);
  if (training != NULL && training->count == 1 && cpu_read_int(training, 0) != 0 &&
      (ratio == NULL || ratio->count != 1 || cpu_read_float(ratio, 0) != 0)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                       "training_mode is true, only inference is supported");
  }
  cleave_status_t status = CLEAVE_OK;
  if (cpu_output(call, 0) != NULL) {
    status = move(call, call->inputs[0]->rank, call->inputs[0]->dims, message);
  }
  cpu_tensor_t *mask = cpu_output(call, 1);
  if (status == CLEAVE_OK && mask != NULL) {
    status = cpu_output_shape(call, 1, call->inputs[0]->rank, call->inputs[0]->dims, message);
    if (status == CLEAVE_OK && mask->count > 0) {
      memset(mask->data, 1, (size_t)mask->count);
    }
  }
  return status;
}

typedef struct reshape_state {
  bool allow_zero;
} reshape_state_t;

static cleave_status_t prepare_reshape(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)message;
  ((reshape_state_t *)state)->allow_zero = cleave_view_int(prepare->node, "allowzero", 0) != 0;
  return CLEAVE_OK;
}

static cleave_status_t run_reshape(const cpu_call_t *call, cleave_message_t *message) {
  const reshape_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *shape = call->inputs[1];
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  int64_t known = 1;
  int32_t inferred = -1;
  if (shape->rank != 1 || shape->count > CLEAVE_MAX_RANK) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "shape has %lld elements, at most %d",
                       (long long)shape->count, CLEAVE_MAX_RANK);
  }
  int32_t rank = (int32_t)shape->count;
  for (int32_t d = 0; d < rank; d++) {
    int64_t dim = cpu_read_int(shape, d);
    if (dim == 0 && !state->allow_zero) {
      if (d >= data->rank) {
        return kernel_fail(message, CLEAVE_ERROR_SHAPE, "shape copies dim %d of a tensor of rank %d", (int)d,
                           (int)data->rank);
      }
      dim = data->dims[d];
    }
    if (dim == -1 && inferred < 0) {
      inferred = d;
      continue;
    }
    if (dim < 0 || __builtin_mul_overflow(known, dim, &known)) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "shape has %lld at dim %d", (long long)dim, (int)d);
    }
    dims[d] = dim;
  }
  if (inferred >= 0) {
    dims[inferred] = known == 0 ? 0 : data->count / known;
    known *= dims[inferred];
  }
  if (known != data->count) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%lld element%s cannot take the shape given",
                       (long long)data->count, KERNEL_PLURAL(data->count));
  }
  return move(call, rank, dims, message);
}

typedef struct flatten_state {
  int64_t axis;
} flatten_state_t;

static cleave_status_t prepare_flatten(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)message;
  ((flatten_state_t *)state)->axis = cleave_view_int(prepare->node, "axis", 1);
  return CLEAVE_OK;
}

static cleave_status_t run_flatten(const cpu_call_t *call, cleave_message_t *message) {
  const flatten_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  int64_t axis = state->axis < 0 ? state->axis + data->rank : state->axis;
  if (axis < 0 || axis > data->rank) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis %lld is outside rank %d", (long long)state->axis,
                       (int)data->rank);
  }
  int64_t dims[2] = {cpu_count((int32_t)axis, data->dims),
                     cpu_count(data->rank - (int32_t)axis, data->dims + axis)};
  return move(call, 2, dims, message);
}

/* Marks the axes that an input names, for a tensor of this rank; without the input none. */
static cleave_status_t mark_axes(const cpu_tensor_t *axes, int32_t rank, bool *marks,
                                 cleave_message_t *message) {
  for (int64_t k = 0; axes != NULL && k < axes->count; k++) {
    int64_t value = cpu_read_int(axes, k);
    int32_t axis = 0;
    if (!cpu_axis(value, rank, &axis) || marks[axis]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis %lld is repeated or outside rank %d",
                         (long long)value, (int)rank);
    }
    marks[axis] = true;
  }
  return CLEAVE_OK;
}

static cleave_status_t run_squeeze(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *axes = cpu_input(call, 1);
  bool marks[CLEAVE_MAX_RANK] = {false};
  CPU_TRY(mark_axes(axes, data->rank, marks, message));
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  int32_t rank = 0;
  for (int32_t d = 0; d < data->rank; d++) {
    bool dropped = axes == NULL ? data->dims[d] == 1 : marks[d];
    if (dropped && data->dims[d] != 1) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "dim %d is %lld, only 1 can be squeezed", (int)d,
                         (long long)data->dims[d]);
    }
    if (!dropped) {
      dims[rank++] = data->dims[d];
    }
  }
  return move(call, rank, dims, message);
}

static cleave_status_t run_unsqueeze(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *axes = call->inputs[1];
  bool marks[CLEAVE_MAX_RANK] = {false};
  if (axes->count > CLEAVE_MAX_RANK - data->rank) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "the result would have more than %d dims",
                       CLEAVE_MAX_RANK);
  }
  int32_t rank = data->rank + (int32_t)axes->count;
  CPU_TRY(mark_axes(axes, rank, marks, message));
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  int32_t next = 0;
  for (int32_t d = 0; d < rank; d++) {
    dims[d] = marks[d] ? 1 : data->dims[next++];
  }
  return move(call, rank, dims, message);
}

typedef struct shape_state {
  int64_t start;
  int64_t end;
} shape_state_t;

static cleave_status_t prepare_shape(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  shape_state_t *self = state;
  self->start = cleave_view_int(prepare->node, "start", 0);
  self->end = cleave_view_int(prepare->node, "end", INT64_MAX);
  if (cpu_output_dtype(prepare, 0) != CLEAVE_DTYPE_I64) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "the output is not int64");
  }
  return CLEAVE_OK;
}

static int64_t clamp_index(int64_t index, int32_t rank) {
  int64_t from_front = index < 0 ? index + rank : index;
  return from_front < 0 ? 0 : from_front > rank ? rank : from_front;
}

static cleave_status_t run_shape(const cpu_call_t *call, cleave_message_t *message) {
  const shape_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  int64_t start = clamp_index(state->start, data->rank);
  int64_t end = clamp_index(state->end, data->rank);
  int64_t count = end > start ? end - start : 0;
  cleave_status_t status = cpu_output_shape(call, 0, 1, &count, message);
  if (status == CLEAVE_OK && count > 0) {
    memcpy(call->outputs[0]->data, data->dims + start, (size_t)count * sizeof data->dims[0]);
  }
  return status;
}

static cleave_status_t run_size(const cpu_call_t *call, cleave_message_t *message) {
  cleave_status_t status = cpu_output_shape(call, 0, 0, NULL, message);
  if (status == CLEAVE_OK) {
    *(int64_t *)call->outputs[0]->data = call->inputs[0]->count;
  }
  return status;
}

const cpu_kernel_t cpu_kernels_shape[] = {
    CPU_KERNEL("Identity", 1, .run = run_identity, .inplace = 1),
    CPU_KERNEL("After", 2, .domain = "cleave", .run = run_identity, .inplace = 1),
    CPU_KERNEL("Dropout", 1, .run = run_dropout, .inplace = 1),
    CPU_KERNEL("Reshape", 2, .state_size = sizeof(reshape_state_t), .prepare = prepare_reshape,
               .run = run_reshape, .inplace = 1),
    CPU_KERNEL("Flatten", 1, .state_size = sizeof(flatten_state_t), .prepare = prepare_flatten,
               .run = run_flatten, .inplace = 1),
    CPU_KERNEL("Squeeze", 1, .run = run_squeeze, .inplace = 1),
    CPU_KERNEL("Unsqueeze", 2, .run = run_unsqueeze, .inplace = 1),
    CPU_KERNEL("Shape", 1, .state_size = sizeof(shape_state_t), .prepare = prepare_shape, .run = run_shape),
    CPU_KERNEL("Size", 1, .state_size = sizeof(shape_state_t), .prepare = prepare_shape, .run = run_size),
    {0},
};
