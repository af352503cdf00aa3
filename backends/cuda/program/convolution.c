// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN: calls, and the choice of an algorithm. Algorithms whose sums change from run to run,
// as those of some gradients do, are not taken.
#include <inttypes.h>
#include <stdio.h>

#include "cudnn.h"

/* Indices into a choice's data. */
enum { ALGORITHM = 0, MATH = 1 };

/* An algorithm that needs more is taken only if none needs less. */
static const size_t MAX_WORKSPACE = (size_t)1 << 30;

static bool is_short(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F16 || dtype == CLEAVE_DTYPE_BF16;
}

/* The default lets float32 be rounded to TF32. */
int32_t cuda_dnn_math(const cuda_convolution_t *self) {
  return is_short(self->dtype) ? CUDA_DNN_MATH_TENSOR
         : self->uses_tf32     ? CUDA_DNN_MATH_DEFAULT
                               : CUDA_DNN_MATH_FMA;
}

/* ---- calls ---- */

/* cuDNN needs a residual: without one it gets the result, with the factor 0. */
static int32_t convolve_whole(const cuda_dnn_t *dnn, cuda_dnn_handle_t handle, const cuda_convolution_t *self,
                              const cuda_ready_t *ready, void *const *at) {
  cuda_dnn_scalars_t scalars = cuda_dnn_scalars(self->dtype);
  bool has_residual = at[CUDA_RESIDUAL_POINTER] != NULL;
  return dnn->convolve_whole(handle, scalars.one, ready->x, at[0], ready->w, at[1], ready->convolution,
                             (int32_t)ready->choice.data[ALGORITHM], at[3],
                             (size_t)ready->choice.workspace_bytes, has_residual ? scalars.one : scalars.zero,
                             ready->y, has_residual ? at[CUDA_RESIDUAL_POINTER] : at[2], ready->channels,
                             at[CUDA_BIAS_POINTER], ready->activation, ready->y, at[2]);
}

int32_t cuda_dnn_convolve(const cuda_dnn_t *dnn, cuda_dnn_handle_t handle, const cuda_convolution_t *self,
                          const cuda_ready_t *ready, void *const *at) {
  cuda_dnn_scalars_t scalars = cuda_dnn_scalars(self->dtype);
  int32_t algorithm = (int32_t)ready->choice.data[ALGORITHM];
  size_t bytes = (size_t)ready->choice.workspace_bytes;
  switch (self->direction) {
    case CUDA_DIRECTION_DATA:
      return dnn->convolve_data(handle, scalars.one, ready->w, at[1], ready->y, at[2], ready->convolution,
                                algorithm, at[3], bytes, scalars.zero, ready->x, at[0]);
    case CUDA_DIRECTION_WEIGHTS:
      return dnn->convolve_weights(handle, scalars.one, ready->x, at[0], ready->y, at[2], ready->convolution,
                                   algorithm, at[3], bytes, scalars.zero, ready->w, at[1]);
    case CUDA_DIRECTION_FORWARD: break;
  }
  if (self->whole != CUDA_WHOLE_NOT) {
    return convolve_whole(dnn, handle, self, ready, at);
  }
  return dnn->convolve(handle, scalars.one, ready->x, at[0], ready->w, at[1], ready->convolution, algorithm,
                       at[3], bytes, scalars.zero, ready->y, at[2]);
}

/* ---- algorithms ---- */

/* A convolution of a program, while its algorithm is chosen. */
typedef struct choosing {
  const cuda_dnn_t *dnn;
  cuda_dnn_handle_t handle;
  pthread_mutex_t *lock; /* of the handle */
  const cuda_step_t *step;
  const cuda_convolution_t *convolution;
  cuda_ready_t *ready;
} choosing_t;

static int32_t find(const choosing_t *self, int *out_count, cuda_dnn_choice_t *found) {
  const cuda_dnn_t *dnn = self->dnn;
  const cuda_ready_t *ready = self->ready;
  switch (self->convolution->direction) {
    case CUDA_DIRECTION_DATA:
      return dnn->choose_data(self->handle, ready->w, ready->y, ready->convolution, ready->x,
                              CUDA_MAX_CANDIDATES, out_count, found);
    case CUDA_DIRECTION_WEIGHTS:
      return dnn->choose_weights(self->handle, ready->x, ready->y, ready->convolution, ready->w,
                                 CUDA_MAX_CANDIDATES, out_count, found);
    case CUDA_DIRECTION_FORWARD: break;
  }
  return dnn->choose(self->handle, ready->x, ready->w, ready->convolution, ready->y, CUDA_MAX_CANDIDATES,
                     out_count, found);
}

