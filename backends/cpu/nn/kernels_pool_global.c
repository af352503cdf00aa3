// SPDX-License-Identifier: Apache-2.0
// GlobalAveragePool, GlobalMaxPool, GlobalLpPool and MaxUnpool. A plane is one (batch, channel); sums are
// kept in double. MaxUnpool takes indices from outside: each is checked before anything is written there.
#include <math.h>
#include <string.h>

#include "cpu/common/nn.h"
#include "cpu/common/window.h"

typedef enum global_kind { GLOBAL_AVERAGE, GLOBAL_MAX, GLOBAL_LP } global_kind_t;

typedef struct global_state {
  global_kind_t kind;
  int64_t power;
} global_state_t;

typedef struct global {
  const global_state_t *state;
  const void *x;
  void *y;
  int64_t count;  // elements of a plane
} global_t;

#define FOR_REALS "cpu/nn/pool_global.inc"
#include "cpu/common/for_reals.inc"

static cleave_status_t global_prepare(cpu_prepare_t *prepare, void *opaque, cleave_message_t *message) {
  global_state_t *state = opaque;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  state->kind = (global_kind_t)prepare->variant;
  state->power = cleave_view_int(prepare->node, "p", 2);
  if (state->power < 1) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "p is %lld, expected at least 1",
                       (long long)state->power);
  }
  return CLEAVE_OK;
}

// ---- MaxUnpool ----------------------------------------------------------------------------------------

typedef struct unpool_state {
  cpu_window_t window;
} unpool_state_t;

static cleave_status_t unpool_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  unpool_state_t *unpool = state;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  CPU_TRY(cpu_nn_require_dtype(prepare, 1, CPU_NN_ONE(CLEAVE_DTYPE_I64), message));
  CPU_TRY(cpu_window_prepare(prepare, &unpool->window, message));
  if (unpool->window.kernel_count == 0) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "kernel_shape is missing");
  }
  return CLEAVE_OK;
}

// Dims of the tensor that the indices count in: what MaxPool read, not the wider `output_shape`.
static cleave_status_t unpool_dims(const cpu_window_t *window, const cpu_tensor_t *x, int64_t *dims,
                                   cleave_message_t *message) {
  uint32_t spatial = x->rank < 2 ? 0 : (uint32_t)x->rank - 2;
  if (x->rank < 3 || window->kernel_count != spatial ||
      (window->stride_count != 0 && window->stride_count != spatial) ||
      (window->pad_count != 0 && window->pad_count != 2 * spatial)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "attributes do not fit an input of rank %d", x->rank);
  }
  dims[0] = x->dims[0];
  dims[1] = x->dims[1];
  for (uint32_t k = 0; k < spatial; k++) {
    int64_t stride = window->stride_count != 0 ? window->stride[k] : 1;
    int64_t pads = window->pad_count != 0 ? window->pads[k] + window->pads[spatial + k] : 0;
    if (x->dims[2 + k] >= CPU_NN_MAX_EXTENT) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "input is too large");
    }
    dims[2 + k] = (x->dims[2 + k] - 1) * stride - pads + window->kernel[k];
    if (dims[2 + k] < 1) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "pads are larger than the tensor");
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t unpool_run(const cpu_call_t *call, cleave_message_t *message) {
  const unpool_state_t *state = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  const cpu_tensor_t *indices = call->inputs[1];
  cpu_tensor_t *y = call->outputs[0];
  CPU_TRY(cpu_nn_check_outputs(call, message));
  CPU_TRY(cpu_nn_check_count("indices", indices, x->count, message));
  if (y->count > 0) {
    memset(y->data, 0, (size_t)y->count * cleave_dtype_size(y->dtype));
  }
  if (x->count == 0) {
    return CLEAVE_OK;
  }
  int64_t dims[CLEAVE_MAX_RANK];
  CPU_TRY(unpool_dims(&state->window, x, dims, message));
  if (y->rank != x->rank) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "output has rank %d, expected %d", y->rank, x->rank);
  }
  size_t size = cleave_dtype_size(x->dtype);
  for (int64_t k = 0; k < x->count; k++) {
    int64_t rest = ((const int64_t *)indices->data)[k];
    int64_t at = 0;
    int64_t step = 1;
    bool inside = rest >= 0;
    for (int32_t d = x->rank - 1; inside && d >= 0; d--) {
      int64_t position = d == 0 ? rest : rest % dims[d];
      rest /= dims[d];
      inside = position < y->dims[d];
      at += inside ? position * step : 0;
      step *= y->dims[d];
    }
    if (!inside) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "index %lld is outside of the output",
                         (long long)((const int64_t *)indices->data)[k]);
    }
    memcpy((unsigned char *)y->data + (size_t)at * size, (const unsigned char *)x->data + (size_t)k * size,
           size);
  }
  return CLEAVE_OK;
}

#define KERNEL(name, kind)                                                                        \
  {                                                                                               \
    .op = name, .variant = kind, .state_size = sizeof(global_state_t), .prepare = global_prepare, \
    CPU_FLOAT_RUN(global_run), .required_inputs = 1                                               \
  }

const cpu_kernel_t cpu_kernels_pool_global[] = {
    KERNEL("GlobalAveragePool", GLOBAL_AVERAGE),
    KERNEL("GlobalMaxPool", GLOBAL_MAX),
    KERNEL("GlobalLpPool", GLOBAL_LP),
    CPU_KERNEL("MaxUnpool", 2, .state_size = sizeof(unpool_state_t), .prepare = unpool_prepare,
               .run = unpool_run),
    {.op = NULL},
};
