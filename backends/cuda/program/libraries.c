// SPDX-License-Identifier: Apache-2.0
// Calls of cuBLASLt and cuDNN. cuBLASLt's matrices are column-major: a row-major product is that of the
// transposed, so that a and b change places.
#include <string.h>

#include "program.h"

enum { MAX_WORKSPACE = 1 << 25, MIN_ALIGNMENT = 64, MAX_CHOICES = 8 };

static cleave_status_t check_blas(int32_t result, const char *what, cleave_message_t *message) {
  return result == 0
             ? CLEAVE_OK
             : cuda_fail(message,
                         result == CUDA_BLAS_NOT_SUPPORTED ? CLEAVE_ERROR_UNSUPPORTED : CLEAVE_ERROR_BACKEND,
                         CLEAVE_REASON_DEVICE, "cuBLASLt cannot %s: %s", what, cuda_blas_status_text(result));
}

static cleave_status_t check_dnn(const cuda_program_t *program, int32_t result, const char *what,
                                 cleave_message_t *message) {
  return result == 0 ? CLEAVE_OK
                     : cuda_fail(message, CLEAVE_ERROR_BACKEND, CLEAVE_REASON_DEVICE, "cuDNN cannot %s: %s",
                                 what, program->state->libraries.dnn.error_string(result));
}

/* ---- products ---- */

static int32_t blas_type(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_F64    ? CUDA_BLAS_F64
         : dtype == CLEAVE_DTYPE_F16  ? CUDA_BLAS_F16
         : dtype == CLEAVE_DTYPE_BF16 ? CUDA_BLAS_BF16
                                      : CUDA_BLAS_F32;
}

static cleave_status_t make_desc(const cuda_blas_t *blas, const cuda_product_t *product, cuda_ready_t *ready,
                                 cleave_message_t *message) {
  bool is_double = product->dtype == CLEAVE_DTYPE_F64;
  int32_t compute = is_double            ? CUDA_BLAS_COMPUTE_F64
                    : product->uses_tf32 ? CUDA_BLAS_COMPUTE_TF32
                                         : CUDA_BLAS_COMPUTE_F32;
  const int32_t transposes[2] = {product->transposes[1] ? 1 : 0, product->transposes[0] ? 1 : 0};
  uint32_t epilogue = (product->has_bias ? CUDA_BLAS_EPILOGUE_BIAS : 0) | product->activation;
  epilogue = epilogue == 0 ? CUDA_BLAS_EPILOGUE_NONE : epilogue;
  CUDA_TRY(check_blas(blas->desc_create(&ready->desc, compute, is_double ? CUDA_BLAS_F64 : CUDA_BLAS_F32),
                      "describe a product", message));
  CUDA_TRY(check_blas(
      blas->desc_set(ready->desc, CUDA_BLAS_DESC_TRANSPOSE_A, &transposes[0], sizeof transposes[0]),
      "describe a product", message));
  CUDA_TRY(check_blas(
      blas->desc_set(ready->desc, CUDA_BLAS_DESC_TRANSPOSE_B, &transposes[1], sizeof transposes[1]),
      "describe a product", message));
  CUDA_TRY(check_blas(blas->desc_set(ready->desc, CUDA_BLAS_DESC_EPILOGUE, &epilogue, sizeof epilogue),
                      "describe a product", message));
  if (product->has_bias) { /* only its alignment counts here */
    const void *bias = (const void *)(uintptr_t)MIN_ALIGNMENT;
    return check_blas(blas->desc_set(ready->desc, CUDA_BLAS_DESC_BIAS, &bias, sizeof bias),
                      "describe a product", message);
  }
  return CLEAVE_OK;
}

