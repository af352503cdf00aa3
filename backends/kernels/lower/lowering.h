// SPDX-License-Identifier: Apache-2.0
/*
 * The files that turn nodes into programs share this (lowering.c): lower.c has the walk and pointwise
 * operators, lower_rows.c operators that reduce rows.
 */
#ifndef CLEAVE_KERNELS_LOWERING_H
#define CLEAVE_KERNELS_LOWERING_H

#include "lower.h"

#define KERNEL_TRY(call)            \
  do {                              \
    cleave_status_t status_ = call; \
    if (status_ != CLEAVE_OK) {     \
      return status_;               \
    }                               \
  } while (0)

/* Between two kernels all of its arrays are as kernel_lowerer_create made them. */
typedef struct kernel_lowerer {
  const cleave_region_view_t *region;
  uint32_t *values;  /* per value of the region: of the program, or CLEAVE_INDEX_NONE */
  uint32_t *viewers; /* per value: the node that makes a view of it, or CLEAVE_INDEX_NONE */
  uint32_t *readers; /* per value: inputs of nodes outside of the kernel, and outputs of the region */
  bool *inside;      /* per node of the region: it is one of those lowered */
} lowerer_t;

typedef struct lowering {
  const cleave_region_view_t *region;
  kernel_program_t *program;
  kernel_lowered_t *lowered;
  uint32_t *values; /* of the lowerer, likewise the next two */
  uint32_t *viewers;
  bool *inside;
  int32_t rank; /* of the results; the space has one more if axis 1 is in groups */
  int32_t reduced;
  int64_t groups; /* of channels, or 0 */
  int64_t dims[CLEAVE_MAX_RANK];
  cleave_message_t *message;
} lowering_t;

/* CLEAVE_ERROR_UNSUPPORTED with the node and the reason. */
cleave_status_t kernel_lower_refuse(const cleave_node_view_t *node, const char *what,
                                    cleave_message_t *message);

/* The last axes that a node reduces: *out_reduced of them; 0 if it is pointwise. *out_groups: into how many
 * parts the first of these is cut, each with rows of its own; 0: it is not. */
CLEAVE_MUST_USE cleave_status_t kernel_lower_axes(const cleave_region_view_t *region,
                                                  const cleave_node_view_t *node, int32_t *out_reduced,
                                                  int64_t *out_groups, cleave_message_t *message);

/* The tensor as it is. */
void kernel_view_whole(const cleave_tensor_view_t *tensor, kernel_view_t *out_view);

bool kernel_lower_is_view(const cleave_node_view_t *node);

/* Concat: a load of what it joins. */
bool kernel_lower_is_join(const cleave_node_view_t *node);

/* The value outside that `value` is a view of, and which elements of it: itself, if no node views it. */
CLEAVE_MUST_USE cleave_status_t kernel_lower_view(lowering_t *lowering, uint32_t value, uint32_t *out_source,
                                                  kernel_view_t *out_view);

/* A value that has yet to be loaded, or a view of one. */
CLEAVE_MUST_USE cleave_status_t kernel_lower_load(lowering_t *lowering, const cleave_node_view_t *node,
                                                  uint32_t value, uint32_t *out_value);

/* Adds what a reducing node computes; *out_done false: it is not one. */
CLEAVE_MUST_USE cleave_status_t kernel_lower_rows(lowering_t *lowering, const cleave_node_view_t *node,
                                                  bool *out_done);

/* An operand of a node as a value of the program: computed before, a constant, or loaded. */
CLEAVE_MUST_USE cleave_status_t kernel_lower_operand(lowering_t *lowering, const cleave_node_view_t *node,
                                                     uint32_t index, uint32_t *out_value);

/* A vector along one axis of the space as a value of the program; it comes from outside of the region. */
CLEAVE_MUST_USE cleave_status_t kernel_lower_vector(lowering_t *lowering, const cleave_node_view_t *node,
                                                    uint32_t index, int32_t axis, uint32_t *out_value);

/* Says which value of the program an output of the node is. */
CLEAVE_MUST_USE cleave_status_t kernel_lower_result(lowering_t *lowering, const cleave_node_view_t *node,
                                                    uint32_t index, uint32_t value);

/* Shorthands of kernel_program_apply and kernel_program_constant. */
CLEAVE_MUST_USE cleave_status_t kernel_lower_unary(lowering_t *lowering, kernel_op_t op, uint32_t x,
                                                   uint32_t *out_value);
CLEAVE_MUST_USE cleave_status_t kernel_lower_binary(lowering_t *lowering, kernel_op_t op, uint32_t x,
                                                    uint32_t y, uint32_t *out_value);
CLEAVE_MUST_USE cleave_status_t kernel_lower_number(lowering_t *lowering, cleave_dtype_t dtype, double number,
                                                    uint32_t *out_value);

#endif /* CLEAVE_KERNELS_LOWERING_H */
