// SPDX-License-Identifier: Apache-2.0
// Transpose, DepthToSpace and SpaceToDepth: one strided copy each, with the strides of the source permuted.
#include <string.h>

#include "cpu/common/loop.h"

typedef struct transpose_state {
  const int64_t *perm;
  uint32_t count; /* 0: reverse the dims */
} transpose_state_t;

static cleave_status_t prepare_transpose(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  transpose_state_t *self = state;
  cleave_status_t status = cpu_prepare_ints(prepare, "perm", &self->perm, &self->count);
  uint32_t seen = 0;
  for (uint32_t k = 0; status == CLEAVE_OK && k < self->count; k++) {
    int64_t axis = self->perm[k];
    if (axis < 0 || axis >= self->count || self->count > CLEAVE_MAX_RANK || (seen >> axis & 1u) != 0) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "perm is not a permutation");
    }
    seen |= 1u << axis;
  }
  return status;
}

static cleave_status_t run_transpose(const cpu_call_t *call, cleave_message_t *message) {
  const transpose_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  int32_t rank = data->rank;
  if (state->count != 0 && (int32_t)state->count != rank) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "perm has %u entr%s for a tensor of rank %d",
                       (unsigned)state->count, KERNEL_BY_COUNT(state->count, "y", "ies"), (int)rank);
  }
  size_t size = cleave_dtype_size(data->dtype);
  int64_t strides[CLEAVE_MAX_RANK] = {0};
  cpu_dense_strides(rank, data->dims, size, strides);
  cpu_loop_t loop = {.rank = rank, .operand_count = 2};
  for (int32_t d = 0; d < rank; d++) {
    int64_t from = state->count == 0 ? rank - 1 - d : state->perm[d];
    loop.dims[d] = data->dims[from];
    loop.strides[1][d] = strides[from];
  }
  CPU_TRY(cpu_output_shape(call, 0, rank, loop.dims, message));
  cpu_dense_strides(rank, loop.dims, size, loop.strides[0]);
  loop.bases[0] = call->outputs[0]->data;
  loop.bases[1] = data->data;
  cpu_loop_copy(call, &loop, size);
  return CLEAVE_OK;
}

typedef struct space_state {
  int64_t block;
  bool column_major; /* DepthToSpace: depth is split as channel, block, block */
} space_state_t;

static cleave_status_t prepare_space(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  space_state_t *self = state;
  self->block = cleave_view_int(prepare->node, "blocksize", 0);
  const char *mode = cleave_view_string(prepare->node, "mode", "DCR");
  self->column_major = strcmp(mode, "CRD") == 0;
  if (!self->column_major && strcmp(mode, "DCR") != 0) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "mode is '%s', expected DCR or CRD", mode);
  }
  if (self->block < 1 || self->block > INT16_MAX) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "blocksize is %lld, expected at least 1",
                       (long long)self->block);
  }
  return CLEAVE_OK;
}

/* Copies a tensor whose dims are seen as `split`, permuted by `perm`, into output 0. */
static void copy_permuted(const cpu_call_t *call, const int64_t *split, const int32_t *perm) {
  size_t size = cleave_dtype_size(call->inputs[0]->dtype);
  int64_t strides[6];
  cpu_dense_strides(6, split, size, strides);
  cpu_loop_t loop = {.rank = 6, .operand_count = 2};
  for (int32_t d = 0; d < 6; d++) {
    loop.dims[d] = split[perm[d]];
    loop.strides[1][d] = strides[perm[d]];
  }
  cpu_dense_strides(6, loop.dims, size, loop.strides[0]);
  loop.bases[0] = call->outputs[0]->data;
  loop.bases[1] = call->inputs[0]->data;
  cpu_loop_copy(call, &loop, size);
}

static cleave_status_t run_depth_to_space(const cpu_call_t *call, cleave_message_t *message) {
  const space_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  int64_t block = state->block;
  if (data->rank != 4 || data->dims[1] % (block * block) != 0) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "expected 4 dims with channels divisible by %lld",
                       (long long)(block * block));
  }
  int64_t n = data->dims[0];
  int64_t c = data->dims[1] / (block * block);
  int64_t h = data->dims[2];
  int64_t w = data->dims[3];
  int64_t dims[4] = {n, c, h * block, w * block};
  CPU_TRY(cpu_output_shape(call, 0, 4, dims, message));
  if (state->column_major) {
    copy_permuted(call, (int64_t[6]){n, c, block, block, h, w}, (int32_t[6]){0, 1, 4, 2, 5, 3});
  } else {
    copy_permuted(call, (int64_t[6]){n, block, block, c, h, w}, (int32_t[6]){0, 3, 4, 1, 5, 2});
  }
  return CLEAVE_OK;
}

static cleave_status_t run_space_to_depth(const cpu_call_t *call, cleave_message_t *message) {
  const space_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  int64_t block = state->block;
  if (data->rank != 4 || data->dims[2] % block != 0 || data->dims[3] % block != 0 ||
      data->dims[1] > INT32_MAX) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "expected 4 dims with height and width divisible by %lld",
                       (long long)block);
  }
  int64_t n = data->dims[0];
  int64_t c = data->dims[1];
  int64_t h = data->dims[2] / block;
  int64_t w = data->dims[3] / block;
  int64_t dims[4] = {n, c * block * block, h, w};
  cleave_status_t status = cpu_output_shape(call, 0, 4, dims, message);
  if (status == CLEAVE_OK) {
    copy_permuted(call, (int64_t[6]){n, c, h, block, w, block}, (int32_t[6]){0, 3, 5, 1, 2, 4});
  }
  return status;
}

const cpu_kernel_t cpu_kernels_transpose[] = {
    CPU_KERNEL("Transpose", 1, .state_size = sizeof(transpose_state_t), .prepare = prepare_transpose,
               .run = run_transpose),
    CPU_KERNEL("DepthToSpace", 1, .state_size = sizeof(space_state_t), .prepare = prepare_space,
               .run = run_depth_to_space),
    CPU_KERNEL("SpaceToDepth", 1, .state_size = sizeof(space_state_t), .prepare = prepare_space,
               .run = run_space_to_depth),
    {0},
};
