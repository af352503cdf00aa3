// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements and GatherND. Indices are checked before anything is written, so that the copies can
// run on several threads without a way to fail.
#include <string.h>

#include "cpu/common/index.h"
#include "cpu/common/loop.h"
#include "kernels/convert.h"

typedef struct gather_state {
  int64_t axis;
  int64_t batch_dims;
} gather_state_t;

static cleave_status_t prepare_gather(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  gather_state_t *self = state;
  self->axis = cleave_view_int(prepare->node, "axis", 0);
  self->batch_dims = cleave_view_int(prepare->node, "batch_dims", 0);
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  if (dtype != cpu_output_dtype(prepare, 0) || !cpu_dtype_is_integer(cpu_input_dtype(prepare, 1))) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "from %s by %s to %s is not supported",
                       cpu_dtype_name(dtype), cpu_dtype_name(cpu_input_dtype(prepare, 1)),
                       cpu_dtype_name(cpu_output_dtype(prepare, 0)));
  }
  return CLEAVE_OK;
}

/* Blocks of `block_bytes`: block k of the output is the one that index k names, within its outer group. */
typedef struct block_work {
  unsigned char *to;
  const unsigned char *from;
  const cpu_tensor_t *indices;
  int64_t index_count;
  int64_t dim;
  int64_t block_bytes;
} block_work_t;

static void copy_block(unsigned char *to, const unsigned char *from, int64_t bytes) {
  switch (bytes) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, (size_t)bytes); break;
  }
}

static void gather_units(void *context, int64_t begin, int64_t end) {
  const block_work_t *work = context;
  int64_t outer = begin / work->index_count;
  int64_t k = begin % work->index_count;
  for (int64_t unit = begin; unit < end; unit++) {
    int64_t index = cpu_wrap_index(cpu_read_index(work->indices, k), work->dim);
    copy_block(work->to + unit * work->block_bytes,
               work->from + (outer * work->dim + index) * work->block_bytes, work->block_bytes);
    if (++k == work->index_count) {
      k = 0;
      outer++;
    }
  }
}

static cleave_status_t run_gather(const cpu_call_t *call, cleave_message_t *message) {
  const gather_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *indices = call->inputs[1];
  int32_t axis = 0;
  if (!cpu_axis(state->axis, data->rank, &axis) || data->rank - 1 + indices->rank > CLEAVE_MAX_RANK) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis %lld of rank %d with indices of rank %d do not fit",
                       (long long)state->axis, (int)data->rank, (int)indices->rank);
  }
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  int32_t rank = 0;
  for (int32_t d = 0; d < data->rank; d++) {
    for (int32_t n = 0; d == axis && n < indices->rank; n++) {
      dims[rank++] = indices->dims[n];
    }
    if (d != axis) {
      dims[rank++] = data->dims[d];
    }
  }
  cleave_status_t status = cpu_output_shape(call, 0, rank, dims, message);
  if (status == CLEAVE_OK) {
    status = cpu_check_indices(indices, data->dims[axis], message);
  }
  if (status != CLEAVE_OK || call->outputs[0]->count == 0) {
    return status;
  }
  block_work_t work = {.to = call->outputs[0]->data,
                       .from = data->data,
                       .indices = indices,
                       .index_count = indices->count,
                       .dim = data->dims[axis]};
  work.block_bytes =
      cpu_count(data->rank - axis - 1, data->dims + axis + 1) * (int64_t)cleave_dtype_size(data->dtype);
  cpu_parallel(call, cpu_count(axis, data->dims) * indices->count,
               2 * CPU_WORK_GRAIN / (work.block_bytes + 16) + 1, gather_units, &work);
  return CLEAVE_OK;
}

typedef struct element_work {
  const cpu_tensor_t *from;
  const cpu_tensor_t *indices;
  cpu_tensor_t *to;
  int32_t axis;
  int64_t strides[CLEAVE_MAX_RANK]; /* bytes of the input */
  int64_t size;
} element_work_t;

static void gather_elements_units(void *context, int64_t begin, int64_t end) {
  const element_work_t *work = context;
  int64_t index[CLEAVE_MAX_RANK] = {0};
  cpu_decode_index(begin, work->indices->rank, work->indices->dims, index);
  for (int64_t k = begin; k < end; k++) {
    int64_t offset = 0;
    for (int32_t d = 0; d < work->indices->rank; d++) {
      int64_t place =
          d == work->axis ? cpu_wrap_index(cpu_read_index(work->indices, k), work->from->dims[d]) : index[d];
      offset += place * work->strides[d];
    }
    copy_block((unsigned char *)work->to->data + k * work->size,
               (const unsigned char *)work->from->data + offset, work->size);
    cpu_next_index(work->indices->rank, work->indices->dims, index);
  }
}

