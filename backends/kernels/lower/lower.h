// SPDX-License-Identifier: Apache-2.0
/*
 * From nodes of a region to one program. Shapes of all values have to be known. Every value that the nodes
 * make has the shape of the index space, or, behind a reduction, that shape with reduced sizes of 1; a
 * reduction is over the last axes, the same ones everywhere. Scalar constants become part of the program.
 *
 * What makes a program: pointwise operators of operators.inc, Identity, Cast, CastLike, Clip, Gelu, Max, Min,
 * Sum, Mean, Where, QuantizeLinear and DequantizeLinear (8 and 16 bits, a scale for all or along the last
 * axis); Softmax, LogSoftmax, LayerNormalization, RMSNormalization, InstanceNormalization,
 * GroupNormalization, reductions, ArgMax and ArgMin; what does not keep its dimensions is not read by the
 * other nodes. Views of what comes from outside are loads: Expand, Flatten, Reshape, Slice, Split, Squeeze,
 * Transpose, Unsqueeze; and a Concat of what comes from outside or of such views is one load of several
 * inputs.
 */
#ifndef CLEAVE_KERNELS_LOWER_H
#define CLEAVE_KERNELS_LOWER_H

#include "kernels/arena.h"
#include "kernels/program.h"

/* Which elements of a dense tensor an input of a program is, in elements of it. */
typedef struct kernel_view {
  bool is_part; /* not the tensor as it is */
  int64_t offset;
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
  int64_t strides[CLEAVE_MAX_RANK];
} kernel_view_t;

typedef struct kernel_lowered {
  bool fast_math; /* set by the caller */
  const cleave_region_view_t *region;
  uint32_t node_count;
  const uint32_t *nodes;
  kernel_program_t *program;
  int64_t dims[CLEAVE_MAX_RANK];           /* of its space */
  uint32_t inputs[KERNEL_MAX_TENSORS];     /* per input of the program: value of the region */
  kernel_view_t views[KERNEL_MAX_TENSORS]; /* likewise: how it is read */
  uint32_t outputs[KERNEL_MAX_TENSORS];    /* per output: value that others read */
} kernel_lowered_t;

/* All kernels of a region share this. It is made once, so that a kernel costs what its own nodes cost,
 * whatever the size of the region. Its memory is that of the arena; for one thread at a time. */
typedef struct kernel_lowerer kernel_lowerer_t;

/* `region` outlives it. */
CLEAVE_MUST_USE cleave_status_t kernel_lowerer_create(const cleave_region_view_t *region,
                                                      kernel_arena_t *arena, kernel_lowerer_t **out_lowerer,
                                                      cleave_message_t *message);

/* Makes one program of these nodes of the region, which are in topological order; with functions of fewer
 * digits if `out_lowered->fast_math` says so (kernel_op_fast). CLEAVE_ERROR_UNSUPPORTED: they are none, and
 * the message says why. The program is the caller's. */
CLEAVE_MUST_USE cleave_status_t kernel_lower(kernel_lowerer_t *lowerer, uint32_t node_count,
                                             const uint32_t *nodes, kernel_lowered_t *out_lowered,
                                             cleave_message_t *message);

/* ---- parts of programs, for who makes one without nodes ---- */

/* Adds what a reduction of ONNX, by its name, computes of a value over the rows of the space. */
CLEAVE_MUST_USE cleave_status_t kernel_lower_reduction(kernel_program_t *program, const char *op,
                                                       uint32_t value, uint32_t *out_value,
                                                       cleave_message_t *message);

/* Adds (x - mean) / sqrt(mean square of that + epsilon), and per row the mean and what x is multiplied by;
 * `out_mean` NULL: nothing is subtracted. */
CLEAVE_MUST_USE cleave_status_t kernel_lower_normalize(kernel_program_t *program, uint32_t x, double epsilon,
                                                       uint32_t *out_mean, uint32_t *out_inverse,
                                                       uint32_t *out_value, cleave_message_t *message);

#endif /* CLEAVE_KERNELS_LOWER_H */
