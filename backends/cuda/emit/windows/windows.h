// SPDX-License-Identifier: Apache-2.0
/* Windows of convolutions and poolings: sizes, steps and pads, read once. */
#ifndef CLEAVE_CUDA_WINDOWS_H
#define CLEAVE_CUDA_WINDOWS_H

#include "cuda/emit/emit.h"

enum { CUDA_MAX_AXES = 3 };

typedef struct cuda_window {
  int32_t axes;
  int64_t in[CUDA_MAX_AXES];
  int64_t out[CUDA_MAX_AXES];
  int64_t size[CUDA_MAX_AXES];
  int64_t stride[CUDA_MAX_AXES];
  int64_t dilation[CUDA_MAX_AXES];
  int64_t before[CUDA_MAX_AXES];
  int64_t after[CUDA_MAX_AXES];
} cuda_window_t;

/* The window of a node that slides windows of `sizes` over x, an element of y for each place. */
CLEAVE_MUST_USE cleave_status_t cuda_window_between(cuda_plan_t *plan, const cleave_node_view_t *node,
                                                    const cleave_tensor_view_t *x,
                                                    const cleave_tensor_view_t *y, const int64_t *sizes,
                                                    cuda_window_t *out_window);

/* Lines before a text over windows: those of cuda_text_defines, AXES, and WINDOW_FIELDS, what is behind the
 * other fields of its arguments. */
void cuda_window_defines(const cuda_window_t *window, cleave_dtype_t dtype, char *out_text, size_t size);
/* The numbers of these fields, behind the other numbers of a call. */
void cuda_window_numbers(const cuda_window_t *window, cuda_kernel_call_t *call);
/* One number for each axis, behind those that are there. */
void cuda_window_axes(const cuda_window_t *window, const int64_t *numbers, cuda_kernel_call_t *call);

/* Would the places be the same with `before` elements of border at both ends? cuDNN has no other borders. */
bool cuda_window_is_even(const cuda_window_t *window);

#endif /* CLEAVE_CUDA_WINDOWS_H */
