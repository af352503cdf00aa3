// SPDX-License-Identifier: Apache-2.0
/*
 * The shape side of MatMul (ONNX, numpy's matmul): one-dimensional inputs get a dimension of 1, leading
 * dimensions broadcast. Also of QLinearMatMul and MatMulInteger.
 */
#ifndef CLEAVE_CPU_MATMUL_H
#define CLEAVE_CPU_MATMUL_H

#include "cpu/common/nn.h"

typedef struct cpu_matmul {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t batches; /* product of batch_dims */
  int32_t batch_rank;
  int64_t batch_dims[CLEAVE_MAX_RANK];
  int64_t a_strides[CLEAVE_MAX_RANK]; /* elements from one matrix to the next; 0 if it broadcasts */
  int64_t b_strides[CLEAVE_MAX_RANK];
} cpu_matmul_t;

/* Fails if the shapes do not fit together or the output has another number of elements. */
CLEAVE_MUST_USE cleave_status_t cpu_matmul_resolve(const cpu_tensor_t *a, const cpu_tensor_t *b,
                                                   const cpu_tensor_t *y, cpu_matmul_t *out_plan,
                                                   cleave_message_t *message);

/* Offsets of the matrices of batch `index`, in elements. */
void cpu_matmul_offsets(const cpu_matmul_t *plan, int64_t index, int64_t *out_a, int64_t *out_b);

#endif /* CLEAVE_CPU_MATMUL_H */
