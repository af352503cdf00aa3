// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt. Its matrices are column-major: a row-major product is that of the transposed, so that
// a and b change places.
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

void cuda_product_free(cuda_program_t *program, cuda_ready_t *ready) {
  const cuda_blas_t *blas = &program->state->libraries.blas;
  for (int k = 0; k < 3; k++) {
    if (ready->layouts[k] != NULL) {
      (void)blas->layout_destroy(ready->layouts[k]);
      ready->layouts[k] = NULL;
    }
  }
  if (ready->desc != NULL) {
    (void)blas->desc_destroy(ready->desc);
    ready->desc = NULL;
  }
}
