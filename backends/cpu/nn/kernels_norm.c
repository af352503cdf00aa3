// SPDX-License-Identifier: Apache-2.0
// Normalisation by the statistics of the input itself: LayerNormalization, RMSNormalization,
// InstanceNormalization and GroupNormalization. All are rows with one mean and variance each; they differ in
// what a row is, and in whether scale and bias go by element or by channel. Numeric code is in norm.inc.
#include <math.h>

#include "cpu/common/nn.h"
#include "kernels/vector_math.h"

typedef enum norm_kind { NORM_LAYER, NORM_RMS, NORM_INSTANCE, NORM_GROUP } norm_kind_t;

typedef struct norm_state {
  norm_kind_t kind;
  int64_t axis;
  int64_t groups;
  double epsilon;
} norm_state_t;

typedef struct norm_plan {
  int64_t rows;
  int64_t length;             // elements of a row
  int64_t channel_length;     // elements of a channel within a row; 0: parameters go by element
  int64_t groups;             // rows of one image, if parameters go by channel
  bool parameter_per_group;   // GroupNormalization before opset 21
  bool plain_parameters;      // scale and bias have exactly one value per element of a row
  const cpu_tensor_t *shape;  // of the input, that parameters broadcast to
} norm_plan_t;

static cleave_status_t plan_elements(const cpu_call_t *call, norm_plan_t *plan, cleave_message_t *message) {
  const norm_state_t *state = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  const cpu_tensor_t *scale = call->inputs[1];
  const cpu_tensor_t *bias = cpu_input(call, 2);
  int32_t axis = 0;
  CPU_TRY(cpu_find_axis(state->axis, x->rank, &axis, message));
  plan->rows = cpu_nn_span(x, 0, axis);
  plan->length = cpu_nn_span(x, axis, x->rank);
  if (!cpu_nn_broadcasts(scale, x) || (bias != NULL && !cpu_nn_broadcasts(bias, x))) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "scale or bias does not broadcast to the input");
  }
  plan->plain_parameters = scale->count == plan->length && scale->rank <= x->rank - axis &&
                           (bias == NULL || (bias->count == plan->length && bias->rank <= x->rank - axis));
  for (uint32_t k = 1; k < 3; k++) {
    if (cpu_output(call, k) != NULL) {
      CPU_TRY(cpu_nn_check_count("mean or deviation", cpu_output(call, k), plan->rows, message));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t plan_channels(const cpu_call_t *call, norm_plan_t *plan, cleave_message_t *message) {
  const norm_state_t *state = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  if (x->rank < 2) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "input has rank %d, expected at least 2", x->rank);
  }
  int64_t channels = x->dims[1];
  plan->groups = state->kind == NORM_GROUP ? state->groups : channels;
  if (plan->groups < 1 || channels % plan->groups != 0) {
    // An input without channels has no rows.
    return x->count == 0
               ? CLEAVE_OK
               : kernel_fail(message, CLEAVE_ERROR_SHAPE,
                             "%lld channel%s cannot be divided into %lld group%s", (long long)channels,
                             KERNEL_PLURAL(channels), (long long)plan->groups, KERNEL_PLURAL(plan->groups));
  }
  plan->rows = cpu_nn_multiply(x->dims[0], plan->groups);
  plan->channel_length = cpu_nn_span(x, 2, x->rank);
  plan->length = channels / plan->groups * plan->channel_length;
  plan->parameter_per_group = call->inputs[1]->count != channels && call->inputs[1]->count == plan->groups;
  int64_t parameters = plan->parameter_per_group ? plan->groups : channels;
  CPU_TRY(cpu_nn_check_count("scale", call->inputs[1], parameters, message));
  return cpu_nn_check_count("bias", cpu_input(call, 2), parameters, message);
}

static cleave_status_t norm_plan(const cpu_call_t *call, norm_plan_t *out_plan, cleave_message_t *message) {
  const norm_state_t *state = call->state;
  norm_plan_t plan = {.shape = call->inputs[0]};
  if (state->kind == NORM_LAYER || state->kind == NORM_RMS) {
    CPU_TRY(plan_elements(call, &plan, message));
  } else {
    CPU_TRY(plan_channels(call, &plan, message));
  }
  *out_plan = plan;
  cpu_tensor_t *y = cpu_output(call, 0);
  return y == NULL ? CLEAVE_OK : cpu_nn_check_same_dims(call->inputs[0], y, message);
}

#define FOR_REALS "cpu/nn/norm.inc"
#include "cpu/common/for_reals.inc"

static cleave_status_t norm_prepare(cpu_prepare_t *prepare, void *opaque, cleave_message_t *message) {
  norm_state_t *state = opaque;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  CPU_TRY(cpu_nn_require_output(prepare, 1, CPU_NN_FLOATS, message));
  CPU_TRY(cpu_nn_require_output(prepare, 2, CPU_NN_FLOATS, message));
  CPU_TRY(cpu_nn_require_same(prepare, 1, 2, message));
  state->kind = (norm_kind_t)prepare->variant;
  state->axis = cleave_view_int(prepare->node, "axis", -1);
  state->groups = cleave_view_int(prepare->node, "num_groups", 1);
  state->epsilon = cleave_view_float(prepare->node, "epsilon", 1e-5);
  return CLEAVE_OK;
}

#define KERNEL(name, kind, required)                                                          \
  {                                                                                           \
    .op = name, .variant = kind, .state_size = sizeof(norm_state_t), .prepare = norm_prepare, \
    CPU_FLOAT_RUN(norm_run), .inplace = 1, .required_inputs = required                        \
  }

const cpu_kernel_t cpu_kernels_norm[] = {
    KERNEL("LayerNormalization", NORM_LAYER, 2),
    KERNEL("RMSNormalization", NORM_RMS, 2),
    KERNEL("InstanceNormalization", NORM_INSTANCE, 3),
    KERNEL("GroupNormalization", NORM_GROUP, 3),
    {.op = NULL},
};
