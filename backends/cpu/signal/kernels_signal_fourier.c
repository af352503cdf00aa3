// SPDX-License-Identifier: Apache-2.0
// DFT (opset 20) and STFT (opset 17). Scratch memory is planned from the output's shape: its extent along the
// transformed axis leaves at most two lengths open. Complex numbers are pairs along the last axis.
#include "cpu/signal/signal.h"

typedef struct fourier_state {
  int64_t axis;  // DFT before opset 20: an attribute
  bool inverse;
  bool onesided;
} fourier_state_t;

// Memory for a transform whose output has `bins` of its elements.
static size_t scratch_of_bins(int64_t bins, bool onesided) {
  size_t most = 0;
  int64_t first = onesided ? cpu_nn_multiply(cpu_nn_max(bins - 1, 0), 2) : bins;
  for (int64_t length = first; length <= first + (onesided ? 1 : 0); length++) {
    cpu_carver_t carver = {NULL, 0};
    cpu_fourier_t fourier;
    if (length > 0) {
      cpu_fourier_carve(&carver, length, &fourier);
    }
    most = carver.used > most ? carver.used : most;
  }
  return most;
}

// Real and imaginary part `index` of a tensor whose last axis has one or two entries.
static double part(const cpu_tensor_t *x, int64_t index, int64_t which) {
  int64_t parts = x->dims[x->rank - 1];
  return which < parts ? cpu_read_float(x, index * parts + which) : 0;
}

static void put(cpu_tensor_t *y, int64_t index, double real, double imaginary) {
  int64_t parts = y->dims[y->rank - 1];
  cpu_write_float(y, index * parts, real);
  if (parts > 1) {
    cpu_write_float(y, index * parts + 1, imaginary);
  }
}

static bool has_parts(const cpu_tensor_t *tensor) {
  return tensor->rank >= 2 && (tensor->dims[tensor->rank - 1] == 1 || tensor->dims[tensor->rank - 1] == 2);
}

// ---- DFT ----------------------------------------------------------------------------------------------

static size_t dft_scratch(const cpu_call_t *call) {
  const fourier_state_t *state = call->state;
  const cpu_tensor_t *y = call->outputs[0];
  size_t most = 0;
  for (int32_t d = 0; y != NULL && d + 1 < y->rank; d++) {
    size_t bytes = scratch_of_bins(y->dims[d], state->onesided && !state->inverse);
    most = bytes > most ? bytes : most;
  }
  return most;
}

static cleave_status_t dft_axis(const cpu_call_t *call, int32_t *out_axis, cleave_message_t *message) {
  const fourier_state_t *state = call->state;
  const cpu_tensor_t *axis = cpu_input(call, 2);
  int64_t wanted = state->axis;
  if (axis != NULL) {
    CPU_TRY(cpu_nn_check_count("axis", axis, 1, message));
    wanted = cpu_read_int(axis, 0);
  }
  int32_t rank = call->inputs[0]->rank;
  CPU_TRY(cpu_find_axis(wanted, rank, out_axis, message));
  return *out_axis != rank - 1
             ? CLEAVE_OK
             : kernel_fail(message, CLEAVE_ERROR_SHAPE, "axis %lld holds the parts of complex numbers",
                           (long long)wanted);
}

// Elements that the transform has: what is asked for, or what the input holds.
static cleave_status_t dft_length(const cpu_call_t *call, int32_t axis, int64_t *out_length,
                                  cleave_message_t *message) {
  const fourier_state_t *state = call->state;
  const cpu_tensor_t *asked = cpu_input(call, 1);
  int64_t bins = call->outputs[0]->dims[axis];
  int64_t given = call->inputs[0]->dims[axis];
  bool halved = state->onesided && state->inverse;
  int64_t length = halved ? 2 * (given - 1) : given;
  if (asked != NULL) {
    CPU_TRY(cpu_nn_check_count("dft_length", asked, 1, message));
    length = cpu_read_int(asked, 0);
  }
  int64_t expected = state->onesided && !state->inverse ? length / 2 + 1 : length;
  if (length < 1 || expected != bins) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "a transform of length %lld does not give %lld element%s",
                       (long long)length, (long long)bins, KERNEL_PLURAL(bins));
  }
  *out_length = length;
  return CLEAVE_OK;
}

