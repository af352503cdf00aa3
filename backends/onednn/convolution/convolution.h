// SPDX-License-Identifier: Apache-2.0
/*
 * Convolutions: their geometry and weights, the layout of images, Winograd's algorithm by kernels/winograd,
 * windows of one pixel and depthwise ones by kernels for AVX-512.
 */
#ifndef ONEDNN_CONVOLUTION_H
#define ONEDNN_CONVOLUTION_H

#include "kernels/matrix/activation.h"
#include "onednn/emit/emit.h"
#include "onednn/loops/shares.h"

CLEAVE_MUST_USE cleave_status_t onednn_emit_convolution(onednn_plan_t *plan, const onednn_kernel_t *kernel);

/* The weights of a convolution node. */
typedef struct onednn_weights_view {
  onednn_shape_t shape;             /* as oneDNN has it: [groups,] outputs, inputs, kernel */
  int64_t strides[CLEAVE_MAX_RANK]; /* of the model's data in that shape */
  int64_t kernel[3];
  int64_t groups;
  int64_t outputs; /* in all groups */
} onednn_weights_view_t;

CLEAVE_MUST_USE cleave_status_t onednn_convolution_weights(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                           bool transposed, onednn_weights_view_t *view);

/* The window from data of shape `x` to a result of shape `y`. */
CLEAVE_MUST_USE cleave_status_t onednn_convolution_window(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                          bool transposed, const onednn_shape_t *x,
                                                          const onednn_shape_t *y, onednn_window_t *window);

/* The weights with every output channel multiplied by its scale, in the model's order; made when they are
 * packed. `scale` lives as long as the plan. */
CLEAVE_MUST_USE cleave_status_t onednn_convolution_scaled(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                          bool transposed, const onednn_weights_view_t *view,
                                                          const float *scale, onednn_tensor_t *out);

/* blocking.c: is the kernel a convolution with constant windows of 3x3 and stride 1, for which Winograd's
 * algorithm may be used; has oneDNN such code for it on some processor; and are images of the region better
 * in blocks of 16 channels? All shapes are known. */
bool onednn_window_of_three(const onednn_plan_t *plan, const onednn_kernel_t *kernel);
bool onednn_winograd_suits(const onednn_plan_t *plan, const onednn_kernel_t *kernel);
bool onednn_blocks_pay(const onednn_plan_t *plan);

/* Without blocks: do all convolutions have channels last, although oneDNN may like something else? So it is
 * if the region shuffles channels, or has groups of 8. */
bool onednn_keeps_channels_last(const onednn_plan_t *plan);

/* winograd.c: the tile, 4 or 2, for which kernels/winograd computes the kernel, in the form that it has; 0:
 * oneDNN does. */
int32_t onednn_winograd_tile(const onednn_plan_t *plan, const onednn_kernel_t *kernel);

/* A convolution as a step of ours. */
typedef struct onednn_step_request {
  int32_t tile; /* of Winograd's algorithm */
  onednn_tensor_t source;
  onednn_tensor_t weights; /* constant, as the model has them but for scales */
  onednn_tensor_t bias;    /* if `has_bias` */
  bool has_bias;
  int64_t top; /* padding */
  int64_t left;
  onednn_shape_t shape; /* of the result */
  const onednn_post_t *posts;
  uint32_t post_count;
} onednn_step_request_t;

/* Does the first post add a tensor of the result's shape? */
bool onednn_adds_image(const onednn_plan_t *plan, const onednn_step_request_t *request);

/* Memory for a result: that of `sum` (or NULL) if nobody reads it any more. */
CLEAVE_MUST_USE cleave_status_t onednn_step_result(onednn_plan_t *plan, const onednn_step_request_t *request,
                                                   uint32_t value, const onednn_layout_t *layout,
                                                   const onednn_tensor_t *sum, onednn_tensor_t *out);

/* Adds the steps and binds the result of the kernel. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_winograd(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                     const onednn_step_request_t *request);

/* wide.c: by which kernel for AVX-512 or AMX is it computed, with all posts? */
typedef enum onednn_wide_kind {
  ONEDNN_WIDE_NONE,
  ONEDNN_WIDE_PRODUCT, /* of the pixels, as they lie, and windows of one pixel */
  ONEDNN_WIDE_DEPTHWISE,
  ONEDNN_WIDE_THIRDS
} onednn_wide_kind_t;

onednn_wide_kind_t onednn_wide_suits(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                     const onednn_window_t *window, const onednn_step_request_t *request);

/* Adds the step and binds the result of the kernel. */
CLEAVE_MUST_USE cleave_status_t onednn_emit_wide(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                                 const onednn_window_t *window,
                                                 const onednn_step_request_t *request,
                                                 onednn_wide_kind_t kind);

#endif /* ONEDNN_CONVOLUTION_H */
