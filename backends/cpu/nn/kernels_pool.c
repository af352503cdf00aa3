// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool, LpPool, and gradients. Windows are clipped to the tensor, so that every read
// is in bounds whatever size the output has (ceil_mode). The numeric code is in pool.inc.
#include <math.h>
#include <string.h>

#include "cpu/common/nn.h"
#include "cpu/common/window.h"
#include "kernels/vector_math.h"

// kernel_shape is not backed by a tensor: without a limit a short file could ask for endless work.
#define POOL_MAX_TAPS ((int64_t)1 << 24)

typedef enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_LP } pool_kind_t;

typedef struct pool_state {
  cpu_window_t window;
  pool_kind_t kind;
  bool count_include_pad;
  bool column_major;  // storage_order 1: indices run along the first spatial axis
  int64_t power;
} pool_state_t;

// Windows over `x` that give a tensor of the shape of `any`.
static cleave_status_t plan_windows(const pool_state_t *state, const cpu_tensor_t *x, const cpu_tensor_t *any,
                                    cpu_geometry_t *out_geometry, cleave_message_t *message) {
  CPU_TRY(cpu_window_resolve(&state->window, x, any, NULL, out_geometry, message));
  if (out_geometry->kernel_count > POOL_MAX_TAPS) {
    return kernel_fail(message, CLEAVE_ERROR_LIMIT, "a window has %lld elements, expected at most %lld",
                       (long long)out_geometry->kernel_count, (long long)POOL_MAX_TAPS);
  }
  for (int axis = 0; axis < CPU_WINDOW_AXES && any->count > 0; axis++) {
    const cpu_geometry_t *g = out_geometry;
    int64_t reach = (g->kernel[axis] - 1) * g->dilation[axis] + 1;
    int64_t room = g->in[axis] + g->pad[axis] + g->pad_end[axis];
    if (reach >= room + g->stride[axis]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "a window of %lld element%s does not fit into %lld",
                         (long long)reach, KERNEL_PLURAL(reach), (long long)room);
    }
  }
  if (any->dims[0] != x->dims[0] || any->dims[1] != x->dims[1]) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "output shape does not fit the input");
  }
  return CLEAVE_OK;
}

static cleave_status_t pool_plan(const cpu_call_t *call, cpu_geometry_t *out_geometry,
                                 cleave_message_t *message) {
  const cpu_tensor_t *y = cpu_output(call, 0);
  const cpu_tensor_t *indices = cpu_output(call, 1);
  const cpu_tensor_t *any = y != NULL ? y : indices;
  if (any == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "no output is wanted");
  }
  CPU_TRY(plan_windows(call->state, call->inputs[0], any, out_geometry, message));
  if (indices != NULL && indices->count != any->count) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "output shape does not fit the input");
  }
  return CLEAVE_OK;
}

// The windows of the pool that went before: from dX, the output here, to dY.
static cleave_status_t back_plan(const cpu_call_t *call, cpu_geometry_t *out_geometry,
                                 cleave_message_t *message) {
  const cpu_tensor_t *dx = cpu_output(call, 0);
  if (dx == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "no output is wanted");
  }
  return plan_windows(call->state, dx, call->inputs[0], out_geometry, message);
}

// Index of an element in the whole tensor, as MaxPool gives it out. A window without elements has -1.
static int64_t pool_index(const pool_state_t *state, const cpu_geometry_t *g, int64_t plane,
                          int64_t element) {
  if (element < 0) {
    return -1;
  }
  if (state->column_major) {
    int64_t w = element % g->in[2];
    int64_t h = element / g->in[2] % g->in[1];
    int64_t d = element / (g->in[2] * g->in[1]);
    element = d + g->in[0] * (h + g->in[1] * w);
  }
  return plane * g->in_count + element;
}

#define REAL int8_t
#define NAME(name) CPU_CONCAT(name, i8)
#define LOWEST INT8_MIN
#define IS_NAN(value) false
#include "cpu/nn/pool.inc"
#undef REAL
#undef NAME
#undef LOWEST
#define REAL uint8_t
#define NAME(name) CPU_CONCAT(name, u8)
#define LOWEST 0
#include "cpu/nn/pool.inc"
#undef REAL
#undef NAME
#undef LOWEST
#undef IS_NAN
#define POOL_IS_FLOAT
#define IS_NAN(value) isnan(value)
#define LOWEST (-INFINITY)
#define FOR_REALS "cpu/nn/pool.inc"
#include "cpu/common/for_reals.inc"
#undef LOWEST

