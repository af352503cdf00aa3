// SPDX-License-Identifier: Apache-2.0
// Concat and Split: strided copies of [outer, axis * inner] rows between one tensor and many.
#include "cpu/common/loop.h"

/* Copies `outer` rows of `row_bytes`, at steps of the given strides. */
// Wide: a strided copy, all of it numbers of the innermost loop.
static void copy_rows(const cpu_call_t *call, unsigned char *to, int64_t to_stride, const unsigned char *from,
                      int64_t from_stride, int64_t outer, int64_t row_bytes, size_t size) {
  cpu_loop_t loop = {.rank = 2, .operand_count = 2, .dims = {outer, row_bytes / (int64_t)size}};
  loop.strides[0][0] = to_stride;
  loop.strides[0][1] = (int64_t)size;
  loop.strides[1][0] = from_stride;
  loop.strides[1][1] = (int64_t)size;
  loop.bases[0] = to;
  loop.bases[1] = (unsigned char *)(uintptr_t)from;
  cpu_loop_copy(call, &loop, size);
}

typedef struct axis_state {
  int64_t axis;
  int64_t num_outputs; /* Split: 0 if it is not given */
} axis_state_t;

static cleave_status_t prepare_concat(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  ((axis_state_t *)state)->axis = cleave_view_int(prepare->node, "axis", 0);
  for (uint32_t k = 0; k < prepare->node->input_count; k++) {
    if (cpu_input_dtype(prepare, k) != cpu_output_dtype(prepare, 0)) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "input %u is %s, the output %s", (unsigned)k,
                         cpu_dtype_name(cpu_input_dtype(prepare, k)),
                         cpu_dtype_name(cpu_output_dtype(prepare, 0)));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t run_concat(const cpu_call_t *call, cleave_message_t *message) {
  const axis_state_t *state = call->state;
  const cpu_tensor_t *first = call->inputs[0];
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  int32_t axis = 0;
  CPU_TRY(cpu_find_axis(state->axis, first->rank, &axis, message));
  for (int32_t d = 0; d < first->rank; d++) {
    dims[d] = d == axis ? 0 : first->dims[d];
  }
  for (uint32_t k = 0; k < call->input_count; k++) {
    const cpu_tensor_t *input = call->inputs[k];
    for (int32_t d = 0; input->rank == first->rank && d < first->rank; d++) {
      if (d == axis) {
        dims[d] += input->dims[d];
      } else if (input->dims[d] != dims[d]) {
        return kernel_fail(message, CLEAVE_ERROR_SHAPE, "input %u has %lld at dim %d, expected %lld",
                           (unsigned)k, (long long)input->dims[d], (int)d, (long long)dims[d]);
      }
    }
    if (input->rank != first->rank) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "input %u has rank %d, expected %d", (unsigned)k,
                         (int)input->rank, (int)first->rank);
    }
  }
  CPU_TRY(cpu_output_shape(call, 0, first->rank, dims, message));
  size_t size = cleave_dtype_size(first->dtype);
  int64_t outer = cpu_count(axis, dims);
  int64_t inner = cpu_count(first->rank - axis - 1, dims + axis + 1) * (int64_t)size;
  unsigned char *to = call->outputs[0]->data;
  for (uint32_t k = 0; k < call->input_count; k++) {
    int64_t row = call->inputs[k]->dims[axis] * inner;
    copy_rows(call, to, dims[axis] * inner, call->inputs[k]->data, row, outer, row, size);
    to += row;
  }
  return CLEAVE_OK;
}

static cleave_status_t prepare_split(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)message;
  axis_state_t *self = state;
  self->axis = cleave_view_int(prepare->node, "axis", 0);
  self->num_outputs = cleave_view_int(prepare->node, "num_outputs", 0);
  return CLEAVE_OK;
}

/* Size of one part along the axis: as the input `split` says, else equal parts, the last one smaller. */
static int64_t part_size(const cpu_call_t *call, uint32_t part, int64_t dim, int64_t start) {
  const axis_state_t *state = call->state;
  const cpu_tensor_t *split = cpu_input(call, 1);
  if (split != NULL) {
    return part < split->count ? cpu_read_int(split, part) : 0;
  }
  int64_t parts = state->num_outputs > 0 ? state->num_outputs : (int64_t)call->output_count;
  int64_t whole = dim / parts + (dim % parts != 0);
  return dim - start < whole ? dim - start : whole;
}

static cleave_status_t run_split(const cpu_call_t *call, cleave_message_t *message) {
  const axis_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  int32_t axis = 0;
  CPU_TRY(cpu_find_axis(state->axis, data->rank, &axis, message));
  size_t size = cleave_dtype_size(data->dtype);
  int64_t dim = data->dims[axis];
  int64_t outer = cpu_count(axis, data->dims);
  int64_t inner = cpu_count(data->rank - axis - 1, data->dims + axis + 1) * (int64_t)size;
  int64_t start = 0;
  for (uint32_t k = 0; k < call->output_count; k++) {
    int64_t part = part_size(call, k, dim, start);
    if (part < 0 || part > dim - start) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "part %u has %lld element%s, %lld of %lld are left",
                         (unsigned)k, (long long)part, KERNEL_PLURAL(part), (long long)(dim - start),
                         (long long)dim);
    }
    cpu_tensor_t *output = call->outputs[k];
    if (output != NULL) {
      int64_t dims[CLEAVE_MAX_RANK] = {0};
      for (int32_t d = 0; d < data->rank; d++) {
        dims[d] = d == axis ? part : data->dims[d];
      }
      CPU_TRY(cpu_output_shape(call, k, data->rank, dims, message));
      copy_rows(call, output->data, part * inner, (const unsigned char *)data->data + start * inner,
                dim * inner, outer, part * inner, size);
    }
    start += part;
  }
  return start == dim
             ? CLEAVE_OK
             : kernel_fail(message, CLEAVE_ERROR_SHAPE, "the parts have %lld element%s, expected %lld",
                           (long long)start, KERNEL_PLURAL(start), (long long)dim);
}

const cpu_kernel_t cpu_kernels_concat[] = {
    CPU_KERNEL("Concat", 1, .state_size = sizeof(axis_state_t), .prepare = prepare_concat, .run = run_concat),
    CPU_KERNEL("Split", 1, .state_size = sizeof(axis_state_t), .prepare = prepare_split, .run = run_split),
    {0},
};