static cleave_status_t make_layouts(const cuda_blas_t *blas, const cuda_product_t *product,
                                    cuda_ready_t *ready, cleave_message_t *message) {
  int32_t type = blas_type(product->dtype);
  const bool *turned = product->transposes;
  const int64_t rows[3] = {turned[0] ? product->rows : product->inner,
                           turned[1] ? product->inner : product->columns, product->columns};
  const int64_t columns[3] = {turned[0] ? product->inner : product->rows,
                              turned[1] ? product->columns : product->inner, product->rows};
  int32_t batches = (int32_t)product->batches;
  for (int k = 0; k < 3; k++) {
    CUDA_TRY(check_blas(blas->layout_create(&ready->layouts[k], type, (uint64_t)rows[k], (uint64_t)columns[k],
                                            product->strides[k] > rows[k] ? product->strides[k] : rows[k]),
                        "describe a matrix", message));
    CUDA_TRY(
        check_blas(blas->layout_set(ready->layouts[k], CUDA_BLAS_LAYOUT_BATCHES, &batches, sizeof batches),
                   "describe a matrix", message));
    CUDA_TRY(check_blas(blas->layout_set(ready->layouts[k], CUDA_BLAS_LAYOUT_STRIDE,
                                         &product->batch_strides[k], sizeof product->batch_strides[k]),
                        "describe a matrix", message));
  }
  return CLEAVE_OK;
}

static uint32_t alignment_of(int64_t offset) {
  uint32_t alignment = MIN_ALIGNMENT;
  while (offset % alignment != 0) {
    alignment /= 2;
  }
  return alignment;
}

static cleave_status_t choose(cuda_program_t *program, const cuda_step_t *step, cuda_blas_handle_t handle,
                              cuda_ready_t *ready, cleave_message_t *message) {
  const cuda_blas_t *blas = &program->state->libraries.blas;
  static const int32_t attributes[4] = {CUDA_BLAS_PREFERENCE_ALIGN_A, CUDA_BLAS_PREFERENCE_ALIGN_B,
                                        CUDA_BLAS_PREFERENCE_ALIGN_C, CUDA_BLAS_PREFERENCE_ALIGN_D};
  static const int operands[4] = {1, 0, 2, 2};
  cuda_blas_preference_t preference = NULL;
  cuda_blas_choice_t choices[MAX_CHOICES];
  uint64_t most = MAX_WORKSPACE;
  int count = 0;
  CUDA_TRY(check_blas(blas->preference_create(&preference), "choose an algorithm", message));
  int32_t result = blas->preference_set(preference, CUDA_BLAS_PREFERENCE_WORKSPACE, &most, sizeof most);
  for (int k = 0; k < 4 && result == 0; k++) {
    uint32_t alignment = alignment_of(step->pointers[operands[k]].offset);
    result = blas->preference_set(preference, attributes[k], &alignment, sizeof alignment);
  }
  if (result == 0) {
    result = blas->choose(handle, ready->desc, ready->layouts[1], ready->layouts[0], ready->layouts[2],
                          ready->layouts[2], preference, MAX_CHOICES, choices, &count);
  }
  (void)blas->preference_destroy(preference);
  CUDA_TRY(check_blas(result, "choose an algorithm", message));
  for (int k = 0; k < count; k++) {
    if (choices[k].state == 0) {
      ready->blas_choice = choices[k];
      return CLEAVE_OK;
    }
  }
  return check_blas(CUDA_BLAS_NOT_SUPPORTED, "multiply these matrices", message);
}

cleave_status_t cuda_ready_product(cuda_program_t *program, uint32_t index, cleave_message_t *message) {
  const cuda_blas_t *blas = &program->state->libraries.blas;
  const cuda_step_t *step = &program->plan.steps[index];
  cuda_ready_t *ready = &program->ready[index];
  cuda_blas_handle_t handle = NULL;
  CUDA_TRY(cuda_blas_get(program->state, program->device, &handle, message));
  CUDA_TRY(make_desc(blas, step->product, ready, message));
  CUDA_TRY(make_layouts(blas, step->product, ready, message));
  CUDA_TRY(choose(program, step, handle, ready, message));
  ready->workspace_bytes = ready->blas_choice.workspace_bytes;
  program->plan.slots[step->pointers[CUDA_WORKSPACE_POINTER].slot].bytes = (int64_t)ready->workspace_bytes;
  return CLEAVE_OK;
}

