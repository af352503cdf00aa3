// SPDX-License-Identifier: Apache-2.0
// BatchNormalization (opset 15): inference, and training_mode with the running statistics as outputs 1 and 2;
// BatchNormalizationTraining, which has the batch's own as 3 and 4; and the gradient of both.
// Scale, bias, mean and variance may be of other float types than the input: they are read one by one.
#include <math.h>
#include <string.h>

#include "cpu/common/nn.h"
#include "kernels/vector_math.h"

typedef struct batch_state {
  bool training;
  double epsilon;
  double momentum;
} batch_state_t;

typedef struct batch_plan {
  int64_t batch;
  int64_t channels;
  int64_t plane;  // elements of one channel of one image
} batch_plan_t;

static cleave_status_t batch_plan(const cpu_call_t *call, batch_plan_t *out_plan, cleave_message_t *message) {
  static const char *const names[] = {"input", "scale", "bias", "mean", "variance"};
  const cpu_tensor_t *x = call->inputs[0];
  if (x->rank < 1) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "the input is a scalar");
  }
  batch_plan_t plan = {x->dims[0], x->rank > 1 ? x->dims[1] : 1, cpu_nn_span(x, 2, x->rank)};
  for (uint32_t k = 1; k < 5; k++) {
    CPU_TRY(cpu_nn_check_count(names[k], cpu_input(call, k), plan.channels, message));
  }
  for (uint32_t k = 1; k < 5; k++) {
    if (cpu_output(call, k) != NULL) {
      CPU_TRY(cpu_nn_check_count("statistics", cpu_output(call, k), plan.channels, message));
    }
  }
  *out_plan = plan;
  cpu_tensor_t *y = cpu_output(call, 0);
  return y == NULL ? CLEAVE_OK : cpu_nn_check_same_dims(x, y, message);
}

// Mean and variance of a channel to outputs `first` and the one after it, if they are wanted.
static void batch_write(const cpu_call_t *call, uint32_t first, int64_t channel, double mean,
                        double variance) {
  if (cpu_output(call, first) != NULL) {
    cpu_write_float(cpu_output(call, first), channel, mean);
  }
  if (cpu_output(call, first + 1) != NULL) {
    cpu_write_float(cpu_output(call, first + 1), channel, variance);
  }
}

static cleave_status_t gradient_plan(const cpu_call_t *call, batch_plan_t *out_plan,
                                     cleave_message_t *message) {
  static const char *const names[] = {"scale", "mean", "variance"};
  const cpu_tensor_t *x = call->inputs[1];
  if (x->rank < 2) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "the input has no channels");
  }
  *out_plan = (batch_plan_t){x->dims[0], x->dims[1], cpu_nn_span(x, 2, x->rank)};
  CPU_TRY(cpu_nn_check_same_dims(call->inputs[0], x, message));
  for (uint32_t k = 0; k < 3; k++) {
    CPU_TRY(cpu_nn_check_count(names[k], cpu_input(call, k + 2), out_plan->channels, message));
  }
  for (uint32_t k = 1; k < 3; k++) {
    if (cpu_output(call, k) != NULL) {
      CPU_TRY(cpu_nn_check_count("a gradient", cpu_output(call, k), out_plan->channels, message));
    }
  }
  cpu_tensor_t *dx = cpu_output(call, 0);
  return dx == NULL ? CLEAVE_OK : cpu_nn_check_same_dims(x, dx, message);
}

#define FOR_REALS "cpu/nn/norm_batch.inc"
#include "cpu/common/for_reals.inc"

static cleave_status_t batch_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  batch_state_t *batch = state;
  for (uint32_t k = 0; k < 5; k++) {
    CPU_TRY(cpu_nn_require_float(prepare, k, message));
  }
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  for (uint32_t k = 1; k < 5; k++) {
    CPU_TRY(cpu_nn_require_output(prepare, k, CPU_NN_FLOATS, message));
  }
  batch->training = strcmp(prepare->node->op, "BatchNormalizationTraining") == 0 ||
                    cleave_view_int(prepare->node, "training_mode", 0) != 0;
  batch->epsilon = cleave_view_float(prepare->node, "epsilon", 1e-5);
  batch->momentum = cleave_view_float(prepare->node, "momentum", 0.9);
  return CLEAVE_OK;
}

static size_t parameter_scratch(const cpu_call_t *call) {
  batch_plan_t plan;
  cpu_carver_t carver = {NULL, 0};
  if (batch_plan(call, &plan, NULL) == CLEAVE_OK) {
    (void)cpu_nn_carve(&carver, plan.channels, sizeof(double));
    (void)cpu_nn_carve(&carver, plan.channels, sizeof(double));
  }
  return carver.used;
}

static cleave_status_t gradient_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  batch_state_t *batch = state;
  for (uint32_t k = 0; k < 5; k++) {
    CPU_TRY(cpu_nn_require_float(prepare, k, message));
  }
  CPU_TRY(cpu_nn_require_same(prepare, 1, 1, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  CPU_TRY(cpu_nn_require_output(prepare, 1, CPU_NN_FLOATS, message));
  CPU_TRY(cpu_nn_require_output(prepare, 2, CPU_NN_FLOATS, message));
  batch->epsilon = cleave_view_float(prepare->node, "epsilon", 1e-5);
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_norm_batch[] = {
    CPU_KERNEL("BatchNormalization", 5, .state_size = sizeof(batch_state_t), .prepare = batch_prepare,
               .scratch_f32 = parameter_scratch, .scratch_f64 = parameter_scratch, CPU_FLOAT_RUN(batch_run),
               .inplace = 1),
    CPU_KERNEL("BatchNormalizationTraining", 5, .domain = "cleave", .state_size = sizeof(batch_state_t),
               .prepare = batch_prepare, .scratch_f32 = parameter_scratch, .scratch_f64 = parameter_scratch,
               CPU_FLOAT_RUN(batch_run)),
    CPU_KERNEL("BatchNormalizationGrad", 5, .domain = "cleave", .state_size = sizeof(batch_state_t),
               .prepare = gradient_prepare, CPU_FLOAT_RUN(gradient_run)),
    {.op = NULL},
};