static int32_t find_workspace(const choosing_t *self, int32_t algorithm, size_t *out_bytes) {
  const cuda_dnn_t *dnn = self->dnn;
  const cuda_ready_t *ready = self->ready;
  switch (self->convolution->direction) {
    case CUDA_DIRECTION_DATA:
      return dnn->workspace_data(self->handle, ready->w, ready->y, ready->convolution, ready->x, algorithm,
                                 out_bytes);
    case CUDA_DIRECTION_WEIGHTS:
      return dnn->workspace_weights(self->handle, ready->x, ready->y, ready->convolution, ready->w, algorithm,
                                    out_bytes);
    case CUDA_DIRECTION_FORWARD: break;
  }
  return dnn->workspace(self->handle, ready->x, ready->w, ready->convolution, ready->y, algorithm, out_bytes);
}

static bool takes(const cuda_convolution_t *convolution, int32_t algorithm, int32_t math) {
  int32_t most = cuda_dnn_math(convolution);
  return (most == CUDA_DNN_MATH_FMA
              ? math == CUDA_DNN_MATH_FMA
              : math == CUDA_DNN_MATH_DEFAULT || math == CUDA_DNN_MATH_TENSOR || math == CUDA_DNN_MATH_FMA) &&
         (convolution->whole != CUDA_WHOLE_PLAIN || algorithm == CUDA_DNN_IMPLICIT_PRECOMP_GEMM);
}

/* The choice for an algorithm that can be called. */
static bool make_choice(const choosing_t *self, int32_t algorithm, int32_t math, cuda_choice_t *out_choice) {
  size_t bytes = 0;
  if (!takes(self->convolution, algorithm, math) ||
      self->dnn->convolution_set_math(self->ready->convolution, math) != 0 ||
      find_workspace(self, algorithm, &bytes) != 0) {
    return false;
  }
  *out_choice = (cuda_choice_t){.workspace_bytes = bytes};
  out_choice->data[ALGORITHM] = (uint64_t)algorithm;
  out_choice->data[MATH] = (uint64_t)math;
  return true;
}

static bool is_among(const cuda_choice_t *choices, uint32_t count, const cuda_choice_t *choice) {
  bool is_found = false;
  for (uint32_t k = 0; k < count; k++) {
    is_found = is_found || (choices[k].data[ALGORITHM] == choice->data[ALGORITHM] &&
                            choices[k].data[MATH] == choice->data[MATH]);
  }
  return is_found;
}

static cleave_status_t list(void *context, cuda_choice_t *out_choices, uint32_t *out_count,
                            cleave_message_t *message) {
  const choosing_t *self = context;
  int32_t math = cuda_dnn_math(self->convolution);
  cuda_dnn_choice_t found[CUDA_MAX_CANDIDATES];
  cuda_choice_t spare = {.workspace_bytes = 0};
  cuda_choice_t choice;
  int count = 0;
  *out_count = 0;
  (void)pthread_mutex_lock(self->lock);
  (void)self->dnn->convolution_set_math(self->ready->convolution, math);
  int32_t result = find(self, &count, found);
  for (int k = 0; k < count && result == 0; k++) {
    bool is_good = found[k].status == 0 && found[k].is_deterministic == 1 &&
                   make_choice(self, found[k].algorithm,
                               math == CUDA_DNN_MATH_FMA ? CUDA_DNN_MATH_FMA : found[k].math, &choice);
    if (is_good && choice.workspace_bytes > MAX_WORKSPACE) {
      spare = spare.workspace_bytes == 0 ? choice : spare;
    } else if (is_good && !is_among(out_choices, *out_count, &choice)) {
      out_choices[(*out_count)++] = choice;
    }
  }
  (void)pthread_mutex_unlock(self->lock);
  if (*out_count == 0 && spare.workspace_bytes > 0) {
    out_choices[(*out_count)++] = spare;
  }
  return *out_count > 0 ? CLEAVE_OK
                        : cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_OPERATOR,
                                    "cuDNN has no algorithm for this convolution");
}

static bool check(void *context, const cuda_choice_t *choice) {
  const choosing_t *self = context;
  cuda_choice_t own = {.workspace_bytes = 0};
  bool is_number = choice->data[ALGORITHM] <= INT32_MAX && choice->data[MATH] <= INT32_MAX;
  (void)pthread_mutex_lock(self->lock);
  bool is_good =
      is_number && make_choice(self, (int32_t)choice->data[ALGORITHM], (int32_t)choice->data[MATH], &own);
  (void)pthread_mutex_unlock(self->lock);
  return is_good && own.workspace_bytes == choice->workspace_bytes;
}

static int32_t start(void *context, const cuda_choice_t *choice, void *const *addresses,
                     cuda_stream_t stream) {
  const choosing_t *self = context;
  self->ready->choice = *choice;
  (void)pthread_mutex_lock(self->lock);
  int32_t result = self->dnn->convolution_set_math(self->ready->convolution, (int32_t)choice->data[MATH]);
  result = result != 0 ? result : self->dnn->set_stream(self->handle, stream);
  result = result != 0
               ? result
               : cuda_dnn_convolve(self->dnn, self->handle, self->convolution, self->ready, addresses);
  (void)pthread_mutex_unlock(self->lock);
  return result;
}

