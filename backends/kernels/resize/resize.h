// SPDX-License-Identifier: Apache-2.0
/*
 * The arithmetic of Resize (ONNX, opset 19) along one axis: where an output element lies on the input, and
 * which input elements count how much. Separable: an N-d resize is one pass per axis.
 */
#ifndef CLEAVE_KERNELS_RESIZE_H
#define CLEAVE_KERNELS_RESIZE_H

#include "cleave/backend.h"

typedef enum kernel_resize_mode {
  KERNEL_RESIZE_NEAREST,
  KERNEL_RESIZE_LINEAR,
  KERNEL_RESIZE_CUBIC
} kernel_resize_mode_t;

typedef enum kernel_resize_coordinates {
  KERNEL_RESIZE_HALF_PIXEL,
  KERNEL_RESIZE_HALF_PIXEL_SYMMETRIC,
  KERNEL_RESIZE_PYTORCH_HALF_PIXEL,
  KERNEL_RESIZE_ALIGN_CORNERS,
  KERNEL_RESIZE_ASYMMETRIC,
  KERNEL_RESIZE_TF_HALF_PIXEL_FOR_NN,
  KERNEL_RESIZE_TF_CROP_AND_RESIZE
} kernel_resize_coordinates_t;

typedef enum kernel_resize_rounding {
  KERNEL_RESIZE_ROUND_PREFER_FLOOR,
  KERNEL_RESIZE_ROUND_PREFER_CEIL,
  KERNEL_RESIZE_FLOOR,
  KERNEL_RESIZE_CEIL
} kernel_resize_rounding_t;

typedef enum kernel_resize_policy {
  KERNEL_RESIZE_STRETCH,
  KERNEL_RESIZE_NOT_LARGER,
  KERNEL_RESIZE_NOT_SMALLER
} kernel_resize_policy_t;

/* The attributes of a node. */
typedef struct kernel_resize_rule {
  kernel_resize_mode_t mode;
  kernel_resize_coordinates_t coordinates;
  kernel_resize_rounding_t rounding;
  bool antialias;
  bool exclude_outside;
  double cubic_a;
  kernel_resize_policy_t policy;
  double extrapolation;
  uint32_t axis_count; /* 0: all */
  const int64_t *axes; /* of the node */
} kernel_resize_rule_t;

typedef struct kernel_resize_axis {
  int64_t in;
  int64_t out;
  float scale;
  float length;    /* of the output by `scale`, which need not be whole: align_corners takes it */
  float roi_start; /* normalised; tf_crop_and_resize only */
  float roi_end;
} kernel_resize_axis_t;

/* The operands behind the tensor, as far as they are given (counts are 0 otherwise). */
typedef struct kernel_resize_numbers {
  int64_t roi_count, scale_count, size_count;
  double roi[2 * CLEAVE_MAX_RANK];
  double scales[CLEAVE_MAX_RANK];
  double sizes[CLEAVE_MAX_RANK];
} kernel_resize_numbers_t;

/* Reads the attributes of a Resize. CLEAVE_ERROR_UNSUPPORTED, and the reason, for what ONNX does not know. */
CLEAVE_MUST_USE cleave_status_t kernel_resize_read(const cleave_node_view_t *node, kernel_resize_rule_t *out,
                                                   cleave_message_t *message);

/* Scales, lengths and regions of `rank` axes whose `in` and `out` are there. CLEAVE_ERROR_SHAPE: numbers are
 * missing, or no scales. */
CLEAVE_MUST_USE cleave_status_t kernel_resize_scale(const kernel_resize_rule_t *rule,
                                                    const kernel_resize_numbers_t *numbers, int32_t rank,
                                                    kernel_resize_axis_t *axes, cleave_message_t *message);

/* Input elements that one output element may need on an axis with this scale. */
int64_t kernel_resize_taps(const kernel_resize_rule_t *rule, double scale);

/* The element in [0, in) that mode nearest takes for element `o`; -1: `o` is outside of the region of
 * interest. */
int64_t kernel_resize_nearest(const kernel_resize_rule_t *rule, const kernel_resize_axis_t *axis, int64_t o);

/* Fills [out, taps] indices (in [0, in), or -1 for all taps of an element outside of the region of interest)
 * and weights, which sum to 1 per output element. `in` and `out` are at least 1, taps as kernel_resize_taps()
 * gives. */
void kernel_resize_table(const kernel_resize_rule_t *rule, const kernel_resize_axis_t *axis, int64_t taps,
                         int64_t *indices, double *weights);

#endif /* CLEAVE_KERNELS_RESIZE_H */
