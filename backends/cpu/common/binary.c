// SPDX-License-Identifier: Apache-2.0
// Runs a row function over two broadcast tensors, converting in blocks if it computes in another dtype.
#include "cpu/common/binary.h"

cleave_status_t cpu_binary_prepare(const cpu_prepare_t *prepare, cpu_binary_state_t *state,
                                   const cpu_row_fn_t *rows, bool to_bool, cleave_message_t *message) {
  state->a = cpu_input_dtype(prepare, 0);
  state->b = cpu_input_dtype(prepare, 1);
  state->out = cpu_output_dtype(prepare, 0);
  state->compute = cpu_dtype_is_short_float(state->a) ? CLEAVE_DTYPE_F32 : state->a;
  state->result = to_bool ? CLEAVE_DTYPE_BOOL : state->compute;
  state->converts = state->compute != state->a;
  state->row = (unsigned)state->compute < CPU_DTYPE_COUNT ? rows[state->compute] : NULL;
  state->cost = state->cost > 0 ? state->cost : 2;
  if (state->row == NULL || state->a != state->b || state->out != (to_bool ? CLEAVE_DTYPE_BOOL : state->a)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "from %s and %s to %s is not supported",
                       cpu_dtype_name(state->a), cpu_dtype_name(state->b), cpu_dtype_name(state->out));
  }
  return CLEAVE_OK;
}

/* One operand of a converted row: a block, or its one element. Returns the stride of what is at `block`. */
// Wide: a strided copy, all of it numbers of the innermost loop.
static int64_t load(const cpu_binary_state_t *state, cleave_dtype_t from, const unsigned char *source,
                    int64_t stride, int64_t start, int64_t count, void *block) {
  cpu_convert(from, source + start * stride, state->compute, block, stride == 0 ? 1 : count);
  return stride == 0 ? 0 : (int64_t)cleave_dtype_size(state->compute);
}

static void convert_row(void *context, unsigned char *const *pointers, const int64_t *strides,
                        int64_t count) {
  const cpu_binary_state_t *state = context;
  double a[CPU_BLOCK];
  double b[CPU_BLOCK];
  double out[CPU_BLOCK];
  int64_t size = (int64_t)cleave_dtype_size(state->out);
  int64_t result_size = (int64_t)cleave_dtype_size(state->result);
  for (int64_t start = 0; start < count; start += CPU_BLOCK) {
    int64_t n = count - start < CPU_BLOCK ? count - start : CPU_BLOCK;
    unsigned char *blocks[3] = {(unsigned char *)out, (unsigned char *)a, (unsigned char *)b};
    int64_t block_strides[3] = {result_size, 0, 0};
    block_strides[1] = load(state, state->a, pointers[1], strides[1], start, n, a);
    block_strides[2] = load(state, state->b, pointers[2], strides[2], start, n, b);
    state->row(context, blocks, block_strides, n);
    cpu_convert(state->result, out, state->out, pointers[0] + start * size, n);
  }
}

void cpu_binary_apply(const cpu_call_t *call, const cpu_binary_state_t *state, cpu_tensor_t *output,
                      const cpu_tensor_t *a, const cpu_tensor_t *b) {
  const cpu_tensor_t *inputs[2] = {a, b};
  cpu_loop_t loop;
  cpu_loop_broadcast(&loop, output, inputs, 2);
  cpu_loop_run(call, &loop, state->converts ? convert_row : state->row, (void *)(uintptr_t)state,
               state->cost);
}

cleave_status_t cpu_binary_run(const cpu_call_t *call, cleave_message_t *message) {
  int32_t rank = 0;
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  cleave_status_t status = cpu_broadcast_shape(call->inputs, 2, &rank, dims, message);
  if (status == CLEAVE_OK) {
    status = cpu_output_shape(call, 0, rank, dims, message);
  }
  if (status == CLEAVE_OK) {
    cpu_binary_apply(call, call->state, call->outputs[0], call->inputs[0], call->inputs[1]);
  }
  return status;
}
