// SPDX-License-Identifier: Apache-2.0
/*
 * The geometry that attributes describe: sliding windows of convolutions and poolings (kernel, strides,
 * dilations, pads, auto_pad, ceil_mode), pads of Pad, axes of reductions, coordinates of Resize.
 * Definitions: the ONNX operators Conv-11, ConvTranspose-11, MaxPool-12, AveragePool-19, Pad-21, Resize-19.
 */
#ifndef ONEDNN_WINDOWS_H
#define ONEDNN_WINDOWS_H

#include "onednn/library/values.h"

/* Spatial dimensions only, in order. `pad_begin` and `pad_end` are what oneDNN needs so that `in` gives
 * `out`; `pad_end` can be negative. oneDNN counts dilation from 0. */
typedef struct onednn_window {
  int32_t rank;
  dnnl_dims_t kernel;
  dnnl_dims_t strides;
  dnnl_dims_t dilations; /* 0: dense */
  dnnl_dims_t pad_begin;
  dnnl_dims_t pad_end;
  bool dilated;
} onednn_window_t;

/* Checks that the attributes of a node with a window are complete lists for `spatial` dimensions, with
 * values oneDNN takes. */
CLEAVE_MUST_USE cleave_status_t onednn_window_check(const cleave_node_view_t *node, int32_t spatial,
                                                    cleave_message_t *message);

/* The window of Conv or a pooling from `in` to `out`, all dims including batch and channel known and
 * positive. `kernel` has the spatial kernel dims (NULL: from kernel_shape). `extra` are pads of a Pad in
 * front of the node, as it has them from the first spatial dimension on; NULL: none. */
CLEAVE_MUST_USE cleave_status_t onednn_window_forward(const cleave_node_view_t *node, const int64_t *kernel,
                                                      const int64_t *extra, const onednn_shape_t *in,
                                                      const onednn_shape_t *out, onednn_window_t *window,
                                                      cleave_message_t *message);

/* Reads the window of a ConvTranspose, whose `in` and `out` have changed places. */
CLEAVE_MUST_USE cleave_status_t onednn_window_transposed(const cleave_node_view_t *node,
                                                         const int64_t *kernel, const onednn_shape_t *in,
                                                         const onednn_shape_t *out, onednn_window_t *window,
                                                         cleave_message_t *message);

/* Pads of a constant-mode Pad with value 0: begin of all `rank` dims, then end. False if they are not
 * constant, the mode is another, or the value is not 0. */
bool onednn_pads_of(const cleave_region_view_t *region, const cleave_node_view_t *node, int32_t rank,
                    int64_t pads[2 * CLEAVE_MAX_RANK]);

/* The permutation of a Transpose: its attribute, or the dims in reverse. False if it is none. */
bool onednn_transpose_order(const cleave_node_view_t *node, int32_t rank, int32_t order[CLEAVE_MAX_RANK]);

/* The begin of a Slice in each dimension of `x`, and its steps. False if its lists are not constant, an
 * axis is out of range, or a step goes back. */
typedef struct onednn_slice {
  int64_t starts[CLEAVE_MAX_RANK];
  int64_t steps[CLEAVE_MAX_RANK];
} onednn_slice_t;
bool onednn_slice_of(const cleave_region_view_t *region, const cleave_node_view_t *node,
                     const onednn_shape_t *x, onednn_slice_t *slice);

/* Axes of a Reduce* node as flags. False if they are not constant or out of range. */
bool onednn_reduced_axes(const cleave_region_view_t *region, const cleave_node_view_t *node, int32_t rank,
                         bool axes[CLEAVE_MAX_RANK]);

/* Refuses what dnnl_resampling_nearest and _linear do not compute (both use half-pixel centres, nearest
 * rounds half away from zero, factors are out / in). */
CLEAVE_MUST_USE cleave_status_t onednn_resize_check(const cleave_region_view_t *region,
                                                    const cleave_node_view_t *node,
                                                    cleave_message_t *message);

#endif /* ONEDNN_WINDOWS_H */