/* ---- what it depends on ---- */

static size_t add_numbers(cuda_call_t *call, size_t at, const char *name, const int32_t *numbers,
                          int32_t count) {
  for (int32_t k = 0; k < count && at < sizeof call->text; k++) {
    at += (size_t)snprintf(call->text + at, sizeof call->text - at, "%s%" PRId32, k == 0 ? name : " ",
                           numbers[k]);
  }
  return at;
}

static int64_t bytes_of(const cuda_convolution_t *self, const int32_t *dims) {
  int64_t bytes = (int64_t)cleave_dtype_size(self->dtype);
  for (int32_t k = 0; k < self->spatial + 2; k++) {
    bytes *= dims[k];
  }
  return bytes;
}

static void describe(const choosing_t *choosing, cuda_call_t *call) {
  static const char *const directions[] = {"convolution", "gradient of data", "gradient of weights"};
  const cuda_convolution_t *self = choosing->convolution;
  const cuda_step_t *step = choosing->step;
  int32_t rank = self->spatial + 2;
  const int32_t *dims[3] = {self->x, self->w, self->y};
  bool has_residual =
      self->whole != CUDA_WHOLE_NOT && step->pointers[CUDA_RESIDUAL_POINTER].slot != CUDA_NO_SLOT;
  for (int k = 0; k < 3; k++) {
    call->operands[k].bytes = bytes_of(self, dims[k]);
  }
  if (self->whole != CUDA_WHOLE_NOT) {
    call->operands[CUDA_BIAS_POINTER].bytes = self->y[1] * (int64_t)cleave_dtype_size(self->dtype);
    call->operands[CUDA_RESIDUAL_POINTER].bytes = has_residual ? bytes_of(self, self->y) : 0;
  }
  for (uint32_t k = 0; k < step->pointer_count && k < CUDA_MAX_OPERANDS; k++) {
    call->operands[k].skew = step->pointers[k].offset % CUDA_ALIGNMENT;
  }
  size_t at = (size_t)snprintf(
      call->text, sizeof call->text, "cuDNN %zu: %s, %s%s, channels %s, whole %d %d, groups %" PRId32,
      choosing->dnn->version(), directions[self->direction], kernel_dtype_name(self->dtype),
      self->uses_tf32 ? " as tf32" : "", self->is_last ? "last" : "first", (int)self->whole, has_residual,
      self->groups);
  at = add_numbers(call, at, ", x ", self->x, rank);
  at = add_numbers(call, at, ", w ", self->w, rank);
  at = add_numbers(call, at, ", y ", self->y, rank);
  at = add_numbers(call, at, ", pads ", self->pads, self->spatial);
  at = add_numbers(call, at, ", strides ", self->strides, self->spatial);
  at = add_numbers(call, at, ", dilations ", self->dilations, self->spatial);
  const int32_t skews[] = {(int32_t)call->operands[0].skew, (int32_t)call->operands[1].skew,
                           (int32_t)call->operands[2].skew, (int32_t)call->operands[CUDA_BIAS_POINTER].skew,
                           (int32_t)call->operands[CUDA_RESIDUAL_POINTER].skew};
  (void)add_numbers(call, at, ", skews ", skews, (int32_t)(sizeof skews / sizeof skews[0]));
}

cleave_status_t cuda_dnn_choose(cuda_program_t *program, uint32_t index, cuda_dnn_handle_t handle,
                                cleave_message_t *message) {
  const cuda_step_t *step = &program->plan.steps[index];
  cuda_ready_t *ready = &program->ready[index];
  choosing_t self = {.dnn = &program->state->libraries.dnn,
                     .handle = handle,
                     .lock = &program->state->devices[program->device].lock,
                     .step = step,
                     .convolution = step->convolution,
                     .ready = ready};
  cuda_call_t call = {.device = program->device,
                      .is_tuned = program->is_tuned,
                      .workspace = CUDA_WORKSPACE_POINTER,
                      .context = &self,
                      .list = list,
                      .check = check,
                      .start = start};
  cuda_choice_t choice;
  describe(&self, &call);
  CUDA_TRY(cuda_choices_get(program->state->choices, &call, &choice, message));
  ready->choice = choice;
  program->plan.slots[step->pointers[CUDA_WORKSPACE_POINTER].slot].bytes = (int64_t)choice.workspace_bytes;
  int32_t result = self.dnn->convolution_set_math(ready->convolution, (int32_t)choice.data[MATH]);
  return result == 0 ? CLEAVE_OK
                     : cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_OPERATOR,
                                 "cuDNN cannot describe %s: %s", step->label, self.dnn->error_string(result));
}