static cleave_status_t pool_prepare(cpu_prepare_t *prepare, void *opaque, cleave_message_t *message) {
  pool_state_t *pool = opaque;
  pool->kind = (pool_kind_t)prepare->variant;
  CPU_TRY(cpu_nn_require_dtype(
      prepare, 0, pool->kind == POOL_MAX ? CPU_NN_FLOATS | CPU_NN_BYTES : CPU_NN_FLOATS, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  CPU_TRY(cpu_nn_require_output(prepare, 1, CPU_NN_ONE(CLEAVE_DTYPE_I64), message));
  CPU_TRY(cpu_window_prepare(prepare, &pool->window, message));
  pool->count_include_pad = cleave_view_int(prepare->node, "count_include_pad", 0) != 0;
  pool->column_major = cleave_view_int(prepare->node, "storage_order", 0) != 0;
  pool->power = cleave_view_int(prepare->node, "p", 2);
  if (pool->power < 1) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "p is %lld, expected at least 1",
                       (long long)pool->power);
  }
  return CLEAVE_OK;
}

static cleave_status_t average_back_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  CPU_TRY(cpu_nn_require_dtype(prepare, 1, CPU_NN_ONE(CLEAVE_DTYPE_I64), message));
  return pool_prepare(prepare, state, message);
}

static size_t average_back_scratch(const cpu_call_t *call) {
  return cpu_nn_scratch_float(call, 0, average_back_scratch_f32, average_back_scratch_f64);
}

static cleave_status_t average_back_run(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *shape = call->inputs[1];
  int64_t dims[CLEAVE_MAX_RANK];
  if (shape->rank != 1 || shape->count > CLEAVE_MAX_RANK) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "shape: expected a vector of at most %d sizes",
                       CLEAVE_MAX_RANK);
  }
  for (int64_t k = 0; k < shape->count; k++) {
    dims[k] = cpu_read_int(shape, k);
    if (dims[k] < 0) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "shape: a size of %lld", (long long)dims[k]);
    }
  }
  CPU_TRY(cpu_output_shape(call, 0, (int32_t)shape->count, dims, message));
  return cpu_nn_run_float(call, message, 0, average_back_run_f32, average_back_run_f64);
}

static cleave_status_t max_back_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_same(prepare, 1, 1, message));
  return pool_prepare(prepare, state, message);
}

static cleave_status_t max_run(const cpu_call_t *call, cleave_message_t *message) {
  CPU_TRY(cpu_nn_check_outputs(call, message));
  switch (call->inputs[0]->dtype) {
    case CLEAVE_DTYPE_I8: return max_run_i8(call, message);
    case CLEAVE_DTYPE_U8: return max_run_u8(call, message);
    default: return cpu_nn_run_float(call, message, 0, max_run_f32, max_run_f64);
  }
}

const cpu_kernel_t cpu_kernels_pool[] = {
    CPU_KERNEL("MaxPool", 1, .state_size = sizeof(pool_state_t), .variant = POOL_MAX, .prepare = pool_prepare,
               .scratch = cpu_nn_scratch_halves, .run = max_run),
    CPU_KERNEL("AveragePool", 1, .state_size = sizeof(pool_state_t), .variant = POOL_AVERAGE,
               .prepare = pool_prepare, CPU_FLOAT_RUN(average_run)),
    CPU_KERNEL("LpPool", 1, .state_size = sizeof(pool_state_t), .variant = POOL_LP, .prepare = pool_prepare,
               CPU_FLOAT_RUN(average_run)),
    CPU_KERNEL("AveragePoolGrad", 2, .domain = "cleave", .state_size = sizeof(pool_state_t),
               .variant = POOL_AVERAGE, .prepare = average_back_prepare, .scratch = average_back_scratch,
               .run = average_back_run),
    CPU_KERNEL("MaxPoolGrad", 2, .domain = "cleave", .state_size = sizeof(pool_state_t), .variant = POOL_MAX,
               .prepare = max_back_prepare, CPU_FLOAT_RUN(max_back_run)),
    {.op = NULL},
};
