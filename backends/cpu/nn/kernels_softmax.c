// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and Hardmax in their opset 13 meaning: along one axis. The largest element is taken
// off first, so that no exponential overflows.
#include <math.h>
#include <string.h>

#include "cpu/common/nn.h"
#include "kernels/vector_math.h"

#define SOFTMAX_COLUMNS 64

typedef enum softmax_kind { SOFTMAX_PLAIN, SOFTMAX_LOG, SOFTMAX_HARD } softmax_kind_t;

typedef struct softmax_state {
  softmax_kind_t kind;
  int64_t axis;
} softmax_state_t;

#define EXP PICK(cpu_expf, exp)
#define LOG PICK(logf, log)
#define FOR_REALS "cpu/nn/softmax.inc"
#include "cpu/common/for_reals.inc"

static cleave_status_t softmax_prepare(cpu_prepare_t *prepare, void *opaque, cleave_message_t *message) {
  softmax_state_t *state = opaque;
  CPU_TRY(cpu_nn_require_float(prepare, 0, message));
  CPU_TRY(cpu_nn_require_same_outputs(prepare, 0, message));
  state->kind = (softmax_kind_t)prepare->variant;
  state->axis = cleave_view_int(prepare->node, "axis", -1);
  return CLEAVE_OK;
}

static cleave_status_t softmax_run(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *x = call->inputs[0];
  CPU_TRY(cpu_output_shape(call, 0, x->rank, x->dims, message));
  return cpu_nn_run_float(call, message, 0, softmax_run_f32, softmax_run_f64);
}

#define KERNEL(name, kind)                                                                          \
  {                                                                                                 \
    .op = name, .variant = kind, .state_size = sizeof(softmax_state_t), .prepare = softmax_prepare, \
    .scratch = cpu_nn_scratch_halves, .run = softmax_run, .inplace = 1, .required_inputs = 1        \
  }

const cpu_kernel_t cpu_kernels_softmax[] = {
    KERNEL("Softmax", SOFTMAX_PLAIN),
    KERNEL("LogSoftmax", SOFTMAX_LOG),
    KERNEL("Hardmax", SOFTMAX_HARD),
    {.op = NULL},
};
