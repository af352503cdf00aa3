// SPDX-License-Identifier: Apache-2.0
/*
 * Sliding windows of convolutions and pools over tensors [batch, channels, spatial...] with one to three
 * spatial axes: attributes kernel_shape, strides, dilations, pads and auto_pad of Conv, ConvTranspose,
 * MaxPool, AveragePool, LpPool and MaxUnpool (ONNX, opset 22).
 */
#ifndef CLEAVE_CPU_WINDOW_H
#define CLEAVE_CPU_WINDOW_H

#include "cpu/common/nn.h"

#define CPU_WINDOW_AXES 3

typedef enum cpu_auto_pad {
  CPU_PAD_EXPLICIT = 0,
  CPU_PAD_SAME_UPPER,
  CPU_PAD_SAME_LOWER,
  CPU_PAD_VALID
} cpu_auto_pad_t;

/* The attributes, as given: a count is 0 if the attribute is left out. */
typedef struct cpu_window {
  uint32_t kernel_count;
  uint32_t stride_count;
  uint32_t dilation_count;
  uint32_t pad_count;
  int64_t kernel[CPU_WINDOW_AXES];
  int64_t stride[CPU_WINDOW_AXES];
  int64_t dilation[CPU_WINDOW_AXES];
  int64_t pads[2 * CPU_WINDOW_AXES];
  cpu_auto_pad_t auto_pad;
} cpu_window_t;

/* Windows over tensors of known shape. Always three axes: missing leading ones have extent 1. Tap k of
 * window o on axis a reads element o * stride[a] - pad[a] + k * dilation[a] where that is in [0, in[a]). */
typedef struct cpu_geometry {
  int32_t spatial;
  int64_t batch;
  int64_t channels;
  int64_t in[CPU_WINDOW_AXES];
  int64_t out[CPU_WINDOW_AXES];
  int64_t kernel[CPU_WINDOW_AXES];
  int64_t stride[CPU_WINDOW_AXES];
  int64_t dilation[CPU_WINDOW_AXES];
  int64_t pad[CPU_WINDOW_AXES];
  int64_t pad_end[CPU_WINDOW_AXES];
  int64_t in_count;     /* product of in */
  int64_t out_count;    /* product of out */
  int64_t kernel_count; /* product of kernel */
} cpu_geometry_t;

/* Reads the attributes; refuses more than three spatial axes and values out of range. */
CLEAVE_MUST_USE cleave_status_t cpu_window_prepare(const cpu_prepare_t *prepare, cpu_window_t *out_window,
                                                   cleave_message_t *message);

/* Windows that slide over `x` and give `y`; both are [batch, channels, spatial...] of equal rank. `kernel`
 * points to the extents of the weights on the spatial axes, or is NULL: the attribute kernel_shape holds.
 * Fails if shapes and attributes do not fit together. Does not compare the size of `y`: reads are in
 * bounds for any. */
CLEAVE_MUST_USE cleave_status_t cpu_window_resolve(const cpu_window_t *window, const cpu_tensor_t *x,
                                                   const cpu_tensor_t *y, const int64_t *kernel,
                                                   cpu_geometry_t *out_geometry, cleave_message_t *message);

/* Fails unless `out` of the geometry is what the formula of Conv gives. */
CLEAVE_MUST_USE cleave_status_t cpu_window_check_output(const cpu_window_t *window,
                                                        const cpu_geometry_t *geometry,
                                                        cleave_message_t *message);

/* Windows [*out_begin, *out_end) on `axis` whose tap `tap` reads inside of the tensor. */
void cpu_window_range(const cpu_geometry_t *geometry, int32_t axis, int64_t tap, int64_t *out_begin,
                      int64_t *out_end);

#endif /* CLEAVE_CPU_WINDOW_H */
