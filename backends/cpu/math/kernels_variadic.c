// SPDX-License-Identifier: Apache-2.0
// Max, Min, Sum and Mean of any number of broadcast inputs: the first two go to the output, each further one
// is applied to the output in place. NaN wins in Max and Min.
#include "cpu/common/binary.h"

#define BETTER(x, y, comparison) ((x)comparison(y) || (x) != (x) ? (x) : (y))

CPU_BINARY_ROW(CPU_VECTOR, max_f32, float, float, BETTER(x, y, >))
CPU_BINARY_ROW(CPU_VECTOR, min_f32, float, float, BETTER(x, y, <))
CPU_BINARY_ROW(CPU_VECTOR, sum_f32, float, float, x + y)
CPU_BINARY_ROW(CPU_VECTOR, quotient_f32, float, float, x / y)
CPU_BINARY_ROW(, max_f64, double, double, BETTER(x, y, >))
CPU_BINARY_ROW(, min_f64, double, double, BETTER(x, y, <))
CPU_BINARY_ROW(, sum_f64, double, double, x + y)
CPU_BINARY_ROW(, quotient_f64, double, double, x / y)

#define INTEGER_ROWS(t, T, W)                    \
  CPU_BINARY_ROW(, max_##t, T, T, x > y ? x : y) \
  CPU_BINARY_ROW(, min_##t, T, T, x < y ? x : y) \
  CPU_BINARY_ROW(, sum_##t, T, T, (W)x + (W)y)

CPU_INTEGER_TYPES(INTEGER_ROWS)

static const cpu_row_fn_t max_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(max)};
static const cpu_row_fn_t min_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(min)};
static const cpu_row_fn_t sum_rows[CPU_DTYPE_COUNT] = {CPU_NUMBER_ROWS(sum)};

typedef struct variadic_state {
  cpu_binary_state_t binary;
  bool is_mean;
} variadic_state_t;

static cleave_status_t prepare_variadic(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  variadic_state_t *self = state;
  const char *op = prepare->node->op;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  const cpu_row_fn_t *rows = cleave_view_text_equal(op, "Max")   ? max_rows
                             : cleave_view_text_equal(op, "Min") ? min_rows
                                                                 : sum_rows;
  self->is_mean = cleave_view_text_equal(op, "Mean");
  if (self->is_mean && !cpu_dtype_is_float(dtype)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "dtype %s is not supported", cpu_dtype_name(dtype));
  }
  for (uint32_t k = 1; k < prepare->node->input_count; k++) {
    if (cpu_input_dtype(prepare, k) != dtype) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "input %u is %s, expected %s", (unsigned)k,
                         cpu_dtype_name(cpu_input_dtype(prepare, k)), cpu_dtype_name(dtype));
    }
  }
  cpu_binary_state_t *binary = &self->binary;
  binary->a = dtype;
  binary->b = dtype;
  binary->out = cpu_output_dtype(prepare, 0);
  binary->compute = cpu_dtype_is_short_float(dtype) ? CLEAVE_DTYPE_F32 : dtype;
  binary->result = binary->compute;
  binary->converts = binary->compute != dtype;
  binary->row = (unsigned)binary->compute < CPU_DTYPE_COUNT ? rows[binary->compute] : NULL;
  binary->cost = 2;
  if (binary->row == NULL || binary->out != dtype) {
    return cpu_fail_types(prepare, message);
  }
  return CLEAVE_OK;
}

/* Divides the output by the number of inputs. */
static void divide(const cpu_call_t *call, const cpu_binary_state_t *sum, uint32_t count) {
  cpu_binary_state_t quotient = *sum;
  float single = (float)count;
  double wide = (double)count;
  bool is_wide = sum->compute == CLEAVE_DTYPE_F64;
  cpu_tensor_t divisor = {
      .dtype = sum->compute, .count = 1, .data = is_wide ? (void *)&wide : (void *)&single};
  quotient.row = is_wide ? quotient_f64 : quotient_f32;
  quotient.b = sum->compute;
  cpu_binary_apply(call, &quotient, call->outputs[0], call->outputs[0], &divisor);
}

static cleave_status_t run_variadic(const cpu_call_t *call, cleave_message_t *message) {
  const variadic_state_t *state = call->state;
  int32_t rank = 0;
  int64_t dims[CLEAVE_MAX_RANK] = {0};
  cleave_status_t status = cpu_broadcast_shape(call->inputs, call->input_count, &rank, dims, message);
  if (status == CLEAVE_OK) {
    status = cpu_output_shape(call, 0, rank, dims, message);
  }
  if (status != CLEAVE_OK) {
    return status;
  }
  cpu_tensor_t *output = call->outputs[0];
  if (call->input_count == 1) {
    cpu_copy(call, output->data, call->inputs[0]->data,
             output->count * (int64_t)cleave_dtype_size(output->dtype));
    return CLEAVE_OK;
  }
  cpu_binary_apply(call, &state->binary, output, call->inputs[0], call->inputs[1]);
  for (uint32_t k = 2; k < call->input_count; k++) {
    cpu_binary_apply(call, &state->binary, output, output, call->inputs[k]);
  }
  if (state->is_mean) {
    divide(call, &state->binary, call->input_count);
  }
  return CLEAVE_OK;
}

#define KERNEL(name)                                                                                      \
  {                                                                                                       \
    .op = name, .state_size = sizeof(variadic_state_t), .prepare = prepare_variadic, .run = run_variadic, \
    .inplace = 3, .required_inputs = 1                                                                    \
  }

const cpu_kernel_t cpu_kernels_variadic[] = {
    KERNEL("Max"), KERNEL("Min"), KERNEL("Sum"), KERNEL("Mean"), {0},
};
