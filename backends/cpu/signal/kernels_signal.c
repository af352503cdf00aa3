// SPDX-License-Identifier: Apache-2.0
// HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix (opset 17): tables from a few numbers. Sizes
// come from the output's shape; edges outside of the table are dropped.
#include <math.h>
#include <string.h>

#include "cpu/common/nn.h"

typedef struct window_state {
  double coefficients[3];  // of 1, cos(2 pi n / N) and cos(4 pi n / N)
  bool periodic;
} window_state_t;

static cleave_status_t window_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  static const struct {
    const char *op;
    double coefficients[3];
  } windows[] = {{"HannWindow", {0.5, -0.5, 0}},
                 {"HammingWindow", {25.0 / 46, -21.0 / 46, 0}},
                 {"BlackmanWindow", {0.42, -0.5, 0.08}}};
  window_state_t *window = state;
  for (size_t k = 0; k < sizeof windows / sizeof windows[0]; k++) {
    if (strcmp(prepare->node->op, windows[k].op) == 0) {
      memcpy(window->coefficients, windows[k].coefficients, sizeof window->coefficients);
    }
  }
  window->periodic = cleave_view_int(prepare->node, "periodic", 1) != 0;
  CPU_TRY(
      cpu_nn_require_dtype(prepare, 0, CPU_NN_ONE(CLEAVE_DTYPE_I32) | CPU_NN_ONE(CLEAVE_DTYPE_I64), message));
  return cpu_nn_require_output(
      prepare, 0, ~(CPU_NN_ONE(CLEAVE_DTYPE_UNKNOWN) | CPU_NN_ONE(CLEAVE_DTYPE_STRING)), message);
}

static cleave_status_t window_run(const cpu_call_t *call, cleave_message_t *message) {
  const window_state_t *state = call->state;
  const double pi = 3.14159265358979323846;
  CPU_TRY(cpu_nn_check_count("size", call->inputs[0], 1, message));
  const int64_t dims[] = {cpu_read_int(call->inputs[0], 0)};
  CPU_TRY(cpu_output_shape(call, 0, 1, dims, message));
  cpu_tensor_t *y = call->outputs[0];
  double length = (double)cpu_nn_max(state->periodic ? y->count : y->count - 1, 1);
  for (int64_t n = 0; n < y->count; n++) {
    double angle = 2 * pi * (double)n / length;
    cpu_write_float(y, n,
                    state->coefficients[0] + state->coefficients[1] * cos(angle) +
                        state->coefficients[2] * cos(2 * angle));
  }
  return CLEAVE_OK;
}

// ---- MelWeightMatrix ----------------------------------------------------------------------------------

static double mel_of(double hertz) {
  return 2595 * log10(1 + hertz / 700);
}

static double hertz_of(double mel) {
  return 700 * (pow(10, mel / 2595) - 1);
}

// Writes where the row is in the table; bands beyond the spectrum lie outside.
static void put(cpu_tensor_t *y, double row, int64_t column, double value) {
  if (row >= 0 && row < (double)y->dims[0]) {
    cpu_write_float(y, (int64_t)row * y->dims[1] + column, value);
  }
}

static cleave_status_t mel_run(const cpu_call_t *call, cleave_message_t *message) {
  static const char *const names[] = {"num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz",
                                      "upper_edge_hertz"};
  double numbers[5];
  for (uint32_t k = 0; k < 5; k++) {
    CPU_TRY(cpu_nn_check_count(names[k], call->inputs[k], 1, message));
    numbers[k] = cpu_read_float(call->inputs[k], 0);
  }
  if (!(numbers[0] >= 0 && numbers[0] < 0x1p31 && numbers[1] >= 0 && numbers[1] < 0x1p31 && numbers[2] > 0)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%g bins of a transform of length %g at rate %g",
                       numbers[0], numbers[1], numbers[2]);
  }
  const int64_t dims[] = {(int64_t)numbers[1] / 2 + 1, (int64_t)numbers[0]};
  CPU_TRY(cpu_output_shape(call, 0, 2, dims, message));
  cpu_tensor_t *y = call->outputs[0];
  if (y->count > 0) {
    memset(y->data, 0, (size_t)y->count * cleave_dtype_size(y->dtype));
  }
  double low = mel_of(numbers[3]);
  double step = (mel_of(numbers[4]) - low) / (numbers[0] + 2);
  double limit = (double)dims[0];
  for (int64_t band = 0; band < dims[1]; band++) {
    double edges[3];
    for (int k = 0; k < 3; k++) {
      double hertz = hertz_of((double)(band + k) * step + low);
      double edge = floor((numbers[1] + 1) * hertz / numbers[2]);
      // Beyond the table the position no longer matters, only that it is beyond.
      edges[k] = edge > -1 ? (edge < limit ? edge : limit) : -1;
    }
    if (edges[1] == edges[0]) {
      put(y, edges[1], band, 1);
    }
    for (double row = edges[0]; row <= edges[1] && edges[1] > edges[0]; row++) {
      put(y, row, band, (row - edges[0]) / (edges[1] - edges[0]));
    }
    for (double row = edges[1]; row < edges[2]; row++) {
      put(y, row, band, (edges[2] - row) / (edges[2] - edges[1]));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t mel_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  (void)state;
  CPU_TRY(cpu_nn_require_output(prepare, 0, CPU_NN_FLOATS | CPU_NN_WIDE_INTEGERS, message));
  for (uint32_t k = 0; k < 3; k++) {
    CPU_TRY(cpu_nn_require_dtype(prepare, k, CPU_NN_ONE(CLEAVE_DTYPE_I32) | CPU_NN_ONE(CLEAVE_DTYPE_I64),
                                 message));
  }
  CPU_TRY(cpu_nn_require_float(prepare, 3, message));
  return cpu_nn_require_float(prepare, 4, message);
}

const cpu_kernel_t cpu_kernels_signal[] = {
    CPU_KERNEL("HannWindow", 1, .state_size = sizeof(window_state_t), .prepare = window_prepare,
               .run = window_run),
    CPU_KERNEL("HammingWindow", 1, .state_size = sizeof(window_state_t), .prepare = window_prepare,
               .run = window_run),
    CPU_KERNEL("BlackmanWindow", 1, .state_size = sizeof(window_state_t), .prepare = window_prepare,
               .run = window_run),
    CPU_KERNEL("MelWeightMatrix", 5, .prepare = mel_prepare, .run = mel_run),
    {.op = NULL},
};
