// SPDX-License-Identifier: Apache-2.0
// MatMulInteger and QLinearMatMul: products of 8-bit integers with zero points, summed in int32. Parameters
// are given once, once per row of A, or once per column of B.
#include <math.h>

#include "cpu/products/matmul.h"

typedef struct integer_state {
  bool quantized;  // QLinearMatMul
} integer_state_t;

typedef struct integer_matmul {
  cpu_matmul_t plan;
  const cpu_tensor_t *a;
  const cpu_tensor_t *b;
  const cpu_tensor_t *a_zero;  // or NULL
  const cpu_tensor_t *b_zero;  // or NULL
  const cpu_tensor_t *a_scale;
  const cpu_tensor_t *b_scale;
  const cpu_tensor_t *y_scale;  // NULL: the output is the sum
  const cpu_tensor_t *y_zero;
  cpu_tensor_t *y;
} integer_matmul_t;

static int64_t pick(const cpu_tensor_t *tensor, int64_t index) {
  return tensor->count == 1 ? 0 : index;
}

// Rows of A that differ in their parameters: those of one matrix, or of all if they were folded together.
static cleave_status_t check_parameter(const char *name, const cpu_tensor_t *tensor, int64_t count,
                                       cleave_message_t *message) {
  return tensor == NULL || tensor->count == 1 ? CLEAVE_OK : cpu_nn_check_count(name, tensor, count, message);
}

static void store_quantized(const integer_matmul_t *c, int64_t row, int64_t column, int64_t at, int32_t sum) {
  double factor = cpu_read_float(c->a_scale, pick(c->a_scale, row)) *
                  cpu_read_float(c->b_scale, pick(c->b_scale, column)) / cpu_read_float(c->y_scale, 0);
  double value =
      nearbyint((double)sum * factor) + (c->y_zero != NULL ? (double)cpu_read_int(c->y_zero, 0) : 0);
  bool is_signed = c->y->dtype == CLEAVE_DTYPE_I8;
  double low = is_signed ? INT8_MIN : 0;
  double high = is_signed ? INT8_MAX : UINT8_MAX;
  cpu_write_float(c->y, at, value >= low ? (value <= high ? value : high) : low);
}

// Items are rows of all batches.
static void integer_rows(void *context, int64_t begin, int64_t end) {
  const integer_matmul_t *c = context;
  const cpu_matmul_t *plan = &c->plan;
  for (int64_t item = begin; item < end; item++) {
    int64_t row = item % plan->m;
    int64_t a = 0;
    int64_t b = 0;
    cpu_matmul_offsets(plan, item / plan->m, &a, &b);
    int32_t a_zero = c->a_zero != NULL ? (int32_t)cpu_read_int(c->a_zero, pick(c->a_zero, row)) : 0;
    for (int64_t column = 0; column < plan->n; column++) {
      int32_t b_zero = c->b_zero != NULL ? (int32_t)cpu_read_int(c->b_zero, pick(c->b_zero, column)) : 0;
      uint32_t sum = 0;
      for (int64_t k = 0; k < plan->k; k++) {
        int32_t product = (cpu_read_byte(c->a, a + row * plan->k + k) - a_zero) *
                          (cpu_read_byte(c->b, b + k * plan->n + column) - b_zero);
        sum += (uint32_t)product;
      }
      int64_t at = item * plan->n + column;
      if (c->y_scale != NULL) {
        store_quantized(c, row, column, at, (int32_t)sum);
      } else {
        ((int32_t *)c->y->data)[at] = (int32_t)sum;
      }
    }
  }
}

static cleave_status_t integer_run(const cpu_call_t *call, cleave_message_t *message) {
  const integer_state_t *state = call->state;
  CPU_TRY(cpu_nn_check_outputs(call, message));
  integer_matmul_t context = {.a = call->inputs[0], .y = call->outputs[0]};
  if (state->quantized) {
    context.a_scale = call->inputs[1];
    context.a_zero = call->inputs[2];
    context.b = call->inputs[3];
    context.b_scale = call->inputs[4];
    context.b_zero = call->inputs[5];
    context.y_scale = call->inputs[6];
    context.y_zero = call->inputs[7];
  } else {
    context.b = call->inputs[1];
    context.a_zero = cpu_input(call, 2);
    context.b_zero = cpu_input(call, 3);
  }
  CPU_TRY(cpu_matmul_resolve(context.a, context.b, context.y, &context.plan, message));
  CPU_TRY(check_parameter("zero point of A", context.a_zero, context.plan.m, message));
  CPU_TRY(check_parameter("zero point of B", context.b_zero, context.plan.n, message));
  CPU_TRY(check_parameter("scale of A", context.a_scale, context.plan.m, message));
  CPU_TRY(check_parameter("scale of B", context.b_scale, context.plan.n, message));
  CPU_TRY(check_parameter("scale of Y", context.y_scale, 1, message));
  CPU_TRY(check_parameter("zero point of Y", context.y_zero, 1, message));
  if (context.y->count > 0) {
    cpu_parallel(call, context.plan.batches * context.plan.m, cpu_nn_grain(context.plan.n * context.plan.k),
                 integer_rows, &context);
  }
  return CLEAVE_OK;
}

static cleave_status_t integer_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)state;
  CPU_TRY(cpu_nn_require_output(prepare, 0, CPU_NN_ONE(CLEAVE_DTYPE_I32), message));
  CPU_TRY(cpu_nn_require_dtype(prepare, 0, CPU_NN_BYTES, message));
  return cpu_nn_require_dtype(prepare, 1, CPU_NN_BYTES, message);
}

static cleave_status_t quantized_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  static const uint32_t dtypes[] = {CPU_NN_BYTES,  CPU_NN_FLOATS, CPU_NN_BYTES,  CPU_NN_BYTES,
                                    CPU_NN_FLOATS, CPU_NN_BYTES,  CPU_NN_FLOATS, CPU_NN_BYTES};
  integer_state_t *integer = state;
  integer->quantized = true;
  CPU_TRY(cpu_nn_require_output(prepare, 0, CPU_NN_BYTES, message));
  for (uint32_t k = 0; k < 8; k++) {
    CPU_TRY(cpu_nn_require_dtype(prepare, k, dtypes[k], message));
  }
  return CLEAVE_OK;
}

const cpu_kernel_t cpu_kernels_matmul_integer[] = {
    CPU_KERNEL("MatMulInteger", 2, .state_size = sizeof(integer_state_t), .prepare = integer_prepare,
               .run = integer_run),
    CPU_KERNEL("QLinearMatMul", 8, .state_size = sizeof(integer_state_t), .prepare = quantized_prepare,
               .run = integer_run),
    {.op = NULL},
};
