// SPDX-License-Identifier: Apache-2.0
// Checks, float16 through float32, and scratch layout for the neural-network kernels.
// The float32 copies lie at the front of the scratch memory, the inner kernel's own scratch behind them.
#include "cpu/common/nn.h"

#include "kernels/convert.h"

// LSTM has the most: eight inputs, three outputs.
#define MAX_TENSORS 8

cleave_status_t cpu_nn_require_dtype(const cpu_prepare_t *prepare, uint32_t index, uint32_t dtypes,
                                     cleave_message_t *message) {
  cleave_dtype_t dtype = cpu_input_dtype(prepare, index);
  if (dtype == CLEAVE_DTYPE_UNKNOWN || (uint32_t)dtype >= 32 || (dtypes >> (uint32_t)dtype & 1u) == 0) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "input %u of dtype %s is not supported", index,
                       cpu_dtype_name(dtype));
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_nn_require_float(const cpu_prepare_t *prepare, uint32_t index,
                                     cleave_message_t *message) {
  return cpu_nn_require_dtype(prepare, index, CPU_NN_FLOATS, message);
}

cleave_status_t cpu_nn_require_same(const cpu_prepare_t *prepare, uint32_t first, uint32_t last,
                                    cleave_message_t *message) {
  cleave_dtype_t expected = cpu_input_dtype(prepare, 0);
  for (uint32_t index = first; index <= last; index++) {
    cleave_dtype_t dtype = cpu_input_dtype(prepare, index);
    if (dtype != CLEAVE_DTYPE_UNKNOWN && dtype != expected) {
      return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "input %u is %s, expected %s as input 0", index,
                         cpu_dtype_name(dtype), cpu_dtype_name(expected));
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_nn_require_output(const cpu_prepare_t *prepare, uint32_t index, uint32_t dtypes,
                                      cleave_message_t *message) {
  cleave_dtype_t dtype = cpu_output_dtype(prepare, index);
  if (dtype != CLEAVE_DTYPE_UNKNOWN && ((uint32_t)dtype >= 32 || (dtypes >> (uint32_t)dtype & 1u) == 0)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "output %u of dtype %s is not supported", index,
                       cpu_dtype_name(dtype));
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_nn_require_same_outputs(const cpu_prepare_t *prepare, uint32_t last,
                                            cleave_message_t *message) {
  for (uint32_t index = 0; index <= last; index++) {
    CPU_TRY(cpu_nn_require_output(prepare, index, CPU_NN_ONE(cpu_input_dtype(prepare, 0)), message));
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_nn_check_count(const char *name, const cpu_tensor_t *tensor, int64_t count,
                                   cleave_message_t *message) {
  if (tensor == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_INVALID_ARGUMENT, "%s is missing", name);
  }
  if (tensor->count != count) {
    return kernel_fail(message, CLEAVE_ERROR_SHAPE, "%s has %lld element%s, expected %lld", name,
                       (long long)tensor->count, KERNEL_PLURAL(tensor->count), (long long)count);
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_nn_check_same_dims(const cpu_tensor_t *a, const cpu_tensor_t *b,
                                       cleave_message_t *message) {
  bool same = a->rank == b->rank;
  for (int32_t d = 0; same && d < a->rank; d++) {
    same = a->dims[d] == b->dims[d];
  }
  return same ? CLEAVE_OK : kernel_fail(message, CLEAVE_ERROR_SHAPE, "output shape differs from input shape");
}

int64_t cpu_nn_span(const cpu_tensor_t *tensor, int32_t first, int32_t last) {
  int64_t count = 1;
  for (int32_t d = first; d < last; d++) {
    count *= tensor->dims[d];
  }
  return count;
}

int64_t cpu_nn_broadcast_offset(const cpu_tensor_t *small, const cpu_tensor_t *large, int64_t index) {
  int64_t offset = 0;
  int64_t step = 1;
  for (int32_t d = large->rank - 1, s = small->rank - 1; d >= 0 && s >= 0; d--, s--) {
    if (small->dims[s] != 1) {
      offset += index % large->dims[d] * step;
    }
    step *= small->dims[s];
    index /= large->dims[d];
  }
  return offset;
}

bool cpu_nn_broadcasts(const cpu_tensor_t *small, const cpu_tensor_t *large) {
  bool fits = small->rank <= large->rank;
  for (int32_t s = 0; fits && s < small->rank; s++) {
    fits = small->dims[s] == 1 || small->dims[s] == large->dims[s + large->rank - small->rank];
  }
  return fits;
}

int64_t cpu_nn_multiply(int64_t a, int64_t b) {
  return a != 0 && b > INT64_MAX / a ? INT64_MAX : a * b;
}

void *cpu_nn_carve(cpu_carver_t *carver, int64_t count, size_t element_size) {
  size_t elements = count > 0 ? (size_t)count : 0;
  size_t start = carver->used;
  if (start == SIZE_MAX || elements > (SIZE_MAX - 64 - start) / element_size) {
    carver->used = SIZE_MAX;
    return NULL;
  }
  carver->used = (start + elements * element_size + 63) & ~(size_t)63;
  return carver->base == NULL ? NULL : carver->base + start;
}

// ---- float16 and bfloat16 -----------------------------------------------------------------------------

typedef struct half_call {
  cpu_call_t call;
  cpu_tensor_t tensors[2 * MAX_TENSORS];
  const cpu_tensor_t *inputs[MAX_TENSORS];
  cpu_tensor_t *outputs[MAX_TENSORS];
} half_call_t;

// Fills in a call whose half tensors are float32, with their data in the carver's memory.
static bool half_call_init(half_call_t *half, const cpu_call_t *call, cpu_carver_t *carver) {
  if (call->input_count > MAX_TENSORS || call->output_count > MAX_TENSORS) {
    return false;
  }
  half->call = *call;
  half->call.inputs = half->inputs;
  half->call.outputs = half->outputs;
  for (uint32_t k = 0; k < call->input_count; k++) {
    half->inputs[k] = call->inputs[k];
    if (call->inputs[k] != NULL && cpu_dtype_is_short_float(call->inputs[k]->dtype)) {
      half->tensors[k] = *call->inputs[k];
      half->tensors[k].dtype = CLEAVE_DTYPE_F32;
      half->tensors[k].data = cpu_nn_carve(carver, call->inputs[k]->count, sizeof(float));
      half->inputs[k] = &half->tensors[k];
    }
  }
  for (uint32_t k = 0; k < call->output_count; k++) {
    half->outputs[k] = call->outputs[k];
    if (call->outputs[k] != NULL && cpu_dtype_is_short_float(call->outputs[k]->dtype)) {
      cpu_tensor_t *tensor = &half->tensors[MAX_TENSORS + k];
      *tensor = *call->outputs[k];
      tensor->dtype = CLEAVE_DTYPE_F32;
      tensor->data = cpu_nn_carve(carver, call->outputs[k]->count, sizeof(float));
      half->outputs[k] = tensor;
    }
  }
  return true;
}

static size_t half_scratch(const cpu_call_t *call, cpu_scratch_fn_t inner) {
  half_call_t half;
  cpu_carver_t carver = {NULL, 0};
  if (!half_call_init(&half, call, &carver)) {
    return 0;
  }
  size_t more = inner != NULL ? inner(&half.call) : 0;
  return more > SIZE_MAX - carver.used ? SIZE_MAX : carver.used + more;
}

static cleave_status_t half_run(const cpu_call_t *call, cleave_message_t *message, cpu_run_fn_t inner) {
  half_call_t half;
  cpu_carver_t carver = {call->scratch, 0};
  if (!half_call_init(&half, call, &carver)) {
    return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "more than %d tensors of float16", MAX_TENSORS);
  }
  half.call.scratch = carver.base != NULL ? carver.base + carver.used : NULL;
  for (uint32_t k = 0; k < call->input_count; k++) {
    if (half.inputs[k] != call->inputs[k]) {
      cpu_convert(call->inputs[k]->dtype, call->inputs[k]->data, CLEAVE_DTYPE_F32, half.tensors[k].data,
                  call->inputs[k]->count);
    }
  }
  CPU_TRY(inner(&half.call, message));
  for (uint32_t k = 0; k < call->output_count; k++) {
    if (half.outputs[k] != call->outputs[k]) {
      cpu_convert(CLEAVE_DTYPE_F32, half.outputs[k]->data, call->outputs[k]->dtype, call->outputs[k]->data,
                  call->outputs[k]->count);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_nn_check_outputs(const cpu_call_t *call, cleave_message_t *message) {
  for (uint32_t k = 0; k < call->output_count; k++) {
    if (call->outputs[k] != NULL && call->outputs[k]->data == NULL) {
      return kernel_fail(message, CLEAVE_ERROR_SHAPE, "the shape of output %u is unknown", k);
    }
  }
  return CLEAVE_OK;
}

cleave_status_t cpu_nn_run_float(const cpu_call_t *call, cleave_message_t *message, uint32_t input,
                                 cpu_run_fn_t f32, cpu_run_fn_t f64) {
  const cpu_tensor_t *tensor = cpu_input(call, input);
  cleave_dtype_t dtype = tensor != NULL ? tensor->dtype : CLEAVE_DTYPE_UNKNOWN;
  CPU_TRY(cpu_nn_check_outputs(call, message));
  if (dtype == CLEAVE_DTYPE_F32) {
    return f32(call, message);
  }
  if (dtype == CLEAVE_DTYPE_F64) {
    return f64(call, message);
  }
  if (cpu_dtype_is_short_float(dtype)) {
    return half_run(call, message, f32);
  }
  return kernel_fail(message, CLEAVE_ERROR_UNSUPPORTED, "input %u of dtype %s is not supported", input,
                     cpu_dtype_name(dtype));
}

cleave_status_t cpu_nn_run_number(const cpu_call_t *call, const cpu_nn_runs_t *runs,
                                  cleave_message_t *message) {
  CPU_TRY(cpu_nn_check_outputs(call, message));
  switch (call->inputs[0]->dtype) {
    case CLEAVE_DTYPE_I32:
    case CLEAVE_DTYPE_U32: return runs->u32(call, message);
    case CLEAVE_DTYPE_I64:
    case CLEAVE_DTYPE_U64: return runs->u64(call, message);
    default: return cpu_nn_run_float(call, message, 0, runs->f32, runs->f64);
  }
}

size_t cpu_nn_scratch_float(const cpu_call_t *call, uint32_t input, cpu_scratch_fn_t f32,
                            cpu_scratch_fn_t f64) {
  const cpu_tensor_t *tensor = cpu_input(call, input);
  if (tensor == NULL) {
    return 0;
  }
  if (cpu_dtype_is_short_float(tensor->dtype)) {
    return half_scratch(call, f32);
  }
  cpu_scratch_fn_t inner = tensor->dtype == CLEAVE_DTYPE_F64 ? f64 : f32;
  return inner != NULL ? inner(call) : 0;
}

size_t cpu_nn_scratch_halves(const cpu_call_t *call) {
  return cpu_nn_scratch_float(call, 0, NULL, NULL);
}

// ---- kernels by dtype -----------------------------------------------------------------------------------

size_t cpu_kernel_scratch(const cpu_kernel_t *kernel, const cpu_call_t *call) {
  if (kernel->run_f32 != NULL) {
    return cpu_nn_scratch_float(call, kernel->float_input, kernel->scratch_f32, kernel->scratch_f64);
  }
  return kernel->scratch != NULL ? kernel->scratch(call) : 0;
}

cleave_status_t cpu_kernel_run(const cpu_kernel_t *kernel, const cpu_call_t *call,
                               cleave_message_t *message) {
  return kernel->run_f32 != NULL
             ? cpu_nn_run_float(call, message, kernel->float_input, kernel->run_f32, kernel->run_f64)
             : kernel->run(call, message);
}
