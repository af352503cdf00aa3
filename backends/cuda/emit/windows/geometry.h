// SPDX-License-Identifier: Apache-2.0
/* A convolution and its gradients: which tensors are its data x, weights w and result y, whatever node it is
 * of. */
#ifndef CLEAVE_CUDA_GEOMETRY_H
#define CLEAVE_CUDA_GEOMETRY_H

#include "windows.h"

typedef struct cuda_geometry {
  cuda_direction_t direction;
  uint32_t x, w, y;                /* slots */
  const cuda_epilogue_t *epilogue; /* or NULL */
  const char *label;
  cuda_window_t window;
  int64_t images, channels, outputs, groups, per_group, group_outputs;
  int64_t taps, places, pixels;
  cleave_dtype_t dtype;
} cuda_geometry_t;

/* Their types and sizes. */
typedef struct cuda_geometry_tensors {
  const cleave_tensor_view_t *x, *w, *y;
} cuda_geometry_tensors_t;

/* All but direction and slots, from the node's attributes. */
CLEAVE_MUST_USE cleave_status_t cuda_geometry_read(cuda_plan_t *plan, const cleave_node_view_t *node,
                                                   const cuda_geometry_tensors_t *tensors,
                                                   cuda_geometry_t *out_geometry);

/* Does cuDNN have it? */
bool cuda_geometry_is_for_library(const cuda_plan_t *plan, const cuda_geometry_t *geometry);

/* A step of cuDNN. */
CLEAVE_MUST_USE cleave_status_t cuda_emit_library(cuda_plan_t *plan, const cuda_geometry_t *geometry);

#endif /* CLEAVE_CUDA_GEOMETRY_H */
