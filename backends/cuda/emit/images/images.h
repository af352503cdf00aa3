// SPDX-License-Identifier: Apache-2.0
/* What stands before the texts of this room. */
#ifndef CLEAVE_CUDA_IMAGES_H
#define CLEAVE_CUDA_IMAGES_H

#include "cuda/emit/emit.h"
#include "kernels/cuda/writer.h"

/* "typedef u16 NAME_element;" and "#define widen_NAME(x) ...", a double, for coordinates of a dtype of their
 * own. */
void cuda_images_write_coordinates(cuda_writer_t *writer, const char *name, cleave_dtype_t dtype);

/* Refuses a node whose tensor `index` is not of floating-point numbers. */
CLEAVE_MUST_USE cleave_status_t cuda_images_need_floats(cuda_plan_t *plan, const cleave_node_view_t *node,
                                                        uint32_t index);

/* A kernel of 256 threads a block; `call` has no defines yet: they are those of the dtype, and `more`. */
CLEAVE_MUST_USE cleave_status_t cuda_images_emit(cuda_plan_t *plan, cleave_dtype_t dtype,
                                                 const cuda_writer_t *more, cuda_kernel_call_t *call);

#endif /* CLEAVE_CUDA_IMAGES_H */
