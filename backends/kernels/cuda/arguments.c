// SPDX-License-Identifier: Apache-2.0
// The order of arguments. Strides that are 0 or 1 by the variant, and sizes that nobody divides by, are left
// out.
#include "arguments.h"

uint32_t cuda_arguments_list(const kernel_program_t *program, const kernel_cuda_variant_t *variant,
                             cuda_argument_t *out_arguments) {
  uint32_t count = 0;
  bool has_coordinates = false;
  for (uint32_t k = 0; k < program->input_count; k++) {
    if (variant->inputs[k] != KERNEL_CUDA_ABSENT) {
      out_arguments[count++] = (cuda_argument_t){.kind = CUDA_ARGUMENT_INPUT, .tensor = k};
      has_coordinates = has_coordinates || variant->moves[k] != 0;
    }
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    if (variant->outputs[k] != KERNEL_CUDA_ABSENT) {
      out_arguments[count++] = (cuda_argument_t){.kind = CUDA_ARGUMENT_OUTPUT, .tensor = k};
    }
  }
  out_arguments[count++] = (cuda_argument_t){.kind = CUDA_ARGUMENT_LENGTH};
  if (variant->threads > 0) {
    out_arguments[count++] = (cuda_argument_t){.kind = CUDA_ARGUMENT_ROWS};
  }
  for (int32_t d = 0; has_coordinates && d < variant->rank; d++) {
    out_arguments[count++] = (cuda_argument_t){.kind = CUDA_ARGUMENT_DIM, .axis = d};
  }
  for (uint32_t k = 0; k < program->input_count; k++) {
    for (int32_t d = 0; d < variant->rank; d++) {
      if (cuda_has_stride(variant, k, d)) {
        out_arguments[count++] = (cuda_argument_t){.kind = CUDA_ARGUMENT_STRIDE, .tensor = k, .axis = d};
      }
    }
    if (variant->along[k] > 0) {
      out_arguments[count++] = (cuda_argument_t){.kind = CUDA_ARGUMENT_END, .tensor = k};
    }
  }
  return count;
}
