// SPDX-License-Identifier: Apache-2.0
// Products by cuBLASLt. Its matrices are column-major: a row-major product is that of the transposed, so that
// a and b change places.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

/* ALIGNMENT: bytes, of all operands (run.c), as the widest accesses need it. */
enum { MAX_WORKSPACE = 1 << 25, ALIGNMENT = 16, POINTERS = 5 };

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
    const void *bias = (const void *)(uintptr_t)ALIGNMENT;
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
  uint32_t alignment = ALIGNMENT;
  while (offset % alignment != 0) {
    alignment /= 2;
  }
  return alignment;
}

/* ---- the call ---- */

/* A product of a program, while its algorithm is chosen or it runs. */
typedef struct multiplication {
  const cuda_blas_t *blas;
  cuda_blas_handle_t handle;
  const cuda_step_t *step;
  const cuda_ready_t *ready;
} multiplication_t;

/* `addresses` are the step's pointers. Gives cuBLASLt's status. */
static int32_t multiply(void *context, const cuda_choice_t *choice, void *const *addresses,
                        cuda_stream_t stream) {
  const multiplication_t *self = context;
  const cuda_product_t *product = self->step->product;
  const cuda_ready_t *ready = self->ready;
  cuda_blas_algorithm_t algorithm;
  float alpha = (float)product->alpha;
  float beta = 0.0f;
  double wide_alpha = product->alpha;
  double wide_beta = 0.0;
  bool is_double = product->dtype == CLEAVE_DTYPE_F64;
  memcpy(&algorithm, choice->data, sizeof algorithm);
  int32_t result = product->has_bias
                       ? self->blas->desc_set(ready->desc, CUDA_BLAS_DESC_BIAS, &addresses[CUDA_BIAS_POINTER],
                                              sizeof addresses[CUDA_BIAS_POINTER])
                       : 0;
  if (result != 0) {
    return result;
  }
  return self->blas->multiply(self->handle, ready->desc,
                              is_double ? (const void *)&wide_alpha : (const void *)&alpha, addresses[1],
                              ready->layouts[1], addresses[0], ready->layouts[0],
                              is_double ? (const void *)&wide_beta : (const void *)&beta, addresses[2],
                              ready->layouts[2], addresses[2], ready->layouts[2], &algorithm,
                              addresses[CUDA_WORKSPACE_POINTER], (size_t)choice->workspace_bytes, stream);
}

/* ---- its algorithm ---- */

/* Parts of a long sum may be added up in the type of the sum alone, by a kernel of their own: not in that of
 * the result, which has fewer digits, and not in place, where parts are added as they come. */
static int32_t set_preference(const cuda_blas_t *blas, const cuda_step_t *step,
                              cuda_blas_preference_t preference) {
  static const int32_t attributes[4] = {CUDA_BLAS_PREFERENCE_ALIGN_A, CUDA_BLAS_PREFERENCE_ALIGN_B,
                                        CUDA_BLAS_PREFERENCE_ALIGN_C, CUDA_BLAS_PREFERENCE_ALIGN_D};
  static const int operands[4] = {1, 0, 2, 2};
  uint64_t most = MAX_WORKSPACE;
  uint32_t reductions = CUDA_BLAS_REDUCTION_COMPUTE_TYPE;
  int32_t result = blas->preference_set(preference, CUDA_BLAS_PREFERENCE_WORKSPACE, &most, sizeof most);
  result = result != 0 ? result
                       : blas->preference_set(preference, CUDA_BLAS_PREFERENCE_REDUCTIONS, &reductions,
                                              sizeof reductions);
  for (int k = 0; k < 4 && result == 0; k++) {
    uint32_t alignment = alignment_of(step->pointers[operands[k]].offset);
    result = blas->preference_set(preference, attributes[k], &alignment, sizeof alignment);
  }
  return result;
}

static cleave_status_t list(void *context, cuda_choice_t *out_choices, uint32_t *out_count,
                            cleave_message_t *message) {
  const multiplication_t *self = context;
  const cuda_blas_t *blas = self->blas;
  const cuda_ready_t *ready = self->ready;
  cuda_blas_preference_t preference = NULL;
  cuda_blas_choice_t found[CUDA_MAX_CANDIDATES];
  int count = 0;
  CUDA_TRY(check_blas(blas->preference_create(&preference), "choose an algorithm", message));
  int32_t result = set_preference(blas, self->step, preference);
  if (result == 0) {
    result = blas->choose(self->handle, ready->desc, ready->layouts[1], ready->layouts[0], ready->layouts[2],
                          ready->layouts[2], preference, CUDA_MAX_CANDIDATES, found, &count);
  }
  (void)blas->preference_destroy(preference);
  CUDA_TRY(check_blas(result, "choose an algorithm", message));
  *out_count = 0;
  for (int k = 0; k < count; k++) {
    if (found[k].state == 0 && found[k].workspace_bytes <= MAX_WORKSPACE) {
      cuda_choice_t *choice = &out_choices[(*out_count)++];
      *choice = (cuda_choice_t){.workspace_bytes = found[k].workspace_bytes};
      memcpy(choice->data, &found[k].algorithm, sizeof found[k].algorithm);
    }
  }
  return check_blas(*out_count > 0 ? 0 : CUDA_BLAS_NOT_SUPPORTED, "multiply these matrices", message);
}

