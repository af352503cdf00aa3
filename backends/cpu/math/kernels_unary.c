// SPDX-License-Identifier: Apache-2.0
// Operators of one tensor, element by element: the loops of kernels/execute, which come from
// kernels/operators.inc. Float16 and bfloat16 go through the loop over floats in blocks. Integers wrap.
#include "cpu/common/loop.h"
#include "kernels/convert.h"
#include "kernels/loops/loops.h"

typedef struct unary_state {
  kernel_unary_t loop;
  double alpha;
  double beta;
  int64_t cost; /* as for cpu_loop_run */
} unary_state_t;

/* `name` as in the list: Gelu has a name for each form. */
static cleave_status_t prepare_named(cpu_prepare_t *prepare, unary_state_t *state, const char *name,
                                     cleave_message_t *message) {
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  kernel_op_t op = kernel_op_find(name);
  if (op == KERNEL_OP_COUNT) {
    return kernel_fail(message, CLEAVE_ERROR_INTERNAL, "'%s' is not in the table", name);
  }
  const kernel_op_info_t *info = kernel_op_info(op);
  bool is_same = cpu_output_dtype(prepare, 0) == dtype && cpu_dtype_is_plain(dtype);
  state->loop = is_same ? kernel_loops_choose(2)->unary[op][kernel_compute_dtype(dtype)] : NULL;
  if (state->loop == NULL) {
    return cpu_fail_types(prepare, message);
  }
  state->alpha = cleave_view_float(prepare->node, info->alpha_name, info->alpha);
  state->beta = cleave_view_float(prepare->node, info->beta_name, info->beta);
  state->cost = info->cost;
  return CLEAVE_OK;
}

static cleave_status_t prepare_unary(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  return prepare_named(prepare, state, prepare->node->op, message);
}

static cleave_status_t prepare_gelu(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  const char *mode = cleave_view_string(prepare->node, "approximate", "none");
  bool is_tanh = cleave_view_text_equal(mode, "tanh");
  if (!is_tanh && !cleave_view_text_equal(mode, "none")) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "approximate is '%s', expected none or tanh", mode);
  }
  return prepare_named(prepare, state, is_tanh ? "GeluTanh" : "GeluErf", message);
}

typedef struct unary_work {
  const unary_state_t *state;
  const cpu_tensor_t *from;
  cpu_tensor_t *to;
} unary_work_t;

static void run_short(const unary_work_t *work, int64_t begin, int64_t end) {
  const unary_state_t *state = work->state;
  const uint16_t *from = work->from->data;
  uint16_t *to = work->to->data;
  float block[CPU_BLOCK];
  for (int64_t k = begin; k < end; k += CPU_BLOCK) {
    int64_t count = end - k < CPU_BLOCK ? end - k : CPU_BLOCK;
    cpu_convert(work->from->dtype, from + k, CLEAVE_DTYPE_F32, block, count);
    state->loop(block, block, count, state->alpha, state->beta);
    cpu_convert(CLEAVE_DTYPE_F32, block, work->to->dtype, to + k, count);
  }
}

static void run_range(void *context, int64_t begin, int64_t end) {
  const unary_work_t *work = context;
  const unary_state_t *state = work->state;
  if (kernel_compute_dtype(work->from->dtype) != work->from->dtype) {
    run_short(work, begin, end);
    return;
  }
  size_t offset = (size_t)begin * cleave_dtype_size(work->from->dtype);
  state->loop((unsigned char *)work->to->data + offset, (const unsigned char *)work->from->data + offset,
              end - begin, state->alpha, state->beta);
}

static cleave_status_t run_unary(const cpu_call_t *call, cleave_message_t *message) {
  const unary_state_t *state = call->state;
  unary_work_t work = {.state = state, .from = call->inputs[0], .to = call->outputs[0]};
  cleave_status_t status = cpu_output_shape(call, 0, work.from->rank, work.from->dims, message);
  if (status == CLEAVE_OK) {
    cpu_parallel(call, work.from->count, CPU_WORK_GRAIN / state->cost, run_range, &work);
  }
  return status;
}

#define ENTRY(name, function)           \
  {.op = name,                          \
   .state_size = sizeof(unary_state_t), \
   .prepare = function,                 \
   .run = run_unary,                    \
   .inplace = 1,                        \
   .required_inputs = 1},

const cpu_kernel_t cpu_kernels_unary[] = {
#define KERNEL_UNARY(name, ...) ENTRY(#name, prepare_unary)
#include "kernels/operators.inc"
    ENTRY("Gelu", prepare_gelu){0},
};