cleave_status_t cuda_run_product(cuda_program_t *program, uint32_t index, cuda_stream_t stream,
                                 cleave_message_t *message) {
  const cuda_blas_t *blas = &program->state->libraries.blas;
  const cuda_step_t *step = &program->plan.steps[index];
  const cuda_ready_t *ready = &program->ready[index];
  const cuda_product_t *product = step->product;
  const void *addresses[5];
  float alpha = (float)product->alpha;
  float beta = 0.0f;
  double wide_alpha = product->alpha;
  double wide_beta = 0.0;
  bool is_double = product->dtype == CLEAVE_DTYPE_F64;
  for (uint32_t k = 0; k < 5; k++) {
    addresses[k] = (const void *)(uintptr_t)cuda_address_of(program, step->pointers[k]);
  }
  if (product->has_bias) {
    CUDA_TRY(check_blas(blas->desc_set(ready->desc, CUDA_BLAS_DESC_BIAS, &addresses[CUDA_BIAS_POINTER],
                                       sizeof addresses[CUDA_BIAS_POINTER]),
                        "take a bias", message));
  }
  void *d = (void *)(uintptr_t)addresses[2];
  return check_blas(
      blas->multiply(program->state->devices[program->device].blas, ready->desc,
                     is_double ? (const void *)&wide_alpha : (const void *)&alpha, addresses[1],
                     ready->layouts[1], addresses[0], ready->layouts[0],
                     is_double ? (const void *)&wide_beta : (const void *)&beta, d, ready->layouts[2], d,
                     ready->layouts[2], &ready->blas_choice.algorithm,
                     (void *)(uintptr_t)addresses[CUDA_WORKSPACE_POINTER], ready->workspace_bytes, stream),
      "multiply", message);
}

/* ---- convolutions ---- */

static void dense_strides(int32_t rank, const int32_t *dims, int32_t *out_strides) {
  int32_t stride = 1;
  for (int32_t d = rank - 1; d >= 0; d--) {
    out_strides[d] = stride;
    stride *= dims[d];
  }
}

static cleave_status_t describe_convolution(const cuda_program_t *program, const cuda_convolution_t *self,
                                            cuda_ready_t *ready, cleave_message_t *message) {
  const cuda_dnn_t *dnn = &program->state->libraries.dnn;
  static const char what[] = "describe a convolution";
  int32_t strides[2][CLEAVE_MAX_RANK];
  int32_t rank = self->spatial + 2;
  int32_t type = self->dtype == CLEAVE_DTYPE_F64    ? CUDA_DNN_F64
                 : self->dtype == CLEAVE_DTYPE_F16  ? CUDA_DNN_F16
                 : self->dtype == CLEAVE_DTYPE_BF16 ? CUDA_DNN_BF16
                                                    : CUDA_DNN_F32;
  bool is_short = type == CUDA_DNN_F16 || type == CUDA_DNN_BF16;
  /* The default lets float32 be rounded to TF32. */
  int32_t math = is_short          ? CUDA_DNN_MATH_TENSOR
                 : self->uses_tf32 ? CUDA_DNN_MATH_DEFAULT
                                   : CUDA_DNN_MATH_FMA;
  dense_strides(rank, self->x, strides[0]);
  dense_strides(rank, self->y, strides[1]);
  CUDA_TRY(check_dnn(program, dnn->tensor_create(&ready->x), what, message));
  CUDA_TRY(check_dnn(program, dnn->tensor_create(&ready->y), what, message));
  CUDA_TRY(check_dnn(program, dnn->filter_create(&ready->w), what, message));
  CUDA_TRY(check_dnn(program, dnn->convolution_create(&ready->convolution), what, message));
  CUDA_TRY(check_dnn(program, dnn->tensor_set(ready->x, type, rank, self->x, strides[0]), what, message));
  CUDA_TRY(check_dnn(program, dnn->tensor_set(ready->y, type, rank, self->y, strides[1]), what, message));
  CUDA_TRY(
      check_dnn(program, dnn->filter_set(ready->w, type, CUDA_DNN_ROW_MAJOR, rank, self->w), what, message));
  CUDA_TRY(check_dnn(
      program,
      dnn->convolution_set(ready->convolution, self->spatial, self->pads, self->strides, self->dilations,
                           CUDA_DNN_CROSS_CORRELATION, type == CUDA_DNN_F64 ? CUDA_DNN_F64 : CUDA_DNN_F32),
      what, message));
  CUDA_TRY(check_dnn(program, dnn->convolution_set_math(ready->convolution, math), what, message));
  return check_dnn(program, dnn->convolution_set_groups(ready->convolution, self->groups), what, message);
}

