// SPDX-License-Identifier: Apache-2.0
/*
 * The struct that a kernel takes: pointers first, then sizes and strides with the width of its indices. Text
 * and launches both go down this list.
 */
#ifndef CLEAVE_KERNELS_CUDA_ARGUMENTS_H
#define CLEAVE_KERNELS_CUDA_ARGUMENTS_H

#include "cuda.h"

enum { CUDA_MAX_ARGUMENTS = 3 * KERNEL_MAX_TENSORS + 2 + CLEAVE_MAX_RANK * (KERNEL_MAX_TENSORS + 1) };

typedef enum cuda_argument_kind {
  CUDA_ARGUMENT_INPUT,
  CUDA_ARGUMENT_OUTPUT,
  CUDA_ARGUMENT_LENGTH, /* of a row; without reductions, of everything */
  CUDA_ARGUMENT_ROWS,
  CUDA_ARGUMENT_DIM,
  CUDA_ARGUMENT_STRIDE,
  CUDA_ARGUMENT_END /* of a part of a load, along its axis */
} cuda_argument_kind_t;

typedef struct cuda_argument {
  cuda_argument_kind_t kind;
  uint32_t tensor;
  int32_t axis;
} cuda_argument_t;

/* Writes at most CUDA_MAX_ARGUMENTS; returns how many. */
uint32_t cuda_arguments_list(const kernel_program_t *program, const kernel_cuda_variant_t *variant,
                             cuda_argument_t *out_arguments);

/* Whether the input has a stride along the axis that is neither 0 nor known. */
static inline bool cuda_has_stride(const kernel_cuda_variant_t *variant, uint32_t input, int32_t axis) {
  return (variant->moves[input] >> axis & 1) != 0 &&
         !(variant->inputs[input] == KERNEL_CUDA_STRIDED && axis == variant->rank - 1);
}

static inline bool cuda_is_strided(const kernel_cuda_variant_t *variant, uint32_t input) {
  return variant->inputs[input] >= KERNEL_CUDA_STRIDED;
}

#endif /* CLEAVE_KERNELS_CUDA_ARGUMENTS_H */