static bool check(void *context, const cuda_choice_t *choice) {
  const multiplication_t *self = context;
  const cuda_ready_t *ready = self->ready;
  cuda_blas_algorithm_t algorithm;
  cuda_blas_choice_t found = {.state = 0};
  memcpy(&algorithm, choice->data, sizeof algorithm);
  return choice->workspace_bytes <= MAX_WORKSPACE &&
         self->blas->check(self->handle, ready->desc, ready->layouts[1], ready->layouts[0], ready->layouts[2],
                           ready->layouts[2], &algorithm, &found) == 0 &&
         found.state == 0 && found.workspace_bytes <= choice->workspace_bytes;
}

/* The bytes from the first element to behind the last one. */
static int64_t bytes_of(const cuda_product_t *product, int operand) {
  bool is_turned = operand < 2 && product->transposes[operand];
  int64_t rows = operand == 1 ? product->inner : product->rows;
  int64_t columns = operand == 0 ? product->inner : product->columns;
  int64_t row = is_turned ? rows : columns; /* as it lies in memory */
  int64_t stride = product->strides[operand] > row ? product->strides[operand] : row;
  int64_t elements = ((is_turned ? columns : rows) - 1) * stride + row +
                     (product->batches - 1) * product->batch_strides[operand];
  return elements * (int64_t)cleave_dtype_size(product->dtype);
}

/* All that an algorithm depends on, and what is measured. */
static void describe(const multiplication_t *self, cuda_call_t *call) {
  const cuda_product_t *product = self->step->product;
  const cuda_pointer_t *pointers = self->step->pointers;
  const int64_t *strides = product->strides;
  const int64_t *batch_strides = product->batch_strides;
  for (int k = 0; k < 3; k++) {
    call->operands[k] = (cuda_operand_t){bytes_of(product, k), pointers[k].offset % CUDA_ALIGNMENT};
  }
  if (product->has_bias) {
    call->operands[CUDA_BIAS_POINTER] =
        (cuda_operand_t){product->columns * (int64_t)cleave_dtype_size(product->dtype),
                         pointers[CUDA_BIAS_POINTER].offset % CUDA_ALIGNMENT};
  }
  (void)snprintf(call->text, sizeof call->text,
                 "cuBLASLt %zu: %s%s, %" PRId64 " x (%" PRId64 "%s x %" PRId64 "%s x %" PRId64
                 "), rows of %" PRId64 " %" PRId64 " %" PRId64 ", batches of %" PRId64 " %" PRId64 " %" PRId64
                 ", bias %d, activation %u, aligned %u %u %u, workspace %d",
                 self->blas->version(), kernel_dtype_name(product->dtype),
                 product->uses_tf32 ? " as tf32" : "", product->batches, product->rows,
                 product->transposes[0] ? "'" : "", product->inner, product->transposes[1] ? "'" : "",
                 product->columns, strides[0], strides[1], strides[2], batch_strides[0], batch_strides[1],
                 batch_strides[2], product->has_bias, (unsigned)product->activation,
                 (unsigned)alignment_of(pointers[0].offset), (unsigned)alignment_of(pointers[1].offset),
                 (unsigned)alignment_of(pointers[2].offset), (int)MAX_WORKSPACE);
}

cleave_status_t cuda_ready_product(cuda_program_t *program, uint32_t index, cleave_message_t *message) {
  const cuda_step_t *step = &program->plan.steps[index];
  cuda_ready_t *ready = &program->ready[index];
  multiplication_t self = {.blas = &program->state->libraries.blas, .step = step, .ready = ready};
  CUDA_TRY(cuda_blas_get(program->state, program->device, &self.handle, message));
  CUDA_TRY(make_desc(self.blas, step->product, ready, message));
  CUDA_TRY(make_layouts(self.blas, step->product, ready, message));
  cuda_call_t call = {.device = program->device,
                      .is_tuned = program->is_tuned,
                      .workspace = CUDA_WORKSPACE_POINTER,
                      .context = &self,
                      .list = list,
                      .check = check,
                      .start = multiply};
  describe(&self, &call);
  CUDA_TRY(cuda_choices_get(program->state->choices, &call, &ready->choice, message));
  program->plan.slots[step->pointers[CUDA_WORKSPACE_POINTER].slot].bytes =
      (int64_t)ready->choice.workspace_bytes;
  return CLEAVE_OK;
}

cleave_status_t cuda_run_product(cuda_program_t *program, uint32_t index, cuda_stream_t stream,
                                 cleave_message_t *message) {
  multiplication_t self = {.blas = &program->state->libraries.blas,
                           .handle = program->state->devices[program->device].blas,
                           .step = &program->plan.steps[index],
                           .ready = &program->ready[index]};
  void *addresses[POINTERS];
  for (uint32_t k = 0; k < POINTERS; k++) {
    addresses[k] = (void *)(uintptr_t)cuda_address_of(program, self.step->pointers[k]);
  }
  return check_blas(multiply(&self, &self.ready->choice, addresses, stream), "multiply", message);
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