static int32_t choose_convolution(const cuda_dnn_t *dnn, cuda_dnn_handle_t handle, cuda_direction_t direction,
                                  const cuda_ready_t *ready, int *out_count, cuda_dnn_choice_t *choices) {
  switch (direction) {
    case CUDA_DIRECTION_DATA:
      return dnn->choose_data(handle, ready->w, ready->y, ready->convolution, ready->x, MAX_CHOICES,
                              out_count, choices);
    case CUDA_DIRECTION_WEIGHTS:
      return dnn->choose_weights(handle, ready->x, ready->y, ready->convolution, ready->w, MAX_CHOICES,
                                 out_count, choices);
    case CUDA_DIRECTION_FORWARD: break;
  }
  return dnn->choose(handle, ready->x, ready->w, ready->convolution, ready->y, MAX_CHOICES, out_count,
                     choices);
}

static int32_t find_workspace(const cuda_dnn_t *dnn, cuda_dnn_handle_t handle, cuda_direction_t direction,
                              cuda_ready_t *ready) {
  size_t *bytes = &ready->workspace_bytes;
  switch (direction) {
    case CUDA_DIRECTION_DATA:
      return dnn->workspace_data(handle, ready->w, ready->y, ready->convolution, ready->x, ready->algorithm,
                                 bytes);
    case CUDA_DIRECTION_WEIGHTS:
      return dnn->workspace_weights(handle, ready->x, ready->y, ready->convolution, ready->w,
                                    ready->algorithm, bytes);
    case CUDA_DIRECTION_FORWARD: break;
  }
  return dnn->workspace(handle, ready->x, ready->w, ready->convolution, ready->y, ready->algorithm, bytes);
}

/* `numbers` are 1 and 0, as wide as the library wants them; `at` are x, w, y and the workspace. */
static int32_t convolve(const cuda_dnn_t *dnn, cuda_dnn_handle_t handle, cuda_direction_t direction,
                        const cuda_ready_t *ready, const void *const *numbers, void *const *at) {
  switch (direction) {
    case CUDA_DIRECTION_DATA:
      return dnn->convolve_data(handle, numbers[0], ready->w, at[1], ready->y, at[2], ready->convolution,
                                ready->algorithm, at[3], ready->workspace_bytes, numbers[1], ready->x, at[0]);
    case CUDA_DIRECTION_WEIGHTS:
      return dnn->convolve_weights(handle, numbers[0], ready->x, at[0], ready->y, at[2], ready->convolution,
                                   ready->algorithm, at[3], ready->workspace_bytes, numbers[1], ready->w,
                                   at[1]);
    case CUDA_DIRECTION_FORWARD: break;
  }
  return dnn->convolve(handle, numbers[0], ready->x, at[0], ready->w, at[1], ready->convolution,
                       ready->algorithm, at[3], ready->workspace_bytes, numbers[1], ready->y, at[2]);
}

