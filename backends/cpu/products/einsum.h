// SPDX-License-Identifier: Apache-2.0
/*
 * The equation of Einsum (ONNX, opset 12) against the shapes of its operands: labels with extents, and the
 * strides of every operand along them. An ellipsis stands for labels of its own, one per axis it covers,
 * aligned to the right.
 */
#ifndef CLEAVE_CPU_EINSUM_H
#define CLEAVE_CPU_EINSUM_H

#include "cpu/common/nn.h"

#define CPU_EINSUM_OPERANDS 8
#define CPU_EINSUM_LABELS 32

typedef struct cpu_einsum {
  uint32_t operand_count;
  int32_t label_count;
  int32_t out_rank;
  int64_t extents[CPU_EINSUM_LABELS];
  int64_t strides[CPU_EINSUM_OPERANDS][CPU_EINSUM_LABELS]; /* 0 if the operand lacks or stretches the label */
  bool has[CPU_EINSUM_OPERANDS][CPU_EINSUM_LABELS];
  bool repeats[CPU_EINSUM_OPERANDS];   /* a label occurs twice in the operand: a diagonal */
  int32_t out_labels[CLEAVE_MAX_RANK]; /* in the order of the output's axes */
  bool in_out[CPU_EINSUM_LABELS];
  int64_t out_count;
  int64_t sum_count; /* product of the extents of labels that are summed over */
} cpu_einsum_t;

/* Checks what needs no shapes: characters, number of terms, one arrow, ellipses of three dots. */
CLEAVE_MUST_USE cleave_status_t cpu_einsum_check(const char *equation, uint32_t operand_count,
                                                 cleave_message_t *message);

/* Resolves an equation that passed cpu_einsum_check(). Fails if ranks or extents do not fit. */
CLEAVE_MUST_USE cleave_status_t cpu_einsum_resolve(const char *equation, uint32_t operand_count,
                                                   const cpu_tensor_t *const *operands,
                                                   cpu_einsum_t *out_einsum, cleave_message_t *message);

#endif /* CLEAVE_CPU_EINSUM_H */
