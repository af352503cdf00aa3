// SPDX-License-Identifier: Apache-2.0
/* Windows of convolutions and poolings: sizes, steps and pads, read once. */
#ifndef CLEAVE_CUDA_WINDOWS_H
#define CLEAVE_CUDA_WINDOWS_H

#include "emit.h"

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

/* `sizes` are those of the window. */
CLEAVE_MUST_USE cleave_status_t cuda_window_read(cuda_plan_t *plan, const cleave_node_view_t *node,
                                                 const int64_t *sizes, cuda_window_t *out_window);

/* Behind the other numbers of a call: in, out, window, stride, dilation, before. */
void cuda_window_numbers(const cuda_window_t *window, cuda_kernel_call_t *call);

#endif /* CLEAVE_CUDA_WINDOWS_H */
