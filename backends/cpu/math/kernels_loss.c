// SPDX-License-Identifier: Apache-2.0
// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss (opset 13): scores [N, C, d...], labels [N, d...],
// weights [C]. Labels come from outside at run time: one that is neither a class nor ignored fails.
#include <math.h>
#include <string.h>

#include "cpu/common/nn.h"

/* The kind of the scores. */
typedef enum loss_kind { LOSS_OF_SCORES, LOSS_OF_LOGARITHMS } loss_kind_t;
typedef enum loss_reduction { LOSS_NONE, LOSS_SUM, LOSS_MEAN } loss_reduction_t;

typedef struct loss_state {
  loss_reduction_t reduction;
  bool softmax;  // scores are not log probabilities yet
  bool has_ignored;
  int64_t ignored;
} loss_state_t;

typedef struct loss_plan {
  int64_t batch;
  int64_t classes;
  int64_t inner;  // positions behind the class axis
} loss_plan_t;

static cleave_status_t loss_plan(const cpu_call_t *call, loss_plan_t *out_plan, cleave_message_t *message) {
  const loss_state_t *state = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  const cpu_tensor_t *weights = cpu_input(call, 2);
  if (x->rank < 2) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "scores have rank %d, expected at least 2", x->rank);
  }
  loss_plan_t plan = {x->dims[0], x->dims[1], cpu_nn_span(x, 2, x->rank)};
  CPU_TRY(cpu_nn_check_count("labels", call->inputs[1], plan.batch * plan.inner, message));
  if (weights != NULL) {
    CPU_TRY(cpu_nn_check_count("weights", weights, plan.classes, message));
  }
  if (cpu_output(call, 0) != NULL) {
    int64_t count = state->reduction == LOSS_NONE ? plan.batch * plan.inner : 1;
    CPU_TRY(cpu_nn_check_count("loss", cpu_output(call, 0), count, message));
  }
  if (cpu_output(call, 1) != NULL) {
    CPU_TRY(cpu_nn_check_count("log_prob", cpu_output(call, 1), x->count, message));
  }
  *out_plan = plan;
  return CLEAVE_OK;
}

#define EXP PICK(expf, exp)
#define LOG PICK(logf, log)
#define FOR_REALS "cpu/math/loss.inc"
#include "cpu/common/for_reals.inc"

static cleave_status_t loss_prepare(cpu_prepare_t *prepare, void *opaque, cleave_message_t *message) {
  loss_state_t *state = opaque;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(
      cpu_nn_require_dtype(prepare, 1, CPU_NN_ONE(CLEAVE_DTYPE_I32) | CPU_NN_ONE(CLEAVE_DTYPE_I64), message));
  CPU_TRY(cpu_nn_require_same(prepare, 2, 2, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 1, message));
  state->softmax = prepare->variant == LOSS_OF_SCORES;
  const cleave_attribute_view_t *ignored = cleave_view_attribute(prepare->node, "ignore_index");
  state->has_ignored = ignored != NULL && ignored->kind == CLEAVE_ATTRIBUTE_INT;
  state->ignored = state->has_ignored ? ignored->i : 0;
  const char *reduction = cleave_view_string(prepare->node, "reduction", "mean");
  if (strcmp(reduction, "none") == 0) {
    state->reduction = LOSS_NONE;
  } else if (strcmp(reduction, "sum") == 0) {
    state->reduction = LOSS_SUM;
  } else if (strcmp(reduction, "mean") == 0) {
    state->reduction = LOSS_MEAN;
  } else {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "reduction '%.32s' is unknown", reduction);
  }
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_loss[] = {
    CPU_KERNEL("SoftmaxCrossEntropyLoss", 2, .state_size = sizeof(loss_state_t), .variant = LOSS_OF_SCORES,
               .prepare = loss_prepare, CPU_FLOAT_RUN(loss_run)),
    CPU_KERNEL("NegativeLogLikelihoodLoss", 2, .state_size = sizeof(loss_state_t),
               .variant = LOSS_OF_LOGARITHMS, .prepare = loss_prepare, CPU_FLOAT_RUN(loss_run)),
    {.op = NULL},
};
