// SPDX-License-Identifier: Apache-2.0
// ReverseSequence, which turns the first elements of every batch around along the time axis; and Det, the
// determinant of a batch of matrices.
#include <math.h>
#include <string.h>

#include "cpu/common/index.h"
#include "cpu/common/loop.h"
#include "kernels/convert.h"

typedef struct reverse_state {
  int64_t time_axis;
  int64_t batch_axis;
} reverse_state_t;

static cleave_status_t prepare_reverse(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  reverse_state_t *self = state;
  self->time_axis = cleave_view_int(prepare->node, "time_axis", 0);
  self->batch_axis = cleave_view_int(prepare->node, "batch_axis", 1);
  bool fits =
      (self->time_axis == 0 && self->batch_axis == 1) || (self->time_axis == 1 && self->batch_axis == 0);
  return fits ? CLEAVE_OK
              : kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED,
                            "time_axis and batch_axis are %lld and %lld, expected 0 and 1",
                            (long long)self->time_axis, (long long)self->batch_axis);
}

static cleave_status_t run_reverse(const cpu_call_t *call, cleave_message_t *message) {
  const reverse_state_t *state = call->state;
  const cpu_tensor_t *data = call->inputs[0];
  const cpu_tensor_t *lengths = call->inputs[1];
  if (data->rank < 2 || lengths->count != data->dims[state->batch_axis]) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%lld length%s cannot fit the data",
                       (long long)lengths->count, KERNEL_PLURAL(lengths->count));
  }
  int64_t times = data->dims[state->time_axis];
  int64_t batches = data->dims[state->batch_axis];
  for (int64_t b = 0; b < batches; b++) {
    if (cpu_read_int(lengths, b) < 0 || cpu_read_int(lengths, b) > times) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "length %lld of batch %lld is outside 0 to %lld",
                         (long long)cpu_read_int(lengths, b), (long long)b, (long long)times);
    }
  }
  CPU_TRY(cpu_output_shape(call, 0, data->rank, data->dims, message));
  size_t bytes = (size_t)cpu_count(data->rank - 2, data->dims + 2) * cleave_dtype_size(data->dtype);
  int64_t time_step = state->time_axis == 0 ? batches : 1;
  int64_t batch_step = state->time_axis == 0 ? 1 : times;
  for (int64_t b = 0; b < batches; b++) {
    int64_t length = cpu_read_int(lengths, b);
    for (int64_t t = 0; t < times; t++) {
      int64_t from = t < length ? length - 1 - t : t;
      memcpy((unsigned char *)call->outputs[0]->data + (size_t)(t * time_step + b * batch_step) * bytes,
             (const unsigned char *)data->data + (size_t)(from * time_step + b * batch_step) * bytes, bytes);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t prepare_det(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)state;
  cleave_dtype_t dtype = cpu_input_dtype(prepare, 0);
  if (!cpu_dtype_is_float(dtype) || cpu_output_dtype(prepare, 0) != dtype) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "dtype %s is not supported", cpu_dtype_name(dtype));
  }
  return CLEAVE_OK;
}

/* One matrix in double. */
static size_t det_scratch(const cpu_call_t *call) {
  const cpu_tensor_t *data = call->inputs[0];
  int64_t n = data->rank < 2 ? 0 : data->dims[data->rank - 1];
  return n > INT32_MAX ? 0 : (size_t)n * (size_t)n * sizeof(double);
}

/* Elimination with row pivots; destroys the matrix. */
static double determinant(double *matrix, int64_t n) {
  double product = 1.0;
  for (int64_t k = 0; k < n; k++) {
    int64_t pivot = k;
    for (int64_t r = k + 1; r < n; r++) {
      pivot = fabs(matrix[r * n + k]) > fabs(matrix[pivot * n + k]) ? r : pivot;
    }
    if (matrix[pivot * n + k] == 0.0) {
      return 0.0;
    }
    for (int64_t c = 0; c < n && pivot != k; c++) {
      double swapped = matrix[k * n + c];
      matrix[k * n + c] = matrix[pivot * n + c];
      matrix[pivot * n + c] = swapped;
    }
    product *= pivot == k ? matrix[k * n + k] : -matrix[k * n + k];
    for (int64_t r = k + 1; r < n; r++) {
      double factor = matrix[r * n + k] / matrix[k * n + k];
      for (int64_t c = k; c < n; c++) {
        matrix[r * n + c] -= factor * matrix[k * n + c];
      }
    }
  }
  return product;
}

static cleave_status_t run_det(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *data = call->inputs[0];
  int64_t n = data->rank < 2 ? 0 : data->dims[data->rank - 1];
  if (data->rank < 2 || data->dims[data->rank - 2] != n || n > INT32_MAX) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "the last two dims are not those of a square matrix");
  }
  cleave_status_t status = cpu_output_shape(call, 0, data->rank - 2, data->dims, message);
  for (int64_t k = 0; status == CLEAVE_OK && k < call->outputs[0]->count; k++) {
    const unsigned char *from =
        (const unsigned char *)data->data + (size_t)(k * n * n) * cleave_dtype_size(data->dtype);
    cpu_convert(data->dtype, from, CLEAVE_DTYPE_F64, call->scratch, n * n);
    cpu_write_float(call->outputs[0], k, determinant(call->scratch, n));
  }
  return status;
}

const cpu_kernel_t cpu_kernels_sequence[] = {
    CPU_KERNEL("ReverseSequence", 2, .state_size = sizeof(reverse_state_t), .prepare = prepare_reverse,
               .run = run_reverse),
    CPU_KERNEL("Det", 1, .prepare = prepare_det, .scratch = det_scratch, .run = run_det),
    {0},
};
