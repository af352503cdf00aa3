// SPDX-License-Identifier: Apache-2.0
// LpNormalization, MeanVarianceNormalization (any set of axes) and LRN (across channels). Statistics are kept
// in double.
#include <math.h>

#include "cpu/common/nn.h"

typedef struct misc_state {
  int64_t axis;  // LpNormalization
  int64_t p;
  int64_t size;  // LRN
  double alpha;
  double beta;
  double bias;
  uint32_t axis_count;  // MeanVarianceNormalization
  const int64_t *axes;
} misc_state_t;

// Elements that share a mean: steps[d] is 0 on the axes that it is taken over.
static cleave_status_t mean_groups(const misc_state_t *state, const cpu_tensor_t *x, int64_t *steps,
                                   int64_t *out_groups, cleave_message_t *message) {
  static const int64_t default_axes[] = {0, 2, 3};
  uint32_t count = state->axes != NULL ? state->axis_count : 3;
  const int64_t *axes = state->axes != NULL ? state->axes : default_axes;
  bool reduced[CLEAVE_MAX_RANK] = {false};
  for (uint32_t k = 0; k < count; k++) {
    int32_t axis = 0;
    CPU_TRY(cpu_find_axis(axes[k], x->rank, &axis, message));
    reduced[axis] = true;
  }
  int64_t groups = 1;
  for (int32_t d = x->rank - 1; d >= 0; d--) {
    steps[d] = reduced[d] ? 0 : groups;
    groups *= reduced[d] ? 1 : x->dims[d];
  }
  *out_groups = groups;
  return CLEAVE_OK;
}

static int64_t group_of(const cpu_tensor_t *x, const int64_t *steps, int64_t element) {
  int64_t group = 0;
  for (int32_t d = x->rank - 1; d >= 0; d--) {
    group += element % x->dims[d] * steps[d];
    element /= x->dims[d];
  }
  return group;
}

#define FOR_REALS "cpu/nn/norm_misc.inc"
#include "cpu/common/for_reals.inc"

static cleave_status_t lp_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  misc_state_t *misc = state;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  misc->axis = cleave_view_int(prepare->node, "axis", -1);
  misc->p = cleave_view_int(prepare->node, "p", 2);
  return misc->p == 1 || misc->p == 2 ? CLEAVE_OK
                                      : kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                                                    "p is %lld, expected 1 or 2", (long long)misc->p);
}

static cleave_status_t mean_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  misc_state_t *misc = state;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  return cpu_prepare_ints(prepare, "axes", &misc->axes, &misc->axis_count);
}

static cleave_status_t lrn_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  misc_state_t *misc = state;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  misc->size = cleave_view_int(prepare->node, "size", 0);
  misc->alpha = cleave_view_float(prepare->node, "alpha", 1e-4);
  misc->beta = cleave_view_float(prepare->node, "beta", 0.75);
  misc->bias = cleave_view_float(prepare->node, "bias", 1);
  return misc->size > 0 && misc->size < CPU_NN_MAX_EXTENT
             ? CLEAVE_OK
             : kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "size is %lld, expected at least 1",
                           (long long)misc->size);
}

static size_t group_scratch(const cpu_call_t *call) {
  int64_t steps[CLEAVE_MAX_RANK];
  int64_t groups = 0;
  cpu_carver_t carver = {NULL, 0};
  if (mean_groups(call->state, call->inputs[0], steps, &groups, NULL) == CLEAVE_OK) {
    (void)cpu_nn_carve(&carver, cpu_nn_multiply(groups, 2), sizeof(double));
  }
  return carver.used;
}

const cpu_kernel_t cpu_kernels_norm_misc[] = {
    CPU_KERNEL("LpNormalization", 1, .state_size = sizeof(misc_state_t), .prepare = lp_prepare,
               CPU_FLOAT_RUN(lp_run), .inplace = 1),
    CPU_KERNEL("MeanVarianceNormalization", 1, .state_size = sizeof(misc_state_t), .prepare = mean_prepare,
               .scratch_f32 = group_scratch, .scratch_f64 = group_scratch, CPU_FLOAT_RUN(mean_run),
               .inplace = 1),
    CPU_KERNEL("LRN", 1, .state_size = sizeof(misc_state_t), .prepare = lrn_prepare, CPU_FLOAT_RUN(lrn_run)),
    {.op = NULL},
};
