// SPDX-License-Identifier: Apache-2.0
// Col2Im (opset 18): blocks of columns [N, C * block, L] added up into an image [N, C, spatial...] of any
// number of spatial axes. Blocks and positions are checked to be as many as the columns, so that every column
// is read once; what falls into the padding is dropped.
#include "cpu/common/nn.h"

#define COLUMN_AXES (CLEAVE_MAX_RANK - 2)

typedef struct columns_state {
  uint32_t dilation_count;
  uint32_t stride_count;
  uint32_t pad_count;
  const int64_t *dilations;
  const int64_t *strides;
  const int64_t *pads;
} columns_state_t;

typedef struct columns {
  const cpu_tensor_t *x;
  cpu_tensor_t *y;
  int32_t spatial;
  int64_t image[COLUMN_AXES];
  int64_t block[COLUMN_AXES];
  int64_t positions[COLUMN_AXES];
  int64_t dilation[COLUMN_AXES];
  int64_t stride[COLUMN_AXES];
  int64_t pad[COLUMN_AXES];
  int64_t block_count;
  int64_t position_count;
  int64_t image_count;
} columns_t;

#define FOR_REALS "cpu/signal/columns.inc"
#include "cpu/common/for_reals.inc"

static cleave_status_t check_attribute(const int64_t *values, uint32_t count, uint32_t expected,
                                       int64_t lowest, const char *name, cleave_message_t *message) {
  if (count != 0 && count != expected) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%s has %u entr%s, expected %u", name, count,
                       KERNEL_BY_COUNT(count, "y", "ies"), expected);
  }
  for (uint32_t k = 0; k < count; k++) {
    if (values[k] < lowest || values[k] >= CPU_NN_MAX_EXTENT) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%s has entry %lld", name, (long long)values[k]);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t columns_plan(const cpu_call_t *call, columns_t *out_columns,
                                    cleave_message_t *message) {
  const columns_state_t *state = call->state;
  const cpu_tensor_t *block = call->inputs[2];
  columns_t c = {.x = call->inputs[0], .y = call->outputs[0], .block_count = 1, .position_count = 1};
  c.image_count = 1;
  c.spatial = c.y->rank - 2;
  if (c.x->rank != 3 || c.spatial < 1 || block->count != c.spatial || call->inputs[1]->count != c.spatial) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "columns of rank %d do not fit an image of rank %d",
                       c.x->rank, c.y->rank);
  }
  uint32_t spatial = (uint32_t)c.spatial;
  CPU_TRY(check_attribute(state->dilations, state->dilation_count, spatial, 1, "dilations", message));
  CPU_TRY(check_attribute(state->strides, state->stride_count, spatial, 1, "strides", message));
  CPU_TRY(check_attribute(state->pads, state->pad_count, 2 * spatial, 0, "pads", message));
  for (uint32_t k = 0; k < spatial; k++) {
    c.image[k] = c.y->dims[2 + k];
    c.block[k] = cpu_read_int(block, k);
    c.dilation[k] = state->dilation_count != 0 ? state->dilations[k] : 1;
    c.stride[k] = state->stride_count != 0 ? state->strides[k] : 1;
    c.pad[k] = state->pad_count != 0 ? state->pads[k] : 0;
    int64_t pads = c.pad[k] + (state->pad_count != 0 ? state->pads[spatial + k] : 0);
    if (c.block[k] < 1 || c.block[k] >= CPU_NN_MAX_EXTENT || c.image[k] >= CPU_NN_MAX_EXTENT) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "block_shape has entry %lld", (long long)c.block[k]);
    }
    int64_t room = c.image[k] + pads - (c.block[k] - 1) * c.dilation[k] - 1;
    c.positions[k] = room < 0 ? 0 : room / c.stride[k] + 1;
    c.block_count = cpu_nn_multiply(c.block_count, c.block[k]);
    c.position_count = cpu_nn_multiply(c.position_count, c.positions[k]);
    c.image_count *= c.image[k];
  }
  if (c.position_count != c.x->dims[2] || cpu_nn_multiply(c.block_count, c.y->dims[1]) != c.x->dims[1] ||
      c.x->dims[0] != c.y->dims[0]) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%lld column%s of %lld, expected %lld of %lld",
                       (long long)c.x->dims[2], KERNEL_PLURAL(c.x->dims[2]), (long long)c.x->dims[1],
                       (long long)c.position_count, (long long)cpu_nn_multiply(c.block_count, c.y->dims[1]));
  }
  *out_columns = c;
  return CLEAVE_OK;
}

static cleave_status_t run_f32(const cpu_call_t *call, cleave_message_t *message) {
  columns_t c;
  CPU_TRY(columns_plan(call, &c, message));
  cpu_parallel(call, c.x->dims[0] * c.y->dims[1], 1, add_planes_f32, &c);
  return CLEAVE_OK;
}

static cleave_status_t run_f64(const cpu_call_t *call, cleave_message_t *message) {
  columns_t c;
  CPU_TRY(columns_plan(call, &c, message));
  cpu_parallel(call, c.x->dims[0] * c.y->dims[1], 1, add_planes_f64, &c);
  return CLEAVE_OK;
}

static cleave_status_t columns_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  columns_state_t *columns = state;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  CPU_TRY(cpu_prepare_ints(prepare, "dilations", &columns->dilations, &columns->dilation_count));
  CPU_TRY(cpu_prepare_ints(prepare, "strides", &columns->strides, &columns->stride_count));
  return cpu_prepare_ints(prepare, "pads", &columns->pads, &columns->pad_count);
}

const cpu_kernel_t cpu_kernels_vision_columns[] = {
    CPU_KERNEL("Col2Im", 3, .state_size = sizeof(columns_state_t), .prepare = columns_prepare,
               CPU_FLOAT_RUN(run)),
    {.op = NULL},
};
