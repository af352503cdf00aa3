// SPDX-License-Identifier: Apache-2.0
/*
 * The parts of a kernel besides its program: which values are wanted, and by which phase of a row. A
 * phase ends where reductions need all of their row; the next one begins with values per row.
 */
#ifndef CLEAVE_KERNELS_CUDA_PHASES_H
#define CLEAVE_KERNELS_CUDA_PHASES_H

#include "cuda.h"

typedef struct cuda_phases {
  uint32_t count;
  bool used[KERNEL_MAX_VALUES];
  uint32_t ready[KERNEL_MAX_VALUES]; /* the first phase that can read the value */
  uint32_t first[KERNEL_MAX_VALUES]; /* the first phase that wants the value per element */
  bool kept[KERNEL_MAX_VALUES];      /* a later phase wants it, too: registers hold it */
} cuda_phases_t;

struct kernel_cuda {
  kernel_program_t program;
  bool fast_math;
  bool reduces;                     /* there is a reduction: rows, not elements, are shared out */
  bool loads[KERNEL_MAX_TENSORS];   /* inputs that are read */
  bool per_row[KERNEL_MAX_TENSORS]; /* outputs with an element per row */
  int64_t kept_bytes;               /* of registers, per element of a row */
};

/* `wanted` says per output whether it is stored. */
void cuda_phases_find(const kernel_program_t *program, const bool *wanted, cuda_phases_t *out_phases);

/* Marks the values per element that a phase computes or, if `reads_kept`, finds in registers. */
void cuda_phases_mark(const kernel_program_t *program, const cuda_phases_t *phases, const bool *wanted,
                      uint32_t phase, bool reads_kept, bool *out_marks);

static inline bool cuda_is_reduction(const kernel_value_t *value) {
  return kernel_op_info(value->op)->kind == KERNEL_KIND_REDUCTION;
}

#endif /* CLEAVE_KERNELS_CUDA_PHASES_H */