static void load_row(const fourier_state_t *state, const cpu_tensor_t *x, int64_t start, int64_t stride,
                     int64_t given, cpu_fourier_t *fourier) {
  for (int64_t k = 0; k < fourier->length; k++) {
    // The upper half of a real signal's spectrum mirrors the lower one.
    bool mirrored = state->onesided && state->inverse && k > fourier->length / 2;
    int64_t from = mirrored ? fourier->length - k : k;
    bool inside = from < given;
    fourier->real[k] = inside ? part(x, start + from * stride, 0) : 0;
    fourier->imaginary[k] = inside ? part(x, start + from * stride, 1) * (mirrored ? -1 : 1) : 0;
  }
}

static cleave_status_t dft_run(const cpu_call_t *call, cleave_message_t *message) {
  const fourier_state_t *state = call->state;
  const cpu_tensor_t *x = call->inputs[0];
  cpu_tensor_t *y = call->outputs[0];
  int32_t axis = 0;
  int64_t length = 0;
  CPU_TRY(cpu_nn_check_outputs(call, message));
  if (!has_parts(x) || !has_parts(y) || x->rank != y->rank) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "input and output are not tensors of complex numbers");
  }
  CPU_TRY(dft_axis(call, &axis, message));
  for (int32_t d = 0; d + 1 < x->rank; d++) {
    if (d != axis && x->dims[d] != y->dims[d]) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "input and output differ on axis %d", d);
    }
  }
  if (y->count == 0) {
    return CLEAVE_OK;
  }
  CPU_TRY(dft_length(call, axis, &length, message));
  cpu_carver_t carver = {call->scratch, 0};
  cpu_fourier_t fourier;
  cpu_fourier_carve(&carver, length, &fourier);
  cpu_fourier_prepare(&fourier);
  int64_t stride = cpu_nn_span(x, axis + 1, x->rank - 1);
  int64_t rows = cpu_nn_span(y, 0, axis) * stride;
  for (int64_t row = 0; row < rows; row++) {
    int64_t outer = row / stride;
    load_row(state, x, outer * x->dims[axis] * stride + row % stride, stride, x->dims[axis], &fourier);
    cpu_fourier_run(&fourier, state->inverse);
    for (int64_t k = 0; k < y->dims[axis]; k++) {
      put(y, (outer * y->dims[axis] + k) * stride + row % stride, fourier.real[k], fourier.imaginary[k]);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t dft_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  fourier_state_t *fourier = state;
  fourier->axis = cleave_view_int(prepare->node, "axis", -2);
  fourier->inverse = cleave_view_int(prepare->node, "inverse", 0) != 0;
  fourier->onesided = cleave_view_int(prepare->node, "onesided", 0) != 0;
  CPU_TRY(cpu_nn_require_output(prepare, 0, CPU_NN_FLOATS, message));
  return cpu_nn_require_float(prepare, 0, message);
}

// ---- STFT ---------------------------------------------------------------------------------------------

static size_t stft_scratch(const cpu_call_t *call) {
  const fourier_state_t *state = call->state;
  const cpu_tensor_t *y = call->outputs[0];
  return y != NULL && y->rank == 4 ? scratch_of_bins(y->dims[2], state->onesided) : 0;
}

static cleave_status_t stft_length(const cpu_call_t *call, int64_t *out_length, cleave_message_t *message) {
  const fourier_state_t *state = call->state;
  const cpu_tensor_t *window = cpu_input(call, 2);
  const cpu_tensor_t *frame = cpu_input(call, 3);
  int64_t bins = call->outputs[0]->dims[2];
  int64_t length = window != NULL ? window->count : 0;
  if (frame != NULL) {
    CPU_TRY(cpu_nn_check_count("frame_length", frame, 1, message));
    length = cpu_read_int(frame, 0);
  }
  if (length < 1 || length >= CPU_NN_MAX_EXTENT || (window != NULL && window->count != length) ||
      bins != (state->onesided ? length / 2 + 1 : length)) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE,
                       "frames of %lld element%s do not fit the window or %lld bin%s", (long long)length,
                       KERNEL_PLURAL(length), (long long)bins, KERNEL_PLURAL(bins));
  }
  *out_length = length;
  return CLEAVE_OK;
}