static cleave_status_t run_gather_elements(const cpu_call_t *call, cleave_message_t *message) {
  const gather_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *indices = call->inputs[1];
  element_work_t work = {.from = data, .indices = indices, .to = call->outputs[0]};
  if (!cpu_axis(state->axis, data->rank, &work.axis) || indices->rank != data->rank) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis %lld of rank %d with indices of rank %d do not fit",
                       (long long)state->axis, (int)data->rank, (int)indices->rank);
  }
  for (int32_t d = 0; d < data->rank; d++) {
    if (d != work.axis && indices->dims[d] > data->dims[d]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "indices have %lld at dim %d, at most %lld",
                         (long long)indices->dims[d], (int)d, (long long)data->dims[d]);
    }
  }
  cleave_status_t status = cpu_output_shape(call, 0, indices->rank, indices->dims, message);
  if (status == CLEAVE_OK) {
    status = cpu_check_indices(indices, data->dims[work.axis], message);
  }
  if (status == CLEAVE_OK) {
    work.size = (int64_t)cleave_dtype_size(data->dtype);
    cpu_dense_strides(data->rank, data->dims, (size_t)work.size, work.strides);
    cpu_parallel(call, indices->count, CPU_WORK_GRAIN / 8, gather_elements_units, &work);
  }
  return status;
}

typedef struct nd_work {
  const cpu_tensor_t *indices;
  unsigned char *to;
  const unsigned char *from;
  const int64_t *dims; /* that a tuple of indices names */
  int64_t strides[CLEAVE_MAX_RANK];
  int64_t depth; /* of a tuple */
  int64_t tuples_per_batch;
  int64_t batch_bytes; /* of the input */
  int64_t block_bytes;
} nd_work_t;

static void gather_nd_units(void *context, int64_t begin, int64_t end) {
  const nd_work_t *work = context;
  for (int64_t k = begin; k < end; k++) {
    int64_t offset = k / work->tuples_per_batch * work->batch_bytes;
    for (int64_t d = 0; d < work->depth; d++) {
      offset += cpu_wrap_index(cpu_read_index(work->indices, k * work->depth + d), work->dims[d]) *
                work->strides[d];
    }
    copy_block(work->to + k * work->block_bytes, work->from + offset, work->block_bytes);
  }
}

static cleave_status_t run_gather_nd(const cpu_call_t *call, cleave_message_t *message) {
  const gather_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *indices = call->inputs[1];
  int64_t batch = state->batch_dims;
  int64_t depth = indices->rank < 1 ? 0 : indices->dims[indices->rank - 1];
  if (indices->rank < 1 || data->rank < 1 || batch < 0 || batch >= indices->rank || batch > data->rank ||
      depth < 1 || depth > data->rank - batch) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                       "tuples of %lld indices do not fit rank %d with %lld batch dim%s", (long long)depth,
                       (int)data->rank, (long long)batch, KERNEL_PLURAL(batch));
  }
  int64_t dims[2 * CLEAVE_MAX_RANK] = {0};
  int32_t rank = 0;
  for (int32_t d = 0; d < indices->rank - 1; d++) {
    if (d < batch && indices->dims[d] != data->dims[d]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "batch dim %d is %lld in the indices, %lld in the data",
                         (int)d, (long long)indices->dims[d], (long long)data->dims[d]);
    }
    dims[rank++] = indices->dims[d];
  }
  int32_t first = (int32_t)(batch + depth);
  for (int32_t d = first; d < data->rank; d++) {
    dims[rank++] = data->dims[d];
  }
  if (rank > CLEAVE_MAX_RANK) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "the result would have %d dims", (int)rank);
  }
  cleave_status_t status = cpu_output_shape(call, 0, rank, dims, message);
  nd_work_t work = {
      .indices = indices, .to = call->outputs[0]->data, .from = data->data, .dims = data->dims + batch};
  if (status == CLEAVE_OK) {
    status = cpu_check_tuples(indices, depth, work.dims, message);
  }
  if (status != CLEAVE_OK || call->outputs[0]->count == 0) {
    return status;
  }
  work.depth = depth;
  work.block_bytes =
      cpu_count(data->rank - first, data->dims + first) * (int64_t)cleave_dtype_size(data->dtype);
  cpu_dense_strides((int32_t)depth, work.dims, (size_t)work.block_bytes, work.strides);
  work.batch_bytes = cpu_count((int32_t)depth, work.dims) * work.block_bytes;
  work.tuples_per_batch = cpu_count(indices->rank - 1 - (int32_t)batch, indices->dims + batch);
  cpu_parallel(call, indices->count / depth, 2 * CPU_WORK_GRAIN / (work.block_bytes + 16) + 1,
               gather_nd_units, &work);
  return CLEAVE_OK;
}

#define KERNEL(name, runner)                                                                    \
  {                                                                                             \
    .op = name, .state_size = sizeof(gather_state_t), .prepare = prepare_gather, .run = runner, \
    .required_inputs = 2, .unaligned = 1                                                        \
  }

const cpu_kernel_t cpu_kernels_gather[] = {
    KERNEL("Gather", run_gather),
    KERNEL("GatherElements", run_gather_elements),
    KERNEL("GatherND", run_gather_nd),
    {0},
};