/* The first algorithm that fits; a convolution that the library does not have is not a failure. */
cleave_status_t cuda_ready_convolution(cuda_program_t *program, uint32_t index, cleave_message_t *message) {
  const cuda_dnn_t *dnn = &program->state->libraries.dnn;
  const cuda_step_t *step = &program->plan.steps[index];
  cuda_ready_t *ready = &program->ready[index];
  cuda_dnn_handle_t handle = NULL;
  cuda_dnn_choice_t choices[MAX_CHOICES];
  int count = 0;
  if (cuda_dnn_get(program->state, program->device, &handle, message) != CLEAVE_OK ||
      describe_convolution(program, step->convolution, ready, message) != CLEAVE_OK) {
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  cuda_device_state_t *device = &program->state->devices[program->device];
  (void)pthread_mutex_lock(&device->lock);
  cuda_direction_t direction = step->convolution->direction;
  int32_t result = choose_convolution(dnn, handle, direction, ready, &count, choices);
  bool is_chosen = false;
  for (int k = 0; k < count && result == 0 && !is_chosen; k++) {
    ready->algorithm = choices[k].algorithm;
    is_chosen = choices[k].status == 0 && find_workspace(dnn, handle, direction, ready) == 0;
  }
  (void)pthread_mutex_unlock(&device->lock);
  if (!is_chosen) {
    return cuda_fail(message, CLEAVE_ERROR_UNSUPPORTED, CLEAVE_REASON_OPERATOR,
                     "cuDNN has no algorithm for this convolution");
  }
  program->plan.slots[step->pointers[CUDA_WORKSPACE_POINTER].slot].bytes = (int64_t)ready->workspace_bytes;
  return CLEAVE_OK;
}

cleave_status_t cuda_run_convolution(cuda_program_t *program, uint32_t index, cuda_stream_t stream,
                                     cleave_message_t *message) {
  const cuda_dnn_t *dnn = &program->state->libraries.dnn;
  const cuda_step_t *step = &program->plan.steps[index];
  const cuda_ready_t *ready = &program->ready[index];
  cuda_device_state_t *device = &program->state->devices[program->device];
  bool is_double = step->convolution->dtype == CLEAVE_DTYPE_F64;
  const float narrow[2] = {1.0f, 0.0f};
  const double wide[2] = {1.0, 0.0};
  const void *numbers[2] = {is_double ? (const void *)&wide[0] : (const void *)&narrow[0],
                            is_double ? (const void *)&wide[1] : (const void *)&narrow[1]};
  void *addresses[4];
  for (uint32_t k = 0; k < 4; k++) {
    addresses[k] = (void *)(uintptr_t)cuda_address_of(program, step->pointers[k]);
  }
  (void)pthread_mutex_lock(&device->lock); /* a handle has one stream at a time */
  int32_t result = dnn->set_stream(device->dnn, stream);
  if (result == 0) {
    result = convolve(dnn, device->dnn, step->convolution->direction, ready, numbers, addresses);
  }
  (void)pthread_mutex_unlock(&device->lock);
  return check_dnn(program, result, "convolve", message);
}

void cuda_ready_free(cuda_program_t *program, cuda_ready_t *ready) {
  const cuda_blas_t *blas = &program->state->libraries.blas;
  const cuda_dnn_t *dnn = &program->state->libraries.dnn;
  for (int k = 0; k < 3; k++) {
    if (ready->layouts[k] != NULL) {
      (void)blas->layout_destroy(ready->layouts[k]);
    }
  }
  if (ready->desc != NULL) {
    (void)blas->desc_destroy(ready->desc);
  }
  if (ready->x != NULL) {
    (void)dnn->tensor_destroy(ready->x);
  }
  if (ready->y != NULL) {
    (void)dnn->tensor_destroy(ready->y);
  }
  if (ready->w != NULL) {
    (void)dnn->filter_destroy(ready->w);
  }
  if (ready->convolution != NULL) {
    (void)dnn->convolution_destroy(ready->convolution);
  }
  memset(ready, 0, sizeof *ready);
}