static cleave_status_t stft_run(const cpu_call_t *call, cleave_message_t *message) {
  const cpu_tensor_t *x = call->inputs[0];
  const cpu_tensor_t *window = cpu_input(call, 2);
  cpu_tensor_t *y = call->outputs[0];
  int64_t length = 0;
  CPU_TRY(cpu_nn_check_outputs(call, message));
  CPU_TRY(cpu_nn_check_count("frame_step", call->inputs[1], 1, message));
  int64_t step = cpu_read_int(call->inputs[1], 0);
  if (y->rank != 4 || y->dims[3] != 2 || x->rank < 2 || x->rank > 3 || (x->rank == 3 && !has_parts(x)) ||
      x->dims[0] != y->dims[0]) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "a signal of rank %d does not fit an output of rank %d",
                       x->rank, y->rank);
  }
  if (y->count == 0) {
    return CLEAVE_OK;
  }
  CPU_TRY(stft_length(call, &length, message));
  if (step < 1 || step >= CPU_NN_MAX_EXTENT || y->dims[1] > CPU_NN_MAX_EXTENT ||
      (y->dims[1] - 1) * step + length > x->dims[1]) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%lld frame%s every %lld element%s leave the signal",
                       (long long)y->dims[1], KERNEL_PLURAL(y->dims[1]), (long long)step,
                       KERNEL_PLURAL(step));
  }
  cpu_carver_t carver = {call->scratch, 0};
  cpu_fourier_t fourier;
  cpu_fourier_carve(&carver, length, &fourier);
  cpu_fourier_prepare(&fourier);
  int64_t parts = x->rank == 3 ? x->dims[2] : 1;
  for (int64_t item = 0; item < y->dims[0] * y->dims[1]; item++) {
    int64_t start = item / y->dims[1] * x->dims[1] + item % y->dims[1] * step;
    for (int64_t k = 0; k < length; k++) {
      double weight = window != NULL ? cpu_read_float(window, k) : 1;
      fourier.real[k] = cpu_read_float(x, (start + k) * parts) * weight;
      fourier.imaginary[k] = parts > 1 ? cpu_read_float(x, (start + k) * parts + 1) * weight : 0;
    }
    cpu_fourier_run(&fourier, false);
    for (int64_t k = 0; k < y->dims[2]; k++) {
      put(y, item * y->dims[2] + k, fourier.real[k], fourier.imaginary[k]);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t stft_prepare(cpu_prepare_t *prepare, void *state, cleave_message_t *message) {
  fourier_state_t *fourier = state;
  fourier->onesided = cleave_view_int(prepare->node, "onesided", 1) != 0;
  if (cpu_input_dtype(prepare, 2) != CLEAVE_DTYPE_UNKNOWN) {
    CPU_TRY(cpu_nn_require_float(prepare, 2, message));
  }
  CPU_TRY(cpu_nn_require_output(prepare, 0, CPU_NN_FLOATS, message));
  return cpu_nn_require_float(prepare, 0, message);
}

const cpu_kernel_t cpu_kernels_signal_fourier[] = {
    CPU_KERNEL("DFT", 1, .state_size = sizeof(fourier_state_t), .prepare = dft_prepare,
               .scratch = dft_scratch, .run = dft_run),
    CPU_KERNEL("STFT", 2, .state_size = sizeof(fourier_state_t), .prepare = stft_prepare,
               .scratch = stft_scratch, .run = stft_run),
    {.op = NULL},
};
