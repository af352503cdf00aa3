// SPDX-License-Identifier: Apache-2.0
// Slice, Expand and Tile: one strided copy each.
#include "cpu/common/loop.h"

/* One axis of a slice: where it starts, and how far apart its `count` elements are. */
typedef struct slice {
  int64_t start;
  int64_t step;
  int64_t count;
} slice_t;

static int64_t clamp(int64_t value, int64_t low, int64_t high) {
  return value < low ? low : value > high ? high : value;
}

static slice_t make_slice(int64_t start, int64_t end, int64_t step, int64_t dim) {
  int64_t low = step > 0 ? 0 : -1;
  int64_t high = step > 0 ? dim : dim - 1;
  start = clamp(start < 0 ? start + dim : start, 0, high);
  end = clamp(end < 0 ? end + dim : end, low, high);
  slice_t slice = {.start = start, .step = step};
  if (step > 0 && end > start) {
    slice.count = (end - start - 1) / step + 1;
  } else if (step < 0 && start > end && dim > 0) {
    slice.count = (start - end - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1;
  }
  return slice;
}

static cleave_status_t read_slices(const cpu_call_t *call, slice_t *slices, cleave_message_t *message) {
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *starts = call->inputs[1];
  const cpu_tensor_t *ends = call->inputs[2];
  const cpu_tensor_t *axes = cpu_input(call, 3);
  const cpu_tensor_t *steps = cpu_input(call, 4);
  int64_t count = starts->count;
  if (ends->count != count || (axes != NULL && axes->count != count) ||
      (steps != NULL && steps->count != count) || count > data->rank) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                       "starts, ends, axes and steps differ in length or exceed rank %d", (int)data->rank);
  }
  for (int32_t d = 0; d < data->rank; d++) {
    slices[d] = (slice_t){.start = 0, .step = 1, .count = data->dims[d]};
  }
  for (int64_t k = 0; k < count; k++) {
    int64_t named = axes == NULL ? k : cpu_read_int(axes, k);
    int64_t step = steps == NULL ? 1 : cpu_read_int(steps, k);
    int32_t axis = 0;
    if (!cpu_axis(named, data->rank, &axis) || step == 0) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis %lld with step %lld does not fit rank %d",
                         (long long)named, (long long)step, (int)data->rank);
    }
    slices[axis] = make_slice(cpu_read_int(starts, k), cpu_read_int(ends, k), step, data->dims[axis]);
  }
  return CLEAVE_OK;
}

static cleave_status_t run_slice(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *data = call->inputs[0];
  slice_t slices[CLEAVE_MAX_RANK];
  cleave_status_t status = read_slices(call, slices, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  size_t size = cleave_dtype_size(data->dtype);
  int64_t strides[CLEAVE_MAX_RANK] = {0};
  cpu_dense_strides(data->rank, data->dims, size, strides);
  cpu_loop_t loop = {.rank = data->rank, .operand_count = 2};
  int64_t offset = 0;
  int64_t count = 1;
  for (int32_t d = 0; d < data->rank; d++) {
    loop.dims[d] = slices[d].count;
    loop.strides[1][d] = slices[d].count > 1 ? slices[d].step * strides[d] : 0;
    offset += slices[d].count > 0 ? slices[d].start * strides[d] : 0;
    count *= slices[d].count;
  }
  status = cpu_output_shape(call, 0, data->rank, loop.dims, message);
  if (status != CLEAVE_OK || count == 0) {
    return status;
  }
  cpu_dense_strides(data->rank, loop.dims, size, loop.strides[0]);
  loop.bases[0] = call->outputs[0]->data;
  loop.bases[1] = (unsigned char *)data->data + offset;
  cpu_loop_copy(call, &loop, size);
  return CLEAVE_OK;
}

static cleave_status_t run_expand(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *shape = call->inputs[1];
  if (shape->rank != 1 || shape->count > CLEAVE_MAX_RANK) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "shape has %lld elements, at most %d",
                       (long long)shape->count, CLEAVE_MAX_RANK);
  }
  cpu_tensor_t wanted = {.dtype = data->dtype, .rank = (int32_t)shape->count};
  for (int32_t d = 0; d < wanted.rank; d++) {
    wanted.dims[d] = cpu_read_int(shape, d);
    if (wanted.dims[d] < 0) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "shape has %lld at dim %d", (long long)wanted.dims[d],
                         (int)d);
    }
  }
  const cpu_tensor_t *both[2] = {data, &wanted};
  int32_t rank = 0;
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  cleave_status_t status = cpu_broadcast_shape(both, 2, &rank, dims, message);
  if (status == CLEAVE_OK) {
    status = cpu_output_shape(call, 0, rank, dims, message);
  }
  if (status == CLEAVE_OK) {
    cpu_loop_t loop;
    cpu_loop_broadcast(&loop, call->outputs[0], call->inputs, 1);
    cpu_loop_copy(call, &loop, cleave_dtype_size(data->dtype));
  }
  return status;
}

static cleave_status_t run_tile(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *repeats = call->inputs[1];
  if (repeats->count != data->rank) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "repeats has %lld element%s for rank %d",
                       (long long)repeats->count, KERNEL_PLURAL(repeats->count), (int)data->rank);
  }
  size_t size = cleave_dtype_size(data->dtype);
  int64_t strides[CLEAVE_MAX_RANK] = {0};
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  cpu_dense_strides(data->rank, data->dims, size, strides);
  cpu_loop_t loop = {.rank = 2 * data->rank, .operand_count = 2};
  for (int32_t d = 0; d < data->rank; d++) {
    int64_t repeat = cpu_read_int(repeats, d);
    if (repeat < 0 || __builtin_mul_overflow(repeat, data->dims[d], &dims[d])) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "repeats has %lld at dim %d, expected 0 or more",
                         (long long)repeat, (int)d);
    }
    loop.dims[2 * d] = repeat;
    loop.dims[2 * d + 1] = data->dims[d];
    loop.strides[1][2 * d + 1] = strides[d];
  }
  cleave_status_t status = cpu_output_shape(call, 0, data->rank, dims, message);
  if (status != CLEAVE_OK || call->outputs[0]->count == 0) {
    return status;
  }
  cpu_dense_strides(loop.rank, loop.dims, size, loop.strides[0]);
  loop.bases[0] = call->outputs[0]->data;
  loop.bases[1] = data->data;
  cpu_loop_copy(call, &loop, size);
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_slice[] = {
    CPU_KERNEL("Slice", 3, .run = run_slice),
    CPU_KERNEL("Expand", 2, .run = run_expand),
    CPU_KERNEL("Tile", 2, .run = run_tile),
    {0},
};
