// SPDX-License-Identifier: Apache-2.0
// Runs a loop over one float tensor: in pieces on the threads of the call, short floats in blocks.
#include "unary.h"

#include "loop.h"

cleave_status_t cpu_unary_prepare(cpu_prepare_t *prepare, cpu_unary_state_t *state,
                                  const cpu_unary_entry_t *entries, size_t count, const char *variant,
                                  cleave_message_t *message) {
  const char *wanted = variant != NULL ? variant : prepare->node->op;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  if (!cpu_dtype_is_float(dtype) || cpu_output_dtype(prepare, 0) != dtype) {
    return cpu_fail(message, CLEAVE_ERROR_UNSUPPORTED, "from %s to %s is not supported",
                    cpu_dtype_name(dtype), cpu_dtype_name(cpu_output_dtype(prepare, 0)));
  }
  for (size_t k = 0; k < count; k++) {
    if (cleave_view_text_equal(entries[k].op, wanted)) {
      state->entry = &entries[k];
      state->alpha = cleave_view_float(prepare->node, entries[k].alpha_name, entries[k].alpha);
      state->beta = cleave_view_float(prepare->node, entries[k].beta_name, entries[k].beta);
      return CLEAVE_OK;
    }
  }
  return cpu_fail(message, CLEAVE_ERROR_INTERNAL, "'%s' is not in the table", wanted);
}

typedef struct unary_work {
  const cpu_unary_state_t *state;
  const cpu_tensor_t *from;
  cpu_tensor_t *to;
} unary_work_t;

static void run_short(const unary_work_t *work, int64_t begin, int64_t end) {
  const cpu_unary_state_t *state = work->state;
  const uint16_t *from = work->from->data;
  uint16_t *to = work->to->data;
  float block[CPU_BLOCK];
  for (int64_t k = begin; k < end; k += CPU_BLOCK) {
    int64_t count = end - k < CPU_BLOCK ? end - k : CPU_BLOCK;
    cpu_convert(work->from->dtype, from + k, CLEAVE_DTYPE_F32, block, count);
    state->entry->f32(block, block, count, (float)state->alpha, (float)state->beta);
    cpu_convert(CLEAVE_DTYPE_F32, block, work->to->dtype, to + k, count);
  }
}

static void run_range(void *context, int64_t begin, int64_t end) {
  const unary_work_t *work = context;
  const cpu_unary_state_t *state = work->state;
  if (work->from->dtype == CLEAVE_DTYPE_F32) {
    state->entry->f32((const float *)work->from->data + begin, (float *)work->to->data + begin, end - begin,
                      (float)state->alpha, (float)state->beta);
  } else if (work->from->dtype == CLEAVE_DTYPE_F64) {
    state->entry->f64((const double *)work->from->data + begin, (double *)work->to->data + begin, end - begin,
                      state->alpha, state->beta);
  } else {
    run_short(work, begin, end);
  }
}

cleave_status_t cpu_unary_run(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_unary_state_t *state = call->state;
  unary_work_t work = {.state = state, .from = call->inputs[0], .to = call->outputs[0]};
  cleave_status_t status = cpu_output_shape(call, 0, work.from->rank, work.from->dims, message);
  if (status == CLEAVE_OK) {
    cpu_parallel(call, work.from->count, CPU_WORK_GRAIN / state->entry->cost, run_range, &work);
  }
  return status;
}
